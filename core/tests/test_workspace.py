"""The workspace: no name leads out of it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ToolArgumentError
from jackfield.tools import Workspace

PARTS = [
    "..",
    ".",
    "a",
    "link",
    "loop",
    "",
    "%2e%2e",
    "%2E.",
    "~",
    "%2f",
    "%5c",
    "\\",
    "..\\..",
    "C:",
    "%00",
    "\0",
    "..%2f",
    "。。",
]
names = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).flatmap(
    lambda parts: st.sampled_from(["/", "//", "\\", "%2F"]).map(lambda separator: separator.join(parts))
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace's folder, with links out of it and in circles."""
    made = tmp_path / "workspace"
    made.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "workspace-of-others").mkdir()
    (made / "link").symlink_to(tmp_path / "outside")
    (made / "namesake").symlink_to(tmp_path / "workspace-of-others")
    (made / "loop").symlink_to(made / "loop")
    (made / "inside").mkdir()
    (made / "alias").symlink_to(made / "inside")
    return made


@given(names | st.text(max_size=12))
def test_no_name_ever_leads_outside(name: str) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "workspace"
        root.mkdir()
        (root / "link").symlink_to(folder)
        (root / "loop").symlink_to(root / "loop")
        try:
            path = Workspace(root).resolve(name)
        except ToolArgumentError:
            return
        assert path.is_relative_to(root)
        assert path.resolve().is_relative_to(root)


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "..",
        "/etc/passwd",
        "//etc/hostname",
        "~/x",
        "~root/x",
        "..\\x",
        "a\\..\\..\\x",
        "\\\\host\\share",
        "..%2F..%2Fx",
        "%2e%2e/x",
        "%2Fetc%2Fpasswd",
        "link",
        "link/x",
        "namesake/x",
        "link/../x",
        "loop",
        "loop/x",
        "x" * 300,
        "",
        "  ",
        "a\0b",
        "a%00b",
    ],
)
def test_a_name_that_leads_out_or_is_none_is_refused_with_a_text_for_the_model(root: Path, name: str) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        Workspace(root).resolve(name)
    assert str(root.parent) not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["x.txt", "a/b/c.txt", "a b.txt", "文件.txt", "...", "a..b", "100%", "alias/x.txt", "./x"]
)
def test_an_ordinary_name_stays_inside_and_need_not_exist(root: Path, name: str) -> None:
    path = Workspace(root).resolve(name)
    assert path.is_relative_to(root)
    assert path.name == name.rpartition("/")[2]
    assert not path.exists()


def test_a_link_inside_is_followed_inside(root: Path) -> None:
    assert Workspace(root).resolve("alias/x") == root / "inside/x"


def test_a_name_below_a_file_is_inside_although_no_file_can_have_it(root: Path) -> None:
    (root / "file.txt").write_text("x")
    assert Workspace(root).resolve("file.txt/x") == root / "file.txt/x"


def test_a_workspace_may_itself_stand_behind_a_link(root: Path) -> None:
    link = root.parent / "entrance"
    link.symlink_to(root)
    assert Workspace(link).resolve("x") == root / "x"


def test_making_a_workspace_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JACKFIELD_WORKSPACE", raising=False)
    assert Workspace().resolve("x") == tmp_path.resolve() / "workspace/x"
    monkeypatch.setenv("JACKFIELD_WORKSPACE", str(tmp_path / "elsewhere"))
    assert Workspace().resolve("x") == tmp_path.resolve() / "elsewhere/x"
    assert list(tmp_path.iterdir()) == []
