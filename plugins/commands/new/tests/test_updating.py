"""An update of a plugin merges three versions of each file, and loses nothing."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from jackfield.cli.main import main
from jackfield.errors import ConfigError
from jackfield_new.remotes import public_url, url_of_repository
from jackfield_new.updating import RECORD, Change, Record, apply_update, check_clean, plan_update

Git = Callable[..., str]
_LINES = re.MULTILINE | re.DOTALL
LINES = [f"line {number}" for number in range(20)]


def text(**changes: str) -> bytes:
    """Twenty lines, some of them changed: `text(line_3="other")`."""
    return "".join(f"{changes.get(line.replace(' ', '_'), line)}\n" for line in LINES).encode()


def plan(folder: Path, before: bytes | None, now: bytes | None, new: bytes | None) -> list[Change]:
    """Update one file that has these three versions."""
    path = PurePosixPath("a/file.txt")
    if now is not None:
        (folder / "a").mkdir(exist_ok=True)
        (folder / path).write_bytes(now)
    record = Record({}, {} if before is None else {path: before})
    return plan_update(folder, record, {} if new is None else {path: new})


@pytest.fixture
def git(tmp_path: Path) -> Git:
    def run(*arguments: str, cwd: Path = tmp_path) -> str:
        names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        return subprocess.run(["git", *names, *arguments], cwd=cwd, capture_output=True, text=True, check=True).stdout

    return run


@pytest.mark.parametrize(
    ("before", "now", "new", "content"),
    [
        (text(), text(), text(line_3="new"), text(line_3="new")),
        (text(), text(line_3="mine"), text(line_15="new"), text(line_3="mine", line_15="new")),
        (None, None, text(), text()),
        (text(), text(), None, None),
    ],
    ids=["only the template", "both, in other places", "added", "removed"],
)
def test_what_the_template_changed_arrives(
    tmp_path: Path, before: bytes | None, now: bytes | None, new: bytes | None, content: bytes | None
) -> None:
    (change,) = plan(tmp_path, before, now, new)
    assert (change.content, change.conflicts, change.is_kept) == (content, 0, False)


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        (text(), text(line_3="mine"), text()),
        (text(), None, text()),
        (text(), text(line_3="new"), text(line_3="new")),
        (None, text(), text()),
        (text(), None, None),
        (None, text(), None),
    ],
    ids=["changed", "removed", "the same change", "the same file", "removed by both", "the author's own"],
)
def test_what_only_the_author_changed_stays(
    tmp_path: Path, before: bytes | None, now: bytes | None, new: bytes | None
) -> None:
    assert plan(tmp_path, before, now, new) == []


@pytest.mark.parametrize(
    ("now", "new"), [(text(line_3="mine"), None), (None, text(line_3="new"))], ids=["changed", "removed"]
)
def test_the_author_wins_over_a_file_that_is_gone_and_is_told(
    tmp_path: Path, now: bytes | None, new: bytes | None
) -> None:
    (change,) = plan(tmp_path, text(), now, new)
    assert change.is_kept
    assert "you" in change.action


@pytest.mark.parametrize("before", [text(), None])
def test_a_conflict_keeps_both_sides(tmp_path: Path, before: bytes | None) -> None:
    (change,) = plan(tmp_path, before, text(line_3="mine"), text(line_3="theirs"))
    assert change.conflicts == 1
    assert change.content is not None
    yours, theirs = re.findall(
        rb"^<<<<<<< yours\n(.*?)=======\n(.*?)>>>>>>> the newer template$", change.content, _LINES
    )[0]
    assert (b"mine" in yours, b"theirs" in yours) == (b"theirs" in theirs, b"mine" in theirs) == (True, False)


def test_a_plan_writes_nothing_and_its_application_all(tmp_path: Path) -> None:
    changes = plan(tmp_path, text(), text(), text(line_3="new"))
    assert (tmp_path / "a/file.txt").read_bytes() == text()
    new = {PurePosixPath("a/file.txt"): text(line_3="new")}
    apply_update(tmp_path, changes, Record({"name": "x"}, new))
    assert (tmp_path / "a/file.txt").read_bytes() == text(line_3="new")
    assert Record.read(tmp_path) == Record({"name": "x"}, new)


def test_an_update_changes_adds_and_removes_files_and_keeps_those_of_the_author(tmp_path: Path) -> None:
    def files(**contents: str) -> dict[PurePosixPath, bytes]:
        return {PurePosixPath(name.replace("__", "/")): content.encode() for name, content in contents.items()}

    before = files(same="1", changed="1", removed="1", kept="1", left_out="1", file="1")
    new = files(same="1", changed="2", added__deep__file="2", left_out="2", file="2")
    for path, content in before.items():
        (tmp_path / path).write_bytes(content)
    (tmp_path / "kept").write_text("mine")
    (tmp_path / "left_out").unlink()
    changes = plan_update(tmp_path, Record({}, before), new)
    assert [(str(change.path), change.action.partition(":")[0]) for change in changes] == [
        ("added/deep/file", "added"),
        ("changed", "updated"),
        ("file", "updated"),
        ("kept", "kept"),
        ("left_out", "skipped"),
        ("removed", "removed"),
    ]
    apply_update(tmp_path, changes, Record({}, new))
    present = {
        path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*") if path.is_file()
    }
    del present[str(RECORD)]
    assert present == {"same": "1", "changed": "2", "file": "2", "added/deep/file": "2", "kept": "mine"}


def test_a_file_where_the_template_had_a_folder_is_no_file_of_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    path = PurePosixPath("a/file.txt")
    (change,) = plan_update(tmp_path, Record({}, {path: text()}), {path: text(line_3="new")})
    assert change.action.startswith("skipped: you removed this file")


def test_an_update_that_cannot_write_says_how_to_undo_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(ConfigError, match=r"the update failed \(.*\): to undo its changes, run: git restore \."):
        apply_update(tmp_path, [Change(PurePosixPath("a/b"), "added", b"1")], Record({}, {}))


@pytest.mark.parametrize("path", ["/etc/passwd", "../neighbour.txt", "a/../../b"])
def test_a_record_cannot_make_an_update_write_elsewhere(tmp_path: Path, path: str) -> None:
    (tmp_path / RECORD).write_text(json.dumps({"format": 1, "answers": {}, "files": {path: "x"}}))
    with pytest.raises(ConfigError, match="outside the plugin"):
        Record.read(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        *((content, "restore it from git") for content in ("", "[]", "{}", "null", '{"format": 1}')),
        ('{"format": 1, "answers": {}, "files": []}', "restore it from git"),
        ('{"format": 1, "answers": 1, "files": {}}', "restore it from git"),
        ('{"format": 2}', "was written by a newer jackfield-new: run pip install --upgrade jackfield-new"),
    ],
)
def test_a_record_that_cannot_be_read_is_an_error_with_a_next_step(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / RECORD).write_text(content)
    with pytest.raises(ConfigError, match=says):
        Record.read(tmp_path)


def test_only_a_clean_folder_of_a_repository_may_be_updated(tmp_path: Path, git: Git) -> None:
    with pytest.raises(ConfigError, match="not in a git repository"):
        check_clean(tmp_path)
    git("init", "-q")
    check_clean(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="uncommitted changes"):
        check_clean(tmp_path)
    git("add", ".")
    git("commit", "-qm", "all")
    check_clean(tmp_path)
    (tmp_path / "plugin").mkdir()
    (tmp_path / "file").write_text("changed beside the plugin")
    check_clean(tmp_path / "plugin")


def test_without_git_nothing_is_updated_and_no_address_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    needs_git = "an update needs git to show and undo its changes: install git "
    with pytest.raises(ConfigError, match=needs_git):
        check_clean(tmp_path)
    with pytest.raises(ConfigError, match=needs_git):
        plan(tmp_path, text(), text(line_3="mine"), text(line_15="new"))
    assert plan(tmp_path, text(), text(), text(line_3="new"))[0].action == "updated"
    assert url_of_repository(tmp_path) == ""


def test_a_folder_in_place_of_a_file_stops_the_update_before_anything_is_written(tmp_path: Path) -> None:
    path = PurePosixPath("a/file.txt")
    (tmp_path / path).mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"file\.txt cannot be read \(.*\): nothing was changed$"):
        plan_update(tmp_path, Record({}, {path: text()}), {path: text(line_3="new")})


def test_a_made_plugin_is_updated(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record says what an older template wrote; here, that a line of the tool was another one."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "tool", "tide", "--author", "A. Uthor"]) == 0
    plugin = tmp_path / "jackfield-tide"
    git("init", "-q", cwd=plugin)
    git("add", ".", cwd=plugin)
    git("commit", "-qm", "made", cwd=plugin)
    assert main(["new", "--update", "--dir", str(plugin)]) == 0
    assert "is up to date with the template" in capsys.readouterr().out
    for words in (["tool"], ["tool", "tide"]):
        assert main(["new", *words, "--update", "--dir", str(plugin)]) == 1
        assert "an update cannot change the kind or the name: omit both" in capsys.readouterr().err
    assert git("status", "--porcelain", cwd=plugin) == ""

    record = Record.read(plugin)
    readme, project = PurePosixPath("README.md"), PurePosixPath("pyproject.toml")
    older = {**record.files, readme: b"# An older template\n" + record.files[readme]}
    (plugin / RECORD).write_bytes(Record(record.answers, older).to_bytes())
    (plugin / readme).write_bytes(older[readme] + b"\nMy own words.\n")
    (plugin / project).write_bytes((plugin / project).read_bytes().replace(b'version = "0.1.0"', b'version = "0.2.0"'))
    assert main(["new", "--update", "--dir", str(plugin)]) == 1
    assert "uncommitted changes" in capsys.readouterr().err

    assert main(["new", "--update", "--force", "--dir", str(plugin), "--url", "https://code.example.org/a/tide"]) == 0
    assert (plugin / readme).read_bytes() == record.files[readme] + b"\nMy own words.\n"
    assert 'version = "0.2.0"' in (plugin / project).read_text()
    assert 'Repository = "https://code.example.org/a/tide"' in (plugin / project).read_text()
    assert Record.read(plugin).answers["url"] == "https://code.example.org/a/tide"
    assert capsys.readouterr().out.startswith("README.md: merged with your changes\npyproject.toml: merged")


def test_an_update_with_a_conflict_ends_with_1_and_the_next_one_is_clean(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "tool", "tide"]) == 0
    plugin = tmp_path / "jackfield-tide"
    record = Record.read(plugin)
    readme, changes = PurePosixPath("README.md"), PurePosixPath("CHANGELOG.md")
    older = {path: b"# Older\n" + content.partition(b"\n")[2] for path, content in record.files.items()}
    older = {**record.files, readme: older[readme], changes: older[changes]}
    (plugin / RECORD).write_bytes(Record(record.answers, older).to_bytes())
    (plugin / changes).write_bytes(older[changes])
    (plugin / readme).write_bytes(older[readme].replace(b"# Older", b"# Mine"))
    capsys.readouterr()
    assert main(["new", "--update", "--force", "--dir", str(plugin)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "CHANGELOG.md: updated",
        "README.md: CONFLICT in 1 place: look for <<<<<<<",
        "Resolve the conflicts, run the tests and commit; git diff shows all changes.",
    ]
    assert (plugin / changes).read_bytes() == record.files[changes]
    (plugin / readme).write_bytes(b"# Mine\n" + record.files[readme].partition(b"\n")[2])
    monkeypatch.chdir(plugin)
    assert main(["new", "--update", "--force"]) == 0  # the plugin in the working directory
    assert capsys.readouterr().out == "This plugin is up to date with the template.\n"


def test_an_update_of_something_else_says_where_it_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--update", "--dir", str(tmp_path)]) == 1
    assert "change to the plugin's folder, or pass --dir PATH" in capsys.readouterr().err
    assert main(["new", "tool", "--update", "--dir", str(tmp_path)]) == 1


# --- addresses ---


def test_the_address_of_a_plugin_is_that_of_its_repository(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert url_of_repository(tmp_path) == ""
    assert url_of_repository(tmp_path / "absent") == ""
    git("init", "-q")
    git("remote", "add", "origin", "git@code.example.org:jack/plugins.git")
    (tmp_path / "plugins").mkdir()
    monkeypatch.chdir("/")  # where there is no repository
    assert main(["new", "tool", "zero", "--dir", str(tmp_path / "zero")]) == 0
    assert 'Repository = "https://code.example.org/jack/plugins"' in (tmp_path / "zero/pyproject.toml").read_text()
    monkeypatch.chdir(tmp_path)
    assert main(["new", "tool", "three", "--in-repo"]) == 0, "a plugin in our own repository has no address"
    for name, options in (("one", []), ("two", ["--url", "https://code.example.org/two"])):
        assert main(["new", "tool", name, *options]) == 0
        expected = options[-1] if options else "https://code.example.org/jack/plugins"
        assert f'Repository = "{expected}"' in (tmp_path / f"jackfield-{name}/pyproject.toml").read_text()


def test_without_an_address_the_metadata_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "tool", "tide"]) == 0
    project = (tmp_path / "jackfield-tide/pyproject.toml").read_text()
    assert "urls" not in project
    assert "TODO" not in project


@pytest.mark.parametrize("url", ["ftp://code.example.org/a", "https://a b", 'https://a"b', "https://a.example/b/"])
def test_an_address_that_cannot_be_one_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "tool", "tide", "--url", url]) == 1
    assert capsys.readouterr().err.startswith(("jackfield: url: Use a URL ", "jackfield: url: Remove "))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://code.example.org/jack/field.git", "https://code.example.org/jack/field"),
        ("https://user:token@code.example.org/jack/field/", "https://code.example.org/jack/field"),
        ("git@code.example.org:jack/field.git", "https://code.example.org/jack/field"),
        ("https://Code.Example.ORG/Jack/Field.git", "https://code.example.org/Jack/Field"),
        ("ssh://git@code.example.org:2222/jack/field", "https://code.example.org/jack/field"),
        ("/srv/git/field.git", ""),
        ("file:///srv/git/field.git", ""),
        ("../field", ""),
        ("http://127.0.0.1:3000/jack/field", ""),
        ("http://localhost/jack/field", ""),
        ("git@buildbox.local:jack/field.git", ""),
        ("git@buildbox:jack/field.git", ""),
        ("https://git.internal/jack/field", ""),
        ("https://git.LOCALHOST/jack/field", ""),
        ("https://git.localdomain/jack/field", ""),
        ("https://git.lan/jack/field", ""),
        ("", ""),
    ],
)
def test_an_address_is_public_or_left_out(remote: str, url: str) -> None:
    assert public_url(remote) == url


def test_a_file_that_git_cannot_merge_stops_the_update_before_anything_is_written(tmp_path: Path) -> None:
    path = PurePosixPath("logo.png")
    (tmp_path / path).write_bytes(b"\0mine")
    with pytest.raises(ConfigError, match=r"git cannot merge a file: .*binary"):
        plan_update(tmp_path, Record({}, {path: b"\0base"}), {path: b"\0new"})
    assert (tmp_path / path).read_bytes() == b"\0mine"
