"""Local files as plugins: each is inside of its folder, is a module of its content, and runs once."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from jackfield._localfiles import LocalFile, local_files, source_of
from jackfield.plugins._own import module_of_local, row_of_local


def test_a_local_file_is_a_module_of_its_content(tmp_path: Any) -> None:
    path = tmp_path / "mein modul-ä.py"
    path.write_text("x = 1\n1 / 0\n")
    content = path.read_bytes()
    digest = __import__("hashlib").sha256(content).hexdigest()
    file = LocalFile(name="mein@user", path=str(path), content=digest)
    row = row_of_local(file)
    assert re.fullmatch(r"_jackfield_local_mein_modul__[0-9a-f]{12}", row.module)
    assert (row.kind, row.name, row.distribution, row.version, row.api, row.location) == (
        "*", "*", "mein@user", "", 1, str(path)
    )  # fmt: skip
    assert row_of_local(LocalFile(name="mein@user", path=str(path), content="0" * 64)).module != row.module
    for _ in range(2):  # a module that failed is not taken for one that is loaded
        with pytest.raises(ZeroDivisionError):
            module_of_local(file, row.module)


def test_a_local_file_runs_once(tmp_path: Any) -> None:
    path = tmp_path / "once.py"
    path.write_text("things = []\n")
    digest = __import__("hashlib").sha256(path.read_bytes()).hexdigest()
    file = LocalFile(name="once@user", path=str(path), content=digest)
    name = row_of_local(file).module
    module = module_of_local(file, name)
    module.things.append(1)
    assert module_of_local(file, name) is module
    assert (module.things, module.__name__, module.__file__) == ([1], name, str(path))


def test_a_local_file_is_a_python_file_inside_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "My Tools_2.py").write_text("x = 1")
    (folder / "sub/b.py").write_text("y" * (1 << 20))
    (folder / "c.py").write_text("y" * ((1 << 20) + 1))
    (tmp_path / "out.py").write_text("")
    (folder / "link.py").symlink_to(tmp_path / "out.py")
    names = ["My Tools_2.py", "sub/b.py", "c.py", "../out.py", "link.py", "gone.py", "a.txt", "x\0.py"]
    files = local_files(folder, [*names, names[0]], "project")
    assert [file.name for file in files] == [
        "my-tools-2@project", "sub-b@project", "c@project", "out@project", "link@project", "gone@project",
        "a-txt@project", "x@project",
    ]  # fmt: skip
    assert [file.fault.partition(":")[0].partition(" (")[0] for file in files] == [
        "", "", "is larger than 1 MiB", f"is outside {folder}, the only folder allowed for local files",
        "is or passes through a symbolic link, which local files must not", "cannot be read", "is not a Python file",
        "is not a Python file",
    ]  # fmt: skip
    assert [bool(file.content) for file in files] == [True, True, *[False] * 6]
    assert source_of(files[0]) == b"x = 1"
    (folder / "My Tools_2.py").write_text("x = 2")
    with pytest.raises(ValueError, match="has changed since the settings were read"):
        source_of(files[0])
    content = (folder / "sub/b.py").read_bytes()
    (folder / "sub/b.py").unlink()
    (tmp_path / "out.py").write_bytes(content)
    (folder / "sub/b.py").symlink_to(tmp_path / "out.py")  # after the settings were read
    with pytest.raises(OSError, match=r"."):
        source_of(files[1])
    twice = local_files(folder, ["sub/b.py", "sub//b.py"], "user")
    assert [file.fault.partition(":")[0] for file in twice] == ["has the same name as another local file"] * 2
    assert twice[0].name == "sub-b@user"


def test_a_file_beside_the_folder_is_outside_of_it_even_if_its_path_begins_alike(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project-of-others").mkdir()
    (tmp_path / "project-of-others/a.py").write_text("")
    (file,) = local_files(tmp_path / "project", ["../project-of-others/a.py"], "project")
    assert file.fault.startswith("is outside ")
    assert file.content == ""


def test_a_folder_may_be_reached_through_a_link_and_its_files_may_not(tmp_path: Path) -> None:
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "real/sub/a.py").write_text("")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real/below").symlink_to("sub")
    inside, below = local_files(tmp_path / "link", ["sub/a.py", "below/a.py"], "user")
    assert (inside.fault, inside.path) == ("", str(tmp_path / "real/sub/a.py"))
    assert below.fault.startswith("is or passes through a symbolic link")


@pytest.mark.parametrize("has_writer", [False, True])
def test_a_pipe_is_no_local_file_and_nothing_waits_for_it(tmp_path: Path, has_writer: bool) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    writer = os.open(tmp_path / "pipe.py", os.O_RDWR) if has_writer else None
    try:
        for file in local_files(tmp_path, ["pipe.py", "folder.py"], "project"):
            assert file.fault == f"is not a regular file: {file.path}"
            assert file.content == ""
    finally:
        if writer is not None:
            os.close(writer)
