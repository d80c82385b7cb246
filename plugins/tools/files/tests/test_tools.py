"""What the tools do to files, and what they leave as it was."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import socket
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent, call_tool
from jackfield.errors import ConfigError, ToolArgumentError, ToolServiceError
from jackfield.plugins import ToolSpec, default_host
from jackfield.tools import BaseTool, ToolContext, Workspace
from jackfield_files import folder, tools
from jackfield_files.config import FilesConfig
from jackfield_files.edits import Edit, apply_edits
from jackfield_files.globs import matcher
from jackfield_files.search import compile_expression, lines_with
from jackfield_files.texts import decode
from jackfield_files.tools import EditFile, ListFiles, ReadFile, SearchFiles, WriteFile


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def do(root: Path) -> Callable[..., str]:
    """Call a tool on the workspace: `do(ReadFile, path="a")`; settings come as `cfg`."""

    def call(tool: type[BaseTool], *, cfg: dict[str, Any] | None = None, **arguments: Any) -> str:
        answer = tool(cfg).call(arguments, context=ToolContext(workspace=Workspace(root)))
        assert isinstance(answer, str)
        return answer

    return call


Do = Callable[..., str]


def edit(do: Do, path: str, old: str, new: str, **options: Any) -> str:
    return do(EditFile, path=path, edits=[{"old_text": old, "new_text": new, **options}])


# --- read ---


def test_a_long_file_is_read_in_parts_that_say_where_to_go_on(root: Path, do: Do) -> None:
    (root / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    assert do(ReadFile, path="a.txt", cfg={"max_lines": 2}) == (
        "1\tline 1\n2\tline 2\n[lines 1 to 2 of a.txt; continue with start_line=3]"
    )
    assert do(ReadFile, path="a.txt", start_line=9) == "9\tline 9\n10\tline 10"
    assert do(ReadFile, path="a.txt", start_line=4, end_line=4).startswith("4\tline 4\n[")
    many = do(ReadFile, path="a.txt", cfg={"max_chars": 100, "max_line_chars": 20}, start_line=1)
    assert many.splitlines()[:2] == ["1\tline 1", "2\tline 2"]
    with pytest.raises(ToolArgumentError, match=r"a\.txt has 10 lines: start_line is past the end of the file"):
        do(ReadFile, path="a.txt", start_line=11)
    with pytest.raises(ToolArgumentError, match="end_line 1 is before start_line 2"):
        do(ReadFile, path="a.txt", start_line=2, end_line=1)


def test_parts_put_together_are_the_file(root: Path, do: Do) -> None:
    lines = [f"{'x' * (number % 60)} {number}" for number in range(300)]
    (root / "a.txt").write_text("\n".join(lines))
    read: list[str] = []
    while len(read) < len(lines):
        part = do(ReadFile, path="a.txt", start_line=len(read) + 1, cfg={"max_chars": 500})
        read += [line.partition("\t")[2] for line in part.splitlines() if not line.startswith("[")]
    assert read == lines


def test_a_file_of_one_huge_line_is_read_within_bounds(root: Path, do: Do) -> None:
    (root / "a.txt").write_bytes(b"x" * 3_000_000 + b"\nend")
    assert do(ReadFile, path="a.txt") == f"1\t{'x' * 2000}[… 2,998,001 more characters]\n2\tend"
    given_up = do(ReadFile, path="a.txt", start_line=2, cfg={"max_scan_bytes": 100_000})
    assert given_up == "[reading of a.txt stopped at line 1, before the end of the file]"


def test_reading_ends_when_its_time_is_over(root: Path, do: Do) -> None:
    (root / "a").write_text("\n" * 10_000)
    shown = do(ReadFile, path="a", start_line=10_000, cfg={"time_limit_s": 1e-9})
    assert shown == "[reading of a stopped at line 1, before the end of the file]"


def test_a_file_with_a_hole_of_a_terabyte_ends_within_bounds(root: Path, do: Do) -> None:
    with (root / "hole.txt").open("wb") as file:
        file.write(b"x\n" * 5000)
        file.truncate(2**40)
    assert do(ReadFile, path="hole.txt", end_line=1).startswith("1\tx\n")
    cfg = {"max_scan_bytes": 100_000}
    assert "stopped at line" in do(ReadFile, path="hole.txt", start_line=6000, cfg=cfg)
    assert "skipped 1 file too large" in do(SearchFiles, query="nothing")
    with pytest.raises(ToolArgumentError, match="larger than 10,485,760 bytes"):
        edit(do, "hole.txt", "x", "y")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", "[a is empty]"),
        (b"\n", "1\t"),
        (b"\xef\xbb\xbfone\r\ntwo\r\n", "1\tone\n2\ttwo"),
        ("\ufeffone\n\ufefftwo".encode(), "1\tone\n2\t\ufefftwo"),
        ("\ufeffé\n水".encode("utf-16-le"), "1\té\n2\t水"),
        ("\ufeffé\n水".encode("utf-32-be"), "1\té\n2\t水"),
        (b"caf\xe9 \xff\n", "1\tcaf\\xe9 \\xff"),
        (b"a\rb\x0cc\xe2\x80\xa8d", "1\ta\rb\x0cc\u2028d"),
    ],
)
def test_text_of_any_encoding_is_read(root: Path, do: Do, data: bytes, shown: str) -> None:
    (root / "a").write_bytes(data)
    assert do(ReadFile, path="a") == shown


def test_other_encodings_are_tried_when_they_are_set_and_kept_by_an_edit(root: Path, do: Do) -> None:
    (root / "a").write_bytes("潮汐 twice".encode("gb18030"))
    cfg = {"encodings": ["utf-8", "gb18030"]}
    assert do(ReadFile, path="a", cfg=cfg) == "1\t潮汐 twice"
    assert "1: 潮汐 twice" in do(SearchFiles, query="潮", cfg=cfg)
    do(EditFile, path="a", edits=[{"old_text": "twice", "new_text": "两次"}], cfg=cfg)
    assert (root / "a").read_bytes() == "潮汐 两次".encode("gb18030")
    (root / "b").write_bytes("é".encode("latin-1"))
    with pytest.raises(ToolArgumentError, match=r"the file is encoded as latin-1, which cannot represent '\\u6c34'"):
        do(EditFile, path="b", edits=[{"old_text": "é", "new_text": "水"}], cfg={"encodings": ["utf-8", "latin-1"]})


@pytest.mark.parametrize("name", ["punycode", "idna", "utf-7", "unicode_escape", "base64", "rot13", "gone", "a\0", ""])
def test_only_encodings_of_the_web_can_be_set(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a web encoding"):
        FilesConfig.parse({"encodings": ["utf-8", name]})


def test_each_encoding_of_the_web_can_be_set() -> None:
    names = "utf-8 UTF8 utf-8-sig latin-1 windows-1252 cp874 iso-8859-15 koi8-u macintosh mac-cyrillic ibm866 utf-16 "
    names += "gb2312 GBK gb18030 big5 big5-hkscs euc-jp shift_jis cp932 iso-2022-jp euc-kr cp949 us-ascii"
    assert len(FilesConfig.parse({"encodings": names.split()}).encodings) == len(names.split())


@pytest.mark.parametrize(
    ("name", "encoding", "old"),
    [
        ("utf-8-sig", "utf-8", "old"),
        ("UTF_8_SIG", "utf-8", "é"),
        ("utf-16", "utf-16-le", "旧"),
        ("U16", "utf-16-le", "旧"),
    ],
)
def test_a_file_without_a_byte_order_mark_gets_none_from_an_edit(
    root: Path, do: Do, name: str, encoding: str, old: str
) -> None:
    for encodings in ([name], ["ascii", name]):
        (root / "a").write_bytes(f"数据{old}".encode(encoding))
        assert do(ReadFile, path="a", cfg={"encodings": encodings}) == f"1\t数据{old}"
        assert f"1: 数据{old}" in do(SearchFiles, query="数据", cfg={"encodings": encodings})
        do(EditFile, path="a", edits=[{"old_text": old, "new_text": "新"}], cfg={"encodings": encodings})
        assert (root / "a").read_bytes() == "数据新".encode(encoding)


def test_what_is_not_a_text_file_is_refused(root: Path, do: Do) -> None:
    (root / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(root)  # the path of a socket must be short
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        for path, says in (
            ("image.png", "image.png is not a text file: it contains 10 bytes of binary data"),
            ("pipe", "not a regular file"),
            ("socket", "not a regular file"),
            ("folder", "folder is a folder: use list_files to see its contents"),
            (".", "is a folder"),
        ):
            with pytest.raises(ToolArgumentError, match=says):
                do(ReadFile, path=path)
            with pytest.raises(ToolArgumentError, match=says):
                edit(do, path, "a", "b")
            if path != "image.png":
                with pytest.raises(ToolArgumentError, match=says):
                    do(WriteFile, path=path, content="x")
                assert "Nothing was found." in do(SearchFiles, query="PNG")


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="this system has no /dev/zero")
def test_a_device_is_refused(root: Path, do: Do) -> None:
    try:
        os.mknod(root / "zero", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root may make devices here")
    with pytest.raises(ToolArgumentError, match="not a regular file"):
        do(ReadFile, path="zero")


def test_a_missing_file_is_answered_with_close_names(root: Path, do: Do) -> None:
    (root / "notes").mkdir()
    (root / "notes/tides.md").write_text("x")
    with pytest.raises(ToolArgumentError, match=r"notes/tide.md does not exist; close names: notes/tides.md"):
        do(ReadFile, path="notes/tide.md")
    with pytest.raises(ToolArgumentError, match=r"note does not exist; close names: notes$"):
        do(ReadFile, path="note")


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_line_of_just_the_limit_is_whole(root: Path, do: Do, end: str) -> None:
    (root / "a").write_bytes(f"{'x' * 20}{end}{'y' * 21}{end}next".encode())
    whole, cut, last = do(ReadFile, path="a", cfg={"max_line_chars": 20}).splitlines()
    assert (whole, last) == (f"1\t{'x' * 20}", "3\tnext")
    # The line's end is counted, too.
    assert cut == f"2\t{'y' * 20}[… {1 + len(end)} more characters]"


def test_a_result_of_just_the_limit_is_whole_and_a_line_that_is_longer_comes_alone(root: Path, do: Do) -> None:
    (root / "a").write_text(f"{'x' * 49}\n{'y' * 49}\nz")
    assert do(ReadFile, path="a", end_line=2, cfg={"max_chars": 100}).splitlines()[:2] == [
        f"1\t{'x' * 49}", f"2\t{'y' * 49}"
    ]  # fmt: skip
    shorter = do(ReadFile, path="a", cfg={"max_chars": 100})
    assert shorter.endswith("[lines 1 to 2 of a; continue with start_line=3]")
    (root / "b").write_text(f"{'x' * 200}\nnext")
    assert do(ReadFile, path="b", cfg={"max_chars": 100}) == (
        f"1\t{'x' * 200}\n[lines 1 to 1 of b; continue with start_line=2]"
    )


def test_the_end_of_a_file_is_not_announced_as_more(root: Path, do: Do) -> None:
    (root / "a").write_text("1\n2\n")
    for cfg, more in (({"max_lines": 2}, {}), ({}, {"end_line": 2}), ({}, {"end_line": 9})):
        assert do(ReadFile, path="a", cfg=cfg, **more) == "1\t1\n2\t2"


def test_a_character_across_the_looked_at_beginning_does_not_change_the_encoding(root: Path, do: Do) -> None:
    text = "a" * 8191 + "é needle"
    (root / "a").write_text(text)
    cfg = {"encodings": ["utf-8", "cp1252"], "max_line_chars": 9000}
    assert do(ReadFile, path="a", cfg=cfg) == f"1\t{text}"
    assert "aé needle" in do(SearchFiles, query="needle", cfg=cfg)
    (root / "b").write_bytes(b"a\xc3")  # a whole file ends in no half character
    assert do(ReadFile, path="b", cfg=cfg) == "1\ta\xc3".replace("\\xc3", "\xc3")


@pytest.mark.parametrize(("position", "is_text"), [(8191, False), (8192, True)])
def test_only_a_null_character_near_the_beginning_makes_a_file_binary(
    root: Path, do: Do, position: int, is_text: bool
) -> None:
    (root / "a").write_bytes(b"a" * position + b"\0 needle")
    with nullcontext() if is_text else pytest.raises(ToolArgumentError, match="binary"):
        assert do(ReadFile, path="a").startswith("1\taaa")
    assert ("needle" in do(SearchFiles, query="needle")) is is_text


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EACCES, "cannot be accessed: permission denied"),
        (errno.EPERM, "cannot be accessed: permission denied"),
        (errno.ENOTDIR, "has a path component that is not a folder"),
        (errno.ELOOP, "leads through a newly created link: try again"),
        (errno.ENAMETOOLONG, "is too long for a file name"),
        (errno.ENOSPC, "cannot be written: the disk is full"),
        (errno.EDQUOT, "cannot be written: the disk is full"),
        (errno.EROFS, "cannot be written: the disk is read-only"),
        (errno.EIO, "cannot be used: Input/output error"),
        (errno.ENOENT, "does not exist"),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else "",
)
def test_each_failure_of_the_system_is_said_in_words(
    root: Path, do: Do, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    (root / "folder").mkdir()

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(folder, "_folder", fail)
    with pytest.raises(ToolArgumentError, match=rf"^folder/a\\nb {reason}$"):
        do(ReadFile, path="folder/a\nb")


# --- write and edit ---


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_file_that_root_changes_keeps_its_owner(root: Path, do: Do) -> None:
    (root / "a").write_text("once")
    os.chown(root / "a", 12345, 23456)
    edit(do, "a", "once", "twice")
    status = (root / "a").stat()
    assert ((root / "a").read_text(), status.st_uid, status.st_gid) == ("twice", 12345, 23456)


def test_a_text_is_whole_on_the_disk_before_it_takes_the_place_of_the_old_one(
    root: Path, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    (root / "a").write_text("old")
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append(os.fstat(file).st_size))
    rename = os.rename

    def renamed(*names: Any, **folders: Any) -> None:
        sizes.append(-1)
        rename(*names, **folders)

    monkeypatch.setattr(os, "rename", renamed)
    do(WriteFile, path="a", content="x" * 1000)
    assert sizes == [1000, -1]


def test_an_edit_makes_no_folder(root: Path, do: Do) -> None:
    with pytest.raises(ToolArgumentError, match=r"new/a does not exist$"):
        edit(do, "new/a", "once", "twice")
    with pytest.raises(ToolArgumentError, match=r"a does not exist$"):
        edit(do, "a", "once", "twice")
    assert list(root.iterdir()) == []


def test_a_file_of_just_the_limit_can_be_written_edited_and_searched(root: Path, do: Do) -> None:
    cfg = {"max_file_bytes": 8}
    do(WriteFile, path="a", content="é twice", cfg=cfg)
    do(EditFile, path="a", edits=[{"old_text": "twice", "new_text": "third"}], cfg=cfg)
    assert do(SearchFiles, query="third", cfg=cfg) == "a\n1: é third"
    with pytest.raises(ToolArgumentError, match="would be 9 bytes; the limit is 8"):
        # 8 characters
        do(EditFile, path="a", edits=[{"old_text": "third", "new_text": "thirds"}], cfg=cfg)
    (root / "b").write_text("third 789")
    with pytest.raises(ToolArgumentError, match="b is larger than 8 bytes"):
        do(EditFile, path="b", edits=[{"old_text": "third", "new_text": "x"}], cfg=cfg)
    assert do(SearchFiles, query="third", cfg=cfg) == "a\n1: é third\n\n[skipped 1 file too large to search]"


def test_the_copy_of_a_private_file_is_private_while_it_is_written(
    root: Path, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "key").write_text("a secret")
    (root / "key").chmod(0o600)
    modes: list[int] = []
    keep_rights = folder._keep_rights

    def note(file: int, status: os.stat_result) -> None:
        modes.append(os.fstat(file).st_mode & 0o7777)
        keep_rights(file, status)

    monkeypatch.setattr(folder, "_keep_rights", note)
    do(WriteFile, path="key", content="another secret")
    assert modes == [0o600]
    assert (root / "key").stat().st_mode & 0o7777 == 0o600


def test_a_file_is_written_whole_with_its_folders_and_keeps_its_permissions(root: Path, do: Do) -> None:
    assert do(WriteFile, path="a/b/c.sh", content="#!/bin/sh\n") == "Made a/b/c.sh: 1 line, 10 bytes."
    (root / "a/b/c.sh").chmod(0o750)
    assert do(WriteFile, path="a/b/c.sh", content="") == "Replaced a/b/c.sh: 0 lines, 0 bytes."
    assert (root / "a/b/c.sh").stat().st_mode & 0o7777 == 0o750
    assert [path.name for path in (root / "a/b").iterdir()] == ["c.sh"], "something was left beside it"


def test_a_program_that_runs_as_somebody_else_does_not_after_a_change(root: Path, do: Do) -> None:
    (root / "tool").write_text("x")
    (root / "tool").chmod(0o4755)
    edit(do, "tool", "x", "y")
    assert (root / "tool").stat().st_mode & 0o7777 == 0o755


def test_other_names_of_a_file_keep_the_old_contents(root: Path, do: Do, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("mine")
    os.link(tmp_path / "outside", root / "inside")
    do(WriteFile, path="inside", content="yours")
    edit(do, "inside", "yours", "theirs")
    assert (tmp_path / "outside").read_text() == "mine"


def test_a_read_only_file_and_a_file_too_large_are_left_alone(root: Path, do: Do) -> None:
    (root / "a").write_text("a")
    (root / "a").chmod(0o444)
    for change in (lambda: do(WriteFile, path="a", content="b"), lambda: edit(do, "a", "a", "b")):
        with pytest.raises(ToolArgumentError, match="a is read-only"):
            change()
    with pytest.raises(ToolArgumentError, match="would be 101 bytes; the limit is 100"):
        do(WriteFile, path="b", content="x" * 101, cfg={"max_file_bytes": 100})
    (root / "c").write_text("x" * 60)
    grown = {"old_text": "x", "new_text": "xx", "replace_all": True}
    with pytest.raises(ToolArgumentError, match="longer than 100 characters"):
        do(EditFile, path="c", edits=[grown], cfg={"max_file_bytes": 100})
    assert (root / "a").read_text() == "a"
    assert not (root / "b").exists()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    root: Path, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolArgumentError, match="a cannot be written: the disk is full"):
        do(WriteFile, path="a", content="new")
    assert (root / "a").read_text() == "old"
    assert list(root.iterdir()) == [root / "a"]


def test_an_edit_changes_what_it_names_and_no_other_byte(root: Path, do: Do) -> None:
    before = b"\xef\xbb\xbfone\r\ntw\xff two\r\nthree\r\n"
    (root / "a").write_bytes(before)
    assert edit(do, "a", " two\nthree", " 2\n3\n4") == "Edited a: 1 replacement, at line 2."
    assert (root / "a").read_bytes() == b"\xef\xbb\xbfone\r\ntw\xff 2\r\n3\r\n4\r\n"


def test_several_edits_are_made_all_or_not_at_all(root: Path, do: Do) -> None:
    (root / "a").write_text("one two\ntwo\n")
    edits = [{"old_text": "one", "new_text": "1"}, {"old_text": "1 two", "new_text": "1 2"}]
    assert do(EditFile, path="a", edits=edits) == "Edited a: 2 replacements, at line 1, 1."
    with pytest.raises(ToolArgumentError, match="edit 2: old_text does not occur in the file"):
        do(EditFile, path="a", edits=[{"old_text": "two", "new_text": "2"}, {"old_text": "gone", "new_text": ""}])
    assert (root / "a").read_text() == "1 2\ntwo\n"


def test_a_text_that_occurs_more_than_once_is_answered_with_where(root: Path, do: Do) -> None:
    (root / "a").write_text("x = 1\ny = 1\nz = 1\n")
    with pytest.raises(ToolArgumentError, match="occurs more than once, on lines 1, 2, 3: add surrounding lines"):
        edit(do, "a", " = 1", " = 2")
    assert edit(do, "a", " = 1", " = 2", replace_all=True) == "Edited a: 3 replacements, at line 1, 2, 3."
    (root / "b").write_text("aaa")
    with pytest.raises(ToolArgumentError, match="occurs more than once, on lines 1, 1"):
        edit(do, "b", "aa", "b")


def test_a_text_that_is_not_there_is_answered_with_what_is_like_it(root: Path, do: Do) -> None:
    (root / "a").write_text("def tides(day):\n    return 2\n\ndef ebb():\n    return 3\n")
    with pytest.raises(ToolArgumentError, match=r"most similar lines .*:\n1\tdef tides\(day\):"):
        edit(do, "a", "def tide(day):", "x")
    with pytest.raises(ToolArgumentError, match="the same text with different whitespace occurs at line 4"):
        edit(do, "a", "def ebb():\n  return 3", "x")
    with pytest.raises(ToolArgumentError, match=r"does not occur in the file$"):
        edit(do, "a", "\n\n\n", "x")


def test_an_edit_that_looks_for_something_like_a_huge_file_ends(root: Path, do: Do) -> None:
    (root / "a").write_text("".join(f"{'ab' * 50} {number}\n" for number in range(60_000)))
    with pytest.raises(ToolArgumentError, match="most similar lines"):
        edit(do, "a", "ab" * 4_000_000, "x")


def test_a_text_that_occurs_millions_of_times_is_answered_at_once(root: Path, do: Do) -> None:
    (root / "a").write_text("a\n" * 2_000_000)
    with pytest.raises(ToolArgumentError, match="on lines 1, 2, 3, 4, 5, …: add"):
        edit(do, "a", "a", "b")
    assert edit(do, "a", "a\n", "b\n", replace_all=True) == "Edited a: 2,000,000 replacements, at line 1, 2, 3, 4, 5."


def test_edits_at_once_are_all_there_afterwards(root: Path, do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_files.folder._PATIENCE_S", 600)  # for slow disks
    (root / "a").write_text("".join(f"<{number}>\n" for number in range(40)))
    failures: list[BaseException] = []

    def work(numbers: range) -> None:
        try:
            for number in numbers:
                edit(do, "a", f"<{number}>", f"[{number}]")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(range(start, 40, 4),)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (root / "a").read_text() == "".join(f"[{number}]\n" for number in range(40))


def test_who_locks_a_folder_for_ever_is_an_error_and_no_wait_for_ever(
    root: Path, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("jackfield_files.folder._PATIENCE_S", 0.05)
    held = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ToolServiceError, match="the folder containing a is in use by another program: try again"):
            do(WriteFile, path="a", content="x")
    finally:
        os.close(held)


def model_of(text: str, edits: list[Edit]) -> str | None:
    """What the edits make of a text; None if one of them does not fit."""
    for edit in edits:
        places = [start for start in range(len(text)) if text.startswith(edit.old, start)]
        if not places or (len(places) > 1 and not edit.everywhere):
            return None
        text = edit.new.join(text.split(edit.old))
    return text


small = st.text("ab\n é", max_size=12)
some_edits = st.lists(st.builds(Edit, st.text("ab\n é", min_size=1, max_size=3), small, st.booleans()), max_size=4)


@given(small, some_edits)
def test_edits_do_what_a_plain_model_does(text: str, edits: list[Edit]) -> None:
    expected = model_of(text, edits)
    if expected is None:
        with pytest.raises(ToolArgumentError):
            apply_edits(text, edits, most_chars=10_000)
    else:
        assert apply_edits(text, edits, most_chars=10_000)[0] == expected


@given(small, some_edits)
def test_edits_of_a_file_with_crlf_are_those_of_one_with_lf(text: str, edits: list[Edit]) -> None:
    try:
        expected = apply_edits(text, edits, most_chars=10_000)[0].replace("\n", "\r\n")
    except ToolArgumentError:
        return
    if "\n" in text:
        assert apply_edits(text.replace("\n", "\r\n"), edits, most_chars=10_000)[0] == expected


@given(st.binary(max_size=60), st.text("xyz", min_size=1, max_size=3))
def test_an_edit_of_any_bytes_leaves_the_others(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, new: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "bytes"
    root.mkdir(exist_ok=True)
    before = b"\xff" + data.replace(b"\0", b"").replace(b"<mark>", b"") + b"<mark>" + data.replace(b"\0", b"")
    if before.startswith((b"\xff\xfe", b"\xfe\xff")) or before.count(b"<mark>") != 1:
        return
    (root / "a").write_bytes(before)
    arguments = {"path": "a", "edits": [{"old_text": "<mark>", "new_text": new}]}
    EditFile().call(arguments, context=ToolContext(workspace=Workspace(root)))
    assert (root / "a").read_bytes() == before.replace(b"<mark>", new.encode())


# --- list and search ---


def test_a_list_has_what_is_below_a_folder_and_does_not_enter_what_is_skipped(root: Path, do: Do) -> None:
    for path in ("src/a.py", "src/deep/b.py", ".git/config", "readme.md", "-rf"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("12")
    (root / "link").symlink_to("src")
    assert do(ListFiles, path=".").splitlines() == [
        "-rf (2 bytes)",
        ".git/ (not entered)",
        "link (a link)",
        "readme.md (2 bytes)",
        "src/",
        "src/a.py (2 bytes)",
        "src/deep/",
        "src/deep/b.py (2 bytes)",
    ]
    assert do(ListFiles, path=".git") == ".git/config (2 bytes)"
    assert do(ListFiles, path="src", depth=1) == "src/a.py (2 bytes)\nsrc/deep/"
    assert do(ListFiles, path="link/", pattern="*.py") == "link/a.py (2 bytes)\nlink/deep/b.py (2 bytes)"
    assert do(ListFiles, path=".", pattern="*.rs") == "[no file matches '*.rs']"
    assert do(ListFiles, path=".", cfg={"max_entries": 2}).splitlines()[2].startswith("[more entries")


def test_a_folder_to_skip_is_skipped_at_any_depth_unless_it_is_named(root: Path, do: Do) -> None:
    for path in ("a/b/node_modules/x.js", "a/b/node_modules.js"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("tide")
    shown = ["a/", "a/b/", "a/b/node_modules/ (not entered)", "a/b/node_modules.js (4 bytes)"]
    assert do(ListFiles, path=".").splitlines() == shown
    assert do(SearchFiles, query="tide") == "a/b/node_modules.js\n1: tide"
    assert do(ListFiles, path="a/b/node_modules") == "a/b/node_modules/x.js (4 bytes)"
    assert do(SearchFiles, query="tide", path="a/b/node_modules") == "a/b/node_modules/x.js\n1: tide"


def test_a_workspace_that_nobody_has_written_to_is_empty(root: Path, do: Do) -> None:
    root.rmdir()
    assert do(ListFiles, path=".") == "[the workspace is empty]"
    assert do(SearchFiles, query="x") == "Nothing was found."
    assert not root.exists()
    assert do(WriteFile, path="a", content="x").startswith("Made")


def test_a_file_whose_name_has_a_line_break_cannot_pretend_to_be_two(root: Path, do: Do) -> None:
    (root / "a\nsecret.txt").write_text("x")
    assert do(ListFiles, path=".") == "a\\nsecret.txt (1 byte)"
    assert do(SearchFiles, query="x") == "a\\nsecret.txt\n1: x"


def test_folders_in_folders_in_folders_are_no_reason_to_fail(root: Path, do: Do) -> None:
    place = os.open(root, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    assert len(do(ListFiles, path=".").splitlines()) == 64


def test_a_folder_that_goes_while_its_parent_is_listed_is_left_out(root: Path) -> None:
    for path in ("a/inner", "b/inner"):
        (root / path).parent.mkdir()
        (root / path).touch()
    found = folder.entries(Workspace(root), ".")
    assert [next(found).path for _ in range(2)] == ["a", "b"]
    shutil.rmtree(root / "a")
    assert [entry.path for entry in found] == ["b/inner"]
    with pytest.raises(ToolArgumentError, match="a does not exist"):
        list(folder.entries(Workspace(root), "a"))


def test_a_folder_with_endless_names_is_read_in_part(root: Path, do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        (root / str(number)).touch()
    monkeypatch.setattr(folder, "_MOST_IN_FOLDER", 4)
    assert len(do(ListFiles, path=".").splitlines()) == 4


def test_lists_and_searches_end_when_their_time_is_over(root: Path, do: Do) -> None:
    (root / "a").write_text("needle")
    assert do(ListFiles, path=".", cfg={"time_limit_s": 1e-9}) == (
        "[more entries omitted: list one of the folders, or pass a pattern]"
    )
    assert do(SearchFiles, query="needle", cfg={"time_limit_s": 1e-9}) == (
        "Nothing was found.\n\n[there may be more matches: search a single folder, or use a more specific query]"
    )


def test_a_list_and_a_search_have_just_the_seconds_of_the_settings(
    root: Path, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        (root / str(number)).write_text("needle")
    clock = itertools.count(100)  # a second passes each time that somebody looks
    monkeypatch.setattr(tools.time, "monotonic", lambda: next(clock))
    assert len(do(ListFiles, path=".", cfg={"time_limit_s": 5}).splitlines()) == 5 + 1
    assert do(SearchFiles, query="needle", cfg={"time_limit_s": 5}).count(": needle") == 5


def test_a_search_reads_so_many_bytes_altogether(root: Path, do: Do) -> None:
    for name in ("a", "b", "c"):
        (root / name).write_text("needle ...")
    found = do(SearchFiles, query="needle", cfg={"max_scan_bytes": 11})
    assert [line for line in found.splitlines() if len(line) == 1] == ["a", "b"]
    assert found.endswith("[there may be more matches: search a single folder, or use a more specific query]")
    assert "more matches" not in do(SearchFiles, query="needle", cfg={"max_scan_bytes": 31})


def test_a_list_of_just_the_limit_is_whole(root: Path, do: Do) -> None:
    for name in ("a", "b"):
        (root / name).touch()
    assert do(ListFiles, path=".", cfg={"max_entries": 2}) == "a (0 bytes)\nb (0 bytes)"


def test_the_folders_to_skip_are_those_of_the_settings(root: Path, do: Do) -> None:
    for path in ("node_modules/a", "build/a"):
        (root / path).parent.mkdir()
        (root / path).write_text("needle")
    cfg = {"skip": ["build"]}
    assert do(ListFiles, path=".", cfg=cfg) == "build/ (not entered)\nnode_modules/\nnode_modules/a (6 bytes)"
    assert do(SearchFiles, query="needle", cfg=cfg) == "node_modules/a\n1: needle"


def test_a_search_finds_the_first_line_of_a_file_with_a_mark(root: Path, do: Do) -> None:
    for name, encoding in (("a", "utf-8-sig"), ("b", "utf-16")):
        (root / name).write_bytes("high water\r\nlow".encode(encoding))
    assert do(SearchFiles, query="^high water$", regex=True) == "a\n1: high water\n\nb\n1: high water"


def test_a_search_of_a_file_that_is_no_text_finds_nothing_and_one_that_is_missing_fails(root: Path, do: Do) -> None:
    (root / "binary").write_bytes(b"needle\0")
    assert do(SearchFiles, query="needle", path="binary") == "Nothing was found."
    os.mkfifo(root / "pipe")
    for path in ("gone", "pipe"):
        with pytest.raises(ToolArgumentError, match=path):
            do(SearchFiles, query="needle", path=path)


@given(
    st.lists(st.sampled_from(["", "x", "ax", "b", "xx"]), min_size=1, max_size=12),
    st.integers(0, 3), st.integers(1, 4),
)  # fmt: skip
def test_a_search_shows_as_many_matches_and_lines_around_them_as_are_wanted(
    lines: list[str], context: int, most: int
) -> None:
    data = "\n".join(lines).encode()
    found = lines_with(compile_expression("x", is_regex=False, ignores_case=False), data, context=context, most=most)
    matches = [number for number, line in enumerate(lines) if "x" in line][:most]
    last = len(lines) - (lines[-1] == "")  # after the last line break comes no line
    near = {number for match in matches for number in range(match - context, match + context + 1)}
    assert [(line.number - 1, line.text, line.matches) for line in found] == [
        (number, lines[number], number in matches) for number in sorted(near) if 0 <= number < last
    ]


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("*.py", ["a.py", "b/c/a.py"], ["a.pyc", "a.py/b"]),
        ("docs/**/*.md", ["docs/a.md", "docs/b/c/a.md"], ["a.md", "docs/a.txt", "x/docs/a.md"]),
        ("src/*", ["src/a"], ["src/a/b"]),
        ("src/**", ["src/a", "src/a/b"], ["a"]),
        ("*.{js,ts}", ["a.js", "b/a.ts"], ["a.jsx", "a.js,ts"]),
        ("[ab]?.t[!x]t", ["ac.txt".replace("x", "y"), "b/bc.tet"], ["ac.txt", "cc.tet"]),
        ("./a.b+(c)", ["a.b+(c)"], ["aXb+(c)"]),
        ("a[!x]b", ["ayb", "c/ayb"], ["a/b", "axb"]),
        ("[]a].x", ["].x", "a.x"], ["b.x", "[]a].x"]),
        ("[^a-c]", ["d", "-"], ["b", "a"]),
        ("/a/*", ["a/b"], ["b/a/b"]),
        ("a[", ["a["], ["a"]),
        ("-rf", ["-rf", "a/-rf"], ["rf"]),
        ("a,b", ["a,b", "c/a,b"], ["a", "b"]),
        ("a**", ["a\nb/c"], ["ba"]),
        ("x" * 1000, ["x" * 1000], ["x"]),
        ("", ["anything", "a/b"], []),
    ],
)
def test_patterns_fit_what_they_should(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    match = matcher(pattern)
    assert [path for path in fits if not match(path)] == []
    assert [path for path in fits_not if match(path)] == []


@pytest.mark.parametrize(
    ("query", "data", "context", "numbers"),
    [
        ("$", b"ab", 0, [1]),
        ("b*$", b"ab\ncb", 0, [1, 2]),
        ("^", b"", 0, []),
        ("^", b"a\n", 0, [1]),
        ("b", b"a\nb\n", 1, [1, 2]),
        ("a", b"a\n", 2, [1]),
        ("a" * 1000, b"a" * 1000, 0, [1]),
    ],
)
def test_there_is_no_line_after_the_last_line_break(query: str, data: bytes, context: int, numbers: list[int]) -> None:
    expression = compile_expression(query, is_regex=True, ignores_case=False)
    assert [line.number for line in lines_with(expression, data, context=context, most=9)] == numbers


def test_a_search_reads_a_linked_file_once_and_counts_matches_only(root: Path, do: Do) -> None:
    for name in ("a", "b", "c"):
        (root / name).write_text("one\ntides\ntwo\n")
    (root / "link").symlink_to("a")
    (root / "folder").symlink_to(".")
    assert do(SearchFiles, query="tides").count("2: tides") == 3
    assert do(SearchFiles, query="tides", context=1, cfg={"max_matches": 2}).count("2: tides") == 2
    (root / "a").write_text("tides " * 20)
    assert "\n\nb\n" not in do(SearchFiles, query="tides", cfg={"max_chars": 100})


def test_a_list_is_made_level_by_level_and_a_pattern_fits_files_only(root: Path, do: Do) -> None:
    for name in ("a/c/d", "a/x", "b/y"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    lines = ["a/", "b/", "a/c/", "a/x (0 bytes)", "b/y (0 bytes)", "a/c/d (0 bytes)"]
    assert do(ListFiles, path="./").splitlines() == lines
    assert do(ListFiles, path="./a/").splitlines() == ["a/c/", "a/x (0 bytes)", "a/c/d (0 bytes)"]
    assert do(ListFiles, path=".", pattern="?").splitlines() == ["a/x (0 bytes)", "b/y (0 bytes)", "a/c/d (0 bytes)"]
    shutil.rmtree(root)
    assert do(ListFiles, path="./") == do(ListFiles, path=".") == "[the workspace is empty]"


@pytest.mark.parametrize(("encodings", "encoding"), [(["utf-8", "ascii"], "utf-8"), (["ascii", "utf-8"], "ascii")])
def test_bytes_that_no_encoding_fits_are_read_in_the_first(encodings: list[str], encoding: str) -> None:
    assert decode(b"a\xff", encodings) == ("a\udcff", encoding)


def test_utf_16_and_utf_32_are_told_apart_and_half_a_character_is_no_text(root: Path, do: Do) -> None:
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        (root / "a").write_bytes("\ufefftides".encode(encoding))
        assert do(ReadFile, path="a") == "1\ttides"
    (root / "a").write_bytes("\ufeffti".encode("utf-16-le")[:-1])
    with pytest.raises(ToolArgumentError, match="a is not a text file"):
        edit(do, "a", "t", "x")


def test_no_half_of_a_character_gets_into_a_file_as_a_byte(root: Path, do: Do) -> None:
    (root / "a").write_text("tides")
    for name, texts in (("old_text", ("\udcff", "x")), ("new_text", ("tides", "\udcff"))):
        with pytest.raises(ToolArgumentError, match=f"{name} contains a lone surrogate"):
            edit(do, "a", *texts)
    assert (root / "a").read_bytes() == b"tides"


@pytest.mark.parametrize("pattern", ["{a", "a}", "x" * 1001, "[\ud83d]"])
def test_a_pattern_that_is_not_valid_is_refused(root: Path, do: Do, pattern: str) -> None:
    with pytest.raises(ToolArgumentError, match="pattern"):
        do(ListFiles, path=".", pattern=pattern)


def test_a_search_shows_lines_with_their_numbers_and_what_is_around_them(root: Path, do: Do) -> None:
    (root / "a").write_text("one\ntwo\nthree\nfour\nfive\nTwo")
    (root / "b.md").write_bytes(b"two\r\n")
    (root / "binary").write_bytes(b"two\0two")
    (root / "__pycache__").mkdir()
    (root / "__pycache__/c").write_text("two")
    assert do(SearchFiles, query="two") == "a\n2: two\n\nb.md\n1: two"
    assert do(SearchFiles, query="TWO", ignore_case=True, pattern="*.md") == "b.md\n1: two"
    assert do(SearchFiles, query="t.o$", regex=True, context=1, path="a") == "a\n1- one\n2: two\n3- three"
    assert do(SearchFiles, query="^(one|five)$", regex=True, path="a", context=1) == (
        "a\n1: one\n2- two\n--\n4- four\n5: five\n6- Two"
    )
    assert do(SearchFiles, query="two", path="__pycache__") == "__pycache__/c\n1: two"
    assert do(SearchFiles, query=".", path="a") == "Nothing was found."


def test_a_search_ends_where_its_bounds_are(root: Path, do: Do) -> None:
    for name in "abc":
        (root / name).write_text("x\n" * 50)
    found = do(SearchFiles, query="x", cfg={"max_matches": 60})
    assert found.count(": x") == 60
    assert found.endswith("[there may be more matches: search a single folder, or use a more specific query]")
    many = do(SearchFiles, query="x", context=20, cfg={"max_chars": 100})
    assert len(many) < 300
    (root / "long").write_text("y" * 100_000 + "needle" + "z" * 100_000)
    line = do(SearchFiles, query="needle", path="long").splitlines()[1]
    assert line.startswith("1: …yyy")
    assert len(line) < 700


@pytest.mark.parametrize("query", ["(a+)+$", "(a|aa)+b", "(.*)*x", r"(\w+\s?)+:"])
def test_an_expression_that_backtracks_elsewhere_takes_linear_time(root: Path, do: Do, query: str) -> None:
    (root / "a").write_text("a" * 200_000 + "!")
    assert "Nothing was found." in do(SearchFiles, query=query, regex=True)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("(", "not a valid regular expression: missing"),
        ("(?=a)", "Look-around and backreferences are not supported"),
        ("((a{100}){100}){100}", "not a valid regular expression"),
        ("a\nb", "one line at a time"),
        ("x" * 1001, "got 1,001"),
        ("\ud83d", "a lone surrogate"),
    ],
)
def test_a_query_that_cannot_be_looked_for_says_why(do: Do, query: str, says: str) -> None:
    with pytest.raises(ToolArgumentError, match=says):
        do(SearchFiles, query=query, regex=True)


@given(st.lists(st.text("ab c", max_size=5), max_size=8), st.text("ab c", min_size=1, max_size=2))
def test_a_search_finds_what_python_finds(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], query: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "found"
    root.mkdir(exist_ok=True)
    (root / "a").write_text("\n".join(lines))
    found = SearchFiles().call({"query": query}, context=ToolContext(workspace=Workspace(root)))
    expected = [f"{number}: {line}" for number, line in enumerate(lines, start=1) if query in line]
    assert found == ("\n".join(["a", *expected]) if expected else "Nothing was found.")


# --- as tools ---


def test_only_what_changes_files_asks_and_stands_alone() -> None:
    specs = {name: default_host().spec_of(default_host().find("tool", name), ToolSpec) for name in NAMES}
    assert {name: (spec.needs_approval, spec.read_only, spec.concurrent) for name, spec in specs.items()} == {
        "read_file": (False, True, True),
        "list_files": (False, True, True),
        "search_files": (False, True, True),
        "write_file": (True, False, False),
        "edit_file": (True, False, False),
    }
    assert {spec.effects for spec in specs.values()} == {frozenset({"files"})}
    assert [name for name, spec in specs.items() if not spec.idempotent] == ["edit_file"]
    tools: tuple[type[BaseTool], ...] = (ReadFile, WriteFile, EditFile, ListFiles, SearchFiles)
    for tool in tools:
        for fact in ("needs_approval", "read_only", "concurrent", "idempotent", "effects"):
            assert getattr(tool, fact) == getattr(specs[tool.name], fact), (tool, fact)


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = ReadFile().config
    assert (config.encodings, config.max_file_bytes, config.max_scan_bytes) == (["utf-8"], 10 * 2**20, 256 * 2**20)
    assert (config.max_lines, config.max_line_chars, config.max_chars) == (2000, 2000, 50_000)
    assert (config.max_entries, config.max_matches, config.time_limit_s) == (500, 100, 20)
    assert {".git", "node_modules", "__pycache__"} <= {*config.skip}


def test_all_of_them_are_one_set_whose_settings_go_to_each(root: Path) -> None:
    agent = FnCallAgent([{"name": "files", "approval": "never", "max_lines": 1}], workspace=Workspace(root))
    assert sorted(agent.function_map) == sorted(NAMES)
    assert not any(tool.safety().needs_approval for tool in agent.function_map.values())
    (root / "a").write_text("1\n2\n")
    assert call_tool(
        agent.function_map["read_file"], {"path": "a"}, context=ToolContext(workspace=agent.workspace)
    ) == ("1\t1\n[lines 1 to 1 of a; continue with start_line=2]")


NAMES = ("read_file", "list_files", "search_files", "write_file", "edit_file")


@pytest.mark.parametrize(
    "arguments",
    [
        json.dumps({"path": "a", "content": "x" * 11_000_000}),
        '{"path": "a", "content": NaN}',
        '{"path": "a", "start_line": NaN}',
        '{"path": "a", "start_line": 1e400}',
        '{"path": ' + "[" * 50_000 + "]" * 50_000 + "}",
        json.dumps({"path": "a", "edits": [{"old_text": "a", "new_text": "b"}] * 101}),
        json.dumps({"path": "x" * 10_000_000}),
        json.dumps({"path": "a" + "/a" * 100_000, "content": "x"}),
    ],
    ids=["10MB", "NaN", "NaN line", "infinite line", "deep", "many edits", "long path", "many folders"],
)
@pytest.mark.parametrize("tool", [ReadFile, WriteFile, EditFile, ListFiles, SearchFiles])
def test_arguments_of_any_size_and_form_are_refused_in_words(root: Path, tool: type[BaseTool], arguments: str) -> None:
    with pytest.raises(ToolServiceError) as caught:
        tool().call(arguments, context=ToolContext(workspace=Workspace(root)))
    assert caught.value.args
    assert list(root.iterdir()) == []


EDIT = {"old_text": "a", "new_text": "b"}


@pytest.mark.parametrize(
    ("tool", "fits", "wrong"),
    [
        (ReadFile, {"path": "a"}, [{"path": ""}, {"start_line": 0}, {"end_line": 0}, {"start_line": 1.5}, {"more": 1}]),
        (WriteFile, {"path": "a", "content": ""}, [{"path": ""}, {"content": 1}, {"more": 1}]),
        (
            EditFile,
            {"path": "a", "edits": [EDIT]},
            [
                *({"path": ""}, {"edits": []}, {"edits": [EDIT] * 101}, {"edits": EDIT}, {"more": 1}),
                *(
                    {"edits": [{**EDIT, "old_text": ""}]},
                    {"edits": [{"old_text": "a"}]},
                    {"edits": [{"new_text": "a"}]},
                ),
                *({"edits": [{**EDIT, "more": 1}]}, {"edits": [{**EDIT, "replace_all": "yes"}]}),
            ],
        ),
        (ListFiles, {"path": "."}, [{"path": ""}, {"depth": 0}, {"pattern": 1}, {"more": 1}]),
        (
            SearchFiles,
            {"query": "a"},
            [{"query": ""}, {"path": ""}, {"context": -1}, {"context": 21}, {"regex": "yes"}, {"more": 1}],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, type) else "",
)
def test_arguments_that_do_not_fit_are_refused_before_anything_is_done(
    root: Path, tool: type[BaseTool], fits: dict[str, Any], wrong: list[dict[str, Any]]
) -> None:
    made = tool()
    assert made.parse_arguments(fits) == fits
    for more in [*wrong, *({name: None} for name in fits)]:
        with pytest.raises(ToolArgumentError, match=f"invalid arguments for '{made.name}'"):
            made.call({**fits, **more}, context=ToolContext(workspace=Workspace(root)))
    for name in fits:
        with pytest.raises(ToolArgumentError, match=name):
            made.parse_arguments({other: value for other, value in fits.items() if other != name})
    assert SearchFiles().parse_arguments({"query": "a", "context": 20})
    assert EditFile().parse_arguments({"path": "a", "edits": [EDIT] * 100})
