"""Which files names stand for, in trees as people and attackers leave them."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.plugins import default_host
from jackfield_documents import Expanded, Skipped, expand, why_nothing_reads


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `docs` in the working directory, with files at two depths."""
    for name in ("docs/b.md", "docs/a.md", "docs/sub/c.md", "docs/sub/d.txt", "docs/.hidden/e.md", "docs/.f.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(expanded: Expanded) -> list[str]:
    return [path.replace(os.sep, "/") for path in expanded.files]


@pytest.mark.parametrize(
    ("given_name", "found"),
    [
        ("docs/a.md", ["docs/a.md"]),
        ("docs/.f.md", ["docs/.f.md"]),  # it is named
        ("docs", ["docs/a.md", "docs/b.md", "docs/sub/c.md", "docs/sub/d.txt"]),
        ("docs/*.md", ["docs/a.md", "docs/b.md"]),
        ("docs/*", ["docs/a.md", "docs/b.md"]),
        ("docs/**/*.md", ["docs/a.md", "docs/b.md", "docs/sub/c.md"]),
        ("docs/**/**", ["docs/a.md", "docs/b.md", "docs/sub/c.md", "docs/sub/d.txt"]),
        ("**/[cd].*", ["docs/sub/c.md", "docs/sub/d.txt"]),
        ("docs/s?b/c.md", ["docs/sub/c.md"]),
        ("docs/.*", ["docs/.f.md"]),
        ("https://example.org/a.pdf", ["https://example.org/a.pdf"]),
        ("index:notes", ["index:notes"]),
    ],
)
def test_a_name_stands_for_files(tree: Path, given_name: str, found: list[str]) -> None:
    assert names(expand([given_name])) == found


@pytest.mark.parametrize("name", ["nothing.md", "docs/*.pdf", "none/**/*", "", "a\0b", "~\0", "\udcff\udcfe"])
def test_a_name_that_stands_for_nothing_is_missing(tree: Path, name: str) -> None:
    assert expand([name, "docs/a.md"]) == Expanded(("docs/a.md",), (), (name,))


def test_each_file_comes_once_and_in_the_order_of_the_names(tree: Path) -> None:
    assert names(expand(["docs/sub/d.txt", "docs/*", "docs"]))[:3] == ["docs/sub/d.txt", "docs/a.md", "docs/b.md"]
    assert len(expand(["docs", "docs/**/*"]).files) == 4


def test_a_file_whose_name_looks_like_a_pattern_or_a_scheme_is_taken_as_it_is(tree: Path) -> None:
    Path("a[1].md").write_text("text")
    Path("note:1.md").write_text("text")
    assert expand(["a[1].md", "note:1.md"]).files == ("a[1].md", "note:1.md")


def test_a_home_folder_is_expanded(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree))
    monkeypatch.setenv("USERPROFILE", str(tree))
    assert expand(["~/docs/a.md"]).files == (f"{tree}/docs/a.md",)


