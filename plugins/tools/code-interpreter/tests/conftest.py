"""Real kernels, and a look at the processes of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.tools import ToolContext, ToolResult
from jackfield_code_interpreter import launch
from jackfield_code_interpreter.tool import CodeInterpreter
from jackfield_confine import barriers

Run = Callable[..., "Answer"]


def below(pid: int) -> list[int]:
    """A process and its descendants; what the code calls them is another matter: it may have numbers of its own."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, task.read_text().split())
    return found


class Answer:
    """What a call gave: its text, its images, its metadata."""

    def __init__(self, result: ToolResult | str) -> None:
        self.content: Any = result.content if isinstance(result, ToolResult) else result
        self.metadata: Mapping[str, Any] = result.metadata if isinstance(result, ToolResult) else {}

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else self.content[0].text

    @property
    def images(self) -> list[str]:
        return [] if isinstance(self.content, str) else [item.image for item in self.content[1:]]

    @property
    def stdout(self) -> str:
        """What stands in the block of stdout."""
        return self.text.partition("stdout:\n\n```\n")[2].partition("\n```")[0]


class Interpreter:
    """A tool, used as a program without an event loop uses it."""

    def __init__(self, **cfg: Any) -> None:
        # Most of what is tested here is the same in a sandbox: `test_sandboxed` shows that it is.
        self.tool = CodeInterpreter({"sandbox": "none", **cfg})

    def run(self, code: str, *, context: ToolContext | None = None) -> Answer:
        return Answer(sync.run(self.tool.call({"code": code}, context=context)))

    def processes(self) -> list[int]:
        """The guard and all processes below it, by the numbers that this process sees."""
        session = self.tool._own
        assert session is not None
        assert session._kernel is not None
        return below(session._kernel.process.pid)

    def close(self) -> None:
        sync.run(self.tool.aclose())


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    """One interpreter for all tests of a module; starting a kernel is what takes the time here."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", "sk-secret")
        shared = Interpreter(env={"MINE": "yes"}, file_mb=4)
        shared.run("1")
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def new_interpreter() -> Callable[..., Interpreter]:
    """`Interpreter`, for fixtures that close what they make."""
    return Interpreter


@pytest.fixture(scope="module")
def hasty() -> Iterator[Interpreter]:
    """An interpreter that gives a call little time."""
    shared = Interpreter(timeout=1)
    yield shared
    shared.close()


@pytest.fixture
def make_interpreter() -> Iterator[Callable[..., Interpreter]]:
    """Makes interpreters with settings, closed after the test."""
    made: list[Interpreter] = []

    def make(**cfg: Any) -> Interpreter:
        made.append(Interpreter(**cfg))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def read_answer() -> Callable[[ToolResult | str], Answer]:
    """`Answer`, for tests that call a tool themselves."""
    return Answer


@pytest.fixture(params=["namespaces", "landlock", "none"])
def barrier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each thing that can keep code from other processes, used alone; the test is skipped where it does not work."""
    name: str = request.param
    if barriers.best_barrier([name]) != name:
        pytest.skip(f"no {name} on this machine")
    monkeypatch.setattr(launch, "BARRIERS", (name,))
    return name


@pytest.fixture
def processes_below() -> Callable[[int], list[int]]:
    """`below`, for tests whose interpreter is another process's."""
    return below


@pytest.fixture
def is_running() -> Callable[[int], bool]:
    """Whether a process runs; one that has ended and was not reaped does not."""

    def check(pid: int) -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            return status.rpartition(")")[2].split()[0] not in "ZX"
        return False

    return check


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    """Waits for something another process does; fails when it does not happen in half a minute."""

    def wait(happened: Callable[[], bool]) -> None:
        give_up = time.monotonic() + 30
        while not happened():
            assert time.monotonic() < give_up, "it did not happen"
            time.sleep(0.02)

    return wait
