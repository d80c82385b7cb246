"""No path leads out of the workspace: not as it is written, and not by what somebody plants meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ToolServiceError
from jackfield.tools import BaseTool, ToolContext, Workspace
from jackfield_files import folder
from jackfield_files.tools import EditFile, ListFiles, ReadFile, SearchFiles, WriteFile

SECRET = "SING-A-SONG"
LEAKS = (SECRET, f"secret.txt ({len(SECRET)} bytes)")
CALLS: dict[str, tuple[type[BaseTool], dict[str, Any]]] = {
    "read": (ReadFile, {}),
    "write": (WriteFile, {"content": "overwritten"}),
    "edit": (EditFile, {"edits": [{"old_text": SECRET, "new_text": "overwritten"}]}),
    "list": (ListFiles, {}),
    "search": (SearchFiles, {"query": "SING"}),
}


class House:
    """A workspace, and beside it what nobody may reach."""

    def __init__(self, folder: Path) -> None:
        self.outside = folder / "outside"
        self.root = folder / "workspace"
        for place in (self.outside, self.root / "a/b"):
            place.mkdir(parents=True, exist_ok=True)
        (self.outside / "secret.txt").write_text(SECRET)
        (self.root / "a/b/own.txt").write_text("own")

    def reached(self, how: str, path: str, workspace: Workspace | None = None) -> str:
        """What a call gives or says, after a look at what lies outside."""
        tool, arguments = CALLS[how]
        context = ToolContext(workspace=workspace or Workspace(self.root))
        try:
            answer = str(tool().call({"path": path, **arguments}, context=context))
        except ToolServiceError as error:
            answer = str(error)
        assert list(self.outside.iterdir()) == [self.outside / "secret.txt"]
        assert (self.outside / "secret.txt").read_text() == SECRET
        return answer


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


parts = st.sampled_from(
    [
        "..",
        "a",
        "b",
        "own.txt",
        "out",
        "outside",
        "secret.txt",
        ".",
        "",
        "%2e%2e",
        "%2E%2E%2F",
        "~",
        "-rf",
        "\\..\\",
        "…",
    ]
)
paths = st.builds(
    lambda start, found: start + "/".join(found),
    st.sampled_from(["", "/", "//", "./", "~/", "file:///", "%2f", "C:\\"]),
    st.lists(parts, max_size=7),
)


@given(paths, st.sampled_from(sorted(CALLS)))
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, path: str, how: str) -> None:
    # Each example has its own: a `secret.txt` that another has written into the workspace may be listed.
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as place:
        house = House(Path(place))
        (house.root / "out").symlink_to(house.outside)
        answer = house.reached(how, path)
    assert not any(leak in answer for leak in LEAKS)


@pytest.mark.parametrize("how", CALLS)
def test_links_that_stay_inside_are_followed_and_others_are_not(house: House, how: str) -> None:
    (house.root / "inner").symlink_to("a/b")
    (house.root / "loop").symlink_to("loop")
    (house.root / "whole").symlink_to(house.root / "a")
    assert "outside of" not in house.reached(how, "inner/own.txt")
    assert "leads out" not in house.reached(how, "whole/b/own.txt")
    for number, target in enumerate(("../outside", str(house.outside), "a/../../outside", "/", "loop")):
        (house.root / f"link{number}").symlink_to(target)
        for path in (f"link{number}/secret.txt", f"link{number}"):
            answer = house.reached(how, path)
            assert not any(leak in answer for leak in LEAKS), answer
    assert "not a valid file name" in house.reached(how, "loop")


class Planting(Workspace):
    """A workspace in which somebody acts right after a path was found to be good for the last time."""

    def __init__(self, root: Path, act: Callable[[], None], *, looks: int) -> None:
        super().__init__(root)
        self._act = act
        self._looks = looks

    def resolve(self, name: str) -> Path:
        path = super().resolve(name)
        self._looks -= 1
        if not self._looks:
            self._act()
        return path


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize("place", ["a", "a/b", "a/b/secret.txt"])
def test_a_link_planted_between_check_and_use_leads_nowhere(house: House, how: str, place: str) -> None:
    (house.root / "a/b/secret.txt").write_text("own")
    target = {"a": house.outside.parent, "a/b": house.outside, "a/b/secret.txt": house.outside / "secret.txt"}[place]

    def plant() -> None:
        (house.root / place).rename(house.root / "away")
        (house.root / place).symlink_to(target)

    path = "a/b" if how == "list" else "a/b/secret.txt"
    if place == "a":  # the way on is there, too
        (house.outside.parent / "b").symlink_to(house.outside)
    answer = house.reached(how, path, Planting(house.root, plant, looks=2 if how == "search" else 1))
    assert not any(leak in answer for leak in LEAKS), answer
    assert (house.root / place).is_symlink() or how == "write", "nothing was planted"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs the list of open files")
def test_no_descriptor_stays_open_whatever_a_path_leads_to(house: House) -> None:
    os.mkfifo(house.root / "a/pipe")
    (house.root / "a/image").write_bytes(b"\0" * 9)

    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for how in CALLS:
        for path in ("a/b/own.txt", "a", "a/b", "a/pipe", "a/image", "a/b/own.txt/x", "gone/x", "a/gone", "."):
            house.reached(how, path)
            assert count() == before, (how, path)


@pytest.fixture
def swapper(house: House) -> Iterator[None]:
    """Somebody who puts a link in the place of a folder, and the folder back, again and again."""
    stopped = threading.Event()
    place, away = house.root / "a/b", house.root / "a/away"

    def swap() -> None:
        while not stopped.is_set():
            # A call that writes may make the folder that is away: then it is removed.
            for step in (
                lambda: away.exists() or place.rename(away),
                lambda: place.symlink_to(house.outside),
                place.unlink,
                lambda: away.exists() and shutil.rmtree(place),
                lambda: away.rename(place),
            ):
                with suppress(OSError):
                    step()

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    stopped.set()
    thread.join()


@pytest.mark.usefixtures("swapper")
@pytest.mark.parametrize("how", CALLS)
def test_whoever_swaps_a_folder_for_a_link_reaches_nothing(house: House, how: str) -> None:
    for _ in range(60):
        answer = house.reached(how, "a/b" if how in ("list", "search") else "a/b/secret.txt")
        assert not any(leak in answer for leak in LEAKS), answer


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
@pytest.mark.parametrize("how", ["read", "edit", "search"])
def test_a_file_that_another_program_has_leased_makes_no_tool_wait(house: House, how: str) -> None:
    import fcntl

    with (house.root / "a/b/own.txt").open("r+") as held:
        fcntl.fcntl(held, fcntl.F_SETSIG, 0)
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        try:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            answer = house.reached(how, "a/b/own.txt")
        finally:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            signal.signal(signal.SIGIO, before)
    assert answer == "a/b/own.txt cannot be used: Resource temporarily unavailable"


@pytest.mark.parametrize("how", ["read", "edit", "search"])
@pytest.mark.parametrize("planted", ["pipe", "link"])
def test_what_takes_the_place_of_a_file_after_its_check_is_not_read(
    house: House, planted: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, path = folder._status, house.root / "a/b/own.txt"

    def look_and_plant(*given: Any) -> os.stat_result:
        status = look(*given)
        path.unlink()
        if planted == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(house.outside / "secret.txt")
        return status

    monkeypatch.setattr(folder, "_status", look_and_plant)
    answer = house.reached(how, "a/b/own.txt")
    assert ("not a regular file" if planted == "pipe" else "through a newly created link") in answer


def test_names_like_options_and_with_spaces_are_names(house: House) -> None:
    context = ToolContext(workspace=Workspace(house.root))
    for name in ("-rf", "--help", "$(touch x)", "a b", "`id`", "; rm -r .", "*", "nul\tname"):
        WriteFile().call({"path": name, "content": f"in {name}"}, context=context)
        EditFile().call({"path": name, "edits": [{"old_text": "in ", "new_text": "now in "}]}, context=context)
        assert ReadFile().call({"path": name}, context=context) == f"1\tnow in {name}"
    assert "-rf (" in ListFiles().call({"path": "."}, context=context)
    assert (house.root / "a/b/own.txt").exists()