@pytest.mark.skipif(os.name != "posix", reason="names, links and sockets of POSIX")
class TestOddTrees:
    def test_links_in_a_circle_lead_nowhere(self, tree: Path) -> None:
        # Twelve of them: whoever follows links finds forty times forty times … paths.
        for number in range(12):
            Path(f"docs/loop{number}").symlink_to(tree / "docs")
        found = expand(["docs"])
        assert names(found) == ["docs/a.md", "docs/b.md", "docs/sub/c.md", "docs/sub/d.txt"]
        assert Skipped("docs/loop0", "a link to a folder") in found.skipped
        assert len(expand(["docs/**/*.md"]).files) == 3

    def test_a_link_to_itself_is_skipped_with_its_reason(self, tree: Path) -> None:
        Path("docs/me.md").symlink_to("me.md")
        Path("docs/sub/you").symlink_to("me")
        Path("docs/sub/me").symlink_to("you")
        for name in ("docs", "docs/**/*", "docs/*/*.md"):
            assert "docs/sub/c.md" in names(expand([name]))
        [one] = [one for one in expand(["docs"]).skipped if one.path == "docs/me.md"]
        assert "symbolic links" in one.reason
        assert expand(["docs/me.md"]).missing == ("docs/me.md",)

    def test_a_link_that_is_named_is_followed(self, tree: Path) -> None:
        Path("link").symlink_to(tree / "docs")
        assert names(expand(["link"]))[0] == "link/a.md"

    def test_what_is_not_a_readable_file_is_skipped_with_its_reason(self, tree: Path) -> None:
        os.mkfifo("docs/pipe.md")
        server = socket.socket(socket.AF_UNIX)
        server.bind("docs/s.md")
        Path("docs/empty.md").touch()
        Path("docs/gone.md").symlink_to("nowhere")
        found = expand(["docs"])
        server.close()
        assert names(found) == ["docs/a.md", "docs/b.md", "docs/sub/c.md", "docs/sub/d.txt"]
        assert {one.path: one.reason for one in found.skipped} == {
            "docs/pipe.md": "not a regular file",
            "docs/s.md": "not a regular file",
            "docs/empty.md": "empty",
            "docs/gone.md": "no such file or directory",
        }
        assert "skipped docs/pipe.md, docs/s.md: not a regular file" in found.lines()

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
    def test_what_may_not_be_read_is_skipped_with_its_reason(self, tree: Path) -> None:
        Path("docs/a.md").chmod(0)
        Path("docs/sub").chmod(0)
        try:
            assert expand(["docs"]).skipped == (
                Skipped("docs/a.md", "permission denied"),
                Skipped("docs/sub", "permission denied"),
            )
        finally:
            Path("docs/sub").chmod(0o700)

    @given(st.binary(min_size=1, max_size=200).filter(lambda name: not {0, 47} & set(name) and name[:1] != b"."))
    def test_a_name_of_any_bytes_survives(self, tmp_path_factory: pytest.TempPathFactory, name: bytes) -> None:
        folder = tmp_path_factory.mktemp("names")
        path = folder / os.fsdecode(name)
        path.write_text("text")
        (found,) = expand([str(folder)]).files
        assert os.fsencode(found) == os.fsencode(path)
        assert "\n" not in str(Skipped(found, "empty"))


def test_of_a_folder_only_what_can_be_read_is_taken(tree: Path) -> None:
    Path("docs/photo.raw").write_text("x")
    Path("docs/Makefile").write_text("x")
    Path("docs/script.py").write_text("x")
    found = expand(["docs"], why_not=why_nothing_reads(default_host()))
    assert "docs/script.py" in names(found)
    assert {one.path.replace(os.sep, "/"): one.reason for one in found.skipped} == {
        "docs/photo.raw": "no installed package can read .raw files",
        "docs/Makefile": "no file extension",
    }
    # What is named is left to the reader, who knows how to look into it.
    assert names(expand(["docs/Makefile"], why_not=why_nothing_reads(default_host()))) == ["docs/Makefile"]


def test_more_files_than_may_be_are_an_error(tree: Path) -> None:
    assert len(expand(["docs"], most=4).files) == 4
    with pytest.raises(ConfigError, match="'docs' contains more than 3 files"):
        expand(["docs"], most=3)


def test_an_empty_folder_is_reported(tree: Path) -> None:
    Path("void").mkdir()
    assert expand(["void"]).skipped == (Skipped("void", "a folder without files"),)


def test_a_file_that_is_named_is_not_skipped_and_folders_are_read_in_their_order(tmp_path: Path) -> None:
    for name in ("b/2.txt", "a/1.txt", "c/empty.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("" if "empty" in name else "x")
    whole = expand([str(tmp_path)])
    assert [os.path.relpath(file, tmp_path) for file in whole.files] == ["a/1.txt", "b/2.txt"]
    assert [os.path.relpath(one.path, tmp_path) for one in whole.skipped] == ["c/empty.txt"]
    named = expand([str(tmp_path), str(tmp_path / "c/empty.txt")])
    assert (len(named.files), named.skipped) == (3, ())


@pytest.mark.parametrize(("media_type", "is_read"), [("text/plain", True), ("text/html", False)])
def test_a_script_is_read_by_a_parser_of_plain_text_only(media_type: str, is_read: bool) -> None:
    spec = SimpleNamespace(extensions=("x",), media_types=(media_type,))
    host: Any = SimpleNamespace(specs=lambda *_: [(None, spec)])
    why_not = why_nothing_reads(host)
    assert (why_not("a.py") == "") is is_read
    assert why_not("a.X") == ""
    assert why_not("README") == "no file extension"
