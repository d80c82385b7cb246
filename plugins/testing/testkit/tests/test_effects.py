"""Effects are noted while somebody watches, wherever in the process they come from."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield_testkit.effects import Effects, undeclared, unexpected_reads, unseen, watching

WRITES: dict[str, Callable[[Path], object]] = {
    "open": lambda folder: (folder / "new.txt").write_text("x"),
    "append": lambda folder: (folder / "old.txt").open("a").close(),
    "update": lambda folder: (folder / "old.txt").open("r+").close(),
    "binary update": lambda folder: (folder / "old.txt").open("rb+").close(),
    "os.open": lambda folder: os.close(os.open(folder / "new.txt", os.O_CREAT | os.O_WRONLY)),
    "mkdir": lambda folder: (folder / "sub").mkdir(),
    "remove": lambda folder: (folder / "old.txt").unlink(),
    "rename": lambda folder: (folder / "old.txt").rename(folder / "new.txt"),
    "truncate": lambda folder: os.truncate(folder / "old.txt", 0),
    "chmod": lambda folder: (folder / "old.txt").chmod(0o600),
    "link": lambda folder: (folder / "new.txt").hardlink_to(folder / "old.txt"),
    "symlink": lambda folder: (folder / "new.txt").symlink_to(folder / "old.txt"),
    "copy": lambda folder: shutil.copy(folder / "old.txt", folder / "new.txt"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file."""
    (tmp_path / "old.txt").write_text("old")
    return tmp_path


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writing_is_an_effect_outside_of_the_workspace_alone(folder: Path, write: Callable[[Path], object]) -> None:
    with watching(workspace=folder / "workspace") as outside, watching(workspace=folder) as inside:
        write(folder)
    assert outside.kinds == {"files"}
    assert (inside.kinds, bool(inside.inside)) == (set(), True)


def test_a_folder_whose_name_begins_like_the_workspace_is_outside(folder: Path) -> None:
    (folder / "inner").mkdir()
    with watching(workspace=folder / "inner") as effects:
        (folder / "inner" / "a.txt").write_text("x")
        for _ in range(2):
            (folder / "inner-2.txt").write_text("x")
    assert effects.inside == [f"{folder}/inner/a.txt"]
    assert [effect.what for effect in effects.outside] == [f"writes {folder}/inner-2.txt"], "each effect is listed once"


def test_removing_a_link_concerns_the_link_and_not_its_target(folder: Path) -> None:
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(folder / "old.txt")
    with watching(workspace=workspace) as effects:
        (workspace / "link").unlink()
    assert (effects.outside, effects.inside) == ([], [f"{workspace}/link"])


def test_a_file_is_expected_only_if_it_was_given_or_lies_in_a_given_folder(folder: Path) -> None:
    (folder / "given").mkdir()
    names = ("old.txt", "old.txt.bak", "given/a.txt", "given-too.txt", "written.txt")
    for name in names:
        (folder / name).write_text("x")
    with watching() as effects:
        (folder / "written.txt").write_text("y")
        for name in names:
            (folder / name).read_text()
    found = unexpected_reads(effects, [folder / "old.txt", folder / "given"])
    assert found == [f"{folder}/old.txt.bak", f"{folder}/given-too.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
@pytest.mark.parametrize("process", ["self", str(os.getppid())])
def test_the_environment_of_any_process_is_private_and_other_facts_are_not(process: str) -> None:
    with watching() as effects:
        Path(f"/proc/{process}/stat").read_bytes()
        Path(f"/proc/{process}/cmdline").read_bytes()
    private = f"{os.path.realpath(f'/proc/{process}')}/cmdline"
    assert unexpected_reads(effects) == [private]


def test_a_link_out_of_the_workspace_is_outside(folder: Path) -> None:
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(folder, target_is_directory=True)
    with watching(workspace=workspace) as effects:
        (workspace / "link" / "new.txt").write_text("x")
        (workspace / ".." / "more.txt").write_text("x")
    assert [effect.what for effect in effects.outside] == [f"writes {folder}/new.txt", f"writes {folder}/more.txt"]


def test_reading_is_no_effect_and_is_seen(folder: Path) -> None:
    with watching() as effects:
        (folder / "old.txt").read_text()
    assert effects.kinds == set()
    assert effects.read == [str(folder / "old.txt")]
    assert unseen(effects, {"files", "network"}) == {"network"}


def test_connections_and_look_ups_are_the_network_and_unix_sockets_are_not(folder: Path) -> None:
    with watching() as effects, socket.socket() as connection:
        connection.connect_ex(("127.0.0.1", 9))
    assert [effect.what for effect in effects.outside] == ["connect 127.0.0.1:9"]
    with watching() as effects:
        socket.getaddrinfo("localhost", 80)
    assert effects.kinds == {"network"}
    with watching() as effects, socket.socket(socket.AF_UNIX) as connection:
        connection.connect_ex(str(folder / "socket"))
    assert effects.kinds == set()


@pytest.mark.parametrize(
    ("address", "kinds"),
    [(("127.0.0.1", 0), set()), (("127.0.0.1", None), {"network"}), (("0.0.0.0", 0), {"network"})],
)
def test_only_a_free_port_of_this_machine_can_be_bound_without_effect(
    address: tuple[str, int | None], kinds: set[str]
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        free = other.getsockname()[1]
    with watching() as effects, socket.socket() as listener:
        listener.bind((address[0], free if address[1] is None else address[1]))
    assert effects.kinds == kinds


def test_the_end_of_an_inner_watch_leaves_the_outer_one(folder: Path) -> None:
    with watching() as outer:
        with watching() as inner:
            (folder / "a").write_text("x")
        (folder / "b").write_text("x")
    assert (len(inner.outside), len(outer.outside)) == (1, 2)


def test_a_file_in_the_workspace_is_an_effect_that_was_seen() -> None:
    assert unseen(Effects(inside=["/srv/w/a"]), {"files", "network"}) == {"network"}
    assert unseen(Effects(read=["/srv/a"]), {"files", "network"}) == {"network"}


def test_processes_are_seen_and_hide_the_rest() -> None:
    with watching() as effects:
        subprocess.run(["true"], check=True)
    assert "processes" in effects.kinds
    assert unseen(effects, {"network", "processes"}) == set()
    assert undeclared(effects, {"processes"}) == []
    assert undeclared(effects, set()) == ["processes: subprocess.Popen true"]


_READS_A_DOCUMENT = """
from jackfield_documents.parsing import ParseJob, ParserLimits, parse_in_subprocess
from jackfield_testkit.effects import watching

job = ParseJob("text", "jackfield_text.plain:TextParser", None, (), "tea.txt")
with watching() as effects:
    assert parse_in_subprocess(job, b"Green tea.", ParserLimits()).blocks
print(effects.outside)
"""


def test_reading_a_document_is_the_same_whether_the_process_that_parses_it_had_been_started_or_not() -> None:
    # In a process of its own, where no other test has started one.
    command = [sys.executable, "-c", _READS_A_DOCUMENT]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == "[]"


def test_threads_and_event_loops_are_watched_too(folder: Path) -> None:
    def write(name: str) -> None:
        (folder / name).write_text("x")

    async def write_in_worker() -> None:
        await asyncio.to_thread(write, "b")

    with watching() as effects:
        thread = threading.Thread(target=write, args=("a",))
        thread.start()
        thread.join()
        asyncio.run(write_in_worker())
    assert {effect.what.rpartition("/")[2] for effect in effects.outside} == {"a", "b"}


def test_nothing_is_noted_afterwards_and_odd_paths_fail_as_ever(folder: Path) -> None:
    with watching() as effects, pytest.raises(ValueError, match="null"):
        Path("a\0b").write_text("x")
    noted = len(effects.outside)
    (folder / "later.txt").write_text("x")
    assert len(effects.outside) == noted
