"""What a run opened is closed: once each, the last first, whatever fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from jackfield.runs import RunResources


class Kernel:
    """Something to close, asynchronously."""

    def __init__(self, name: str, log: list[str], *, fails: type[Exception] | None = None) -> None:
        self.name, self.log, self.fails = name, log, fails

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.log.append(self.name)
        if self.fails:
            raise self.fails(f"{self.name} hangs")


class File:
    """Something to close, at once."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def close(self) -> None:
        self.log.append(self.name)


def opener(made: object) -> Callable[[], Awaitable[object]]:
    async def open_it() -> object:
        await asyncio.sleep(0)
        return made

    return open_it


def test_everything_is_closed_the_last_opened_first() -> None:
    log: list[str] = []

    async def main() -> None:
        async with RunResources() as resources:
            await resources.get("a", opener(Kernel("a", log)))
            await resources.get("b", opener(File("b", log)))
            await resources.get("c", opener(object()))
            await resources.get("d", opener(Kernel("d", log)))
            assert log == []

    asyncio.run(main())
    assert log == ["d", "b", "a"]


@pytest.mark.parametrize("error", [OSError, ValueError, AssertionError])
def test_one_that_will_not_close_is_logged_and_the_others_are_closed(
    caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    log: list[str] = []

    async def main() -> None:
        async with RunResources() as resources:
            await resources.get("a", opener(Kernel("a", log)))
            await resources.get("b", opener(Kernel("b", log, fails=error)))

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert log == ["b", "a"]
    assert [record.getMessage() for record in caplog.records] == ["closing b failed"]


def test_a_resource_that_can_be_closed_in_both_ways_is_closed_once_and_asynchronously() -> None:
    class Both(Kernel):
        def close(self) -> None:
            self.log.append("in the wrong way")

    log: list[str] = []

    async def main() -> None:
        async with RunResources() as resources:
            await resources.get("a", opener(Both("a", log)))

    asyncio.run(main())
    assert log == ["a"]


def test_they_are_closed_when_the_run_fails() -> None:
    log: list[str] = []

    async def main() -> None:
        async with RunResources() as resources:
            await resources.get("a", opener(Kernel("a", log)))
            raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert log == ["a"]


def test_two_that_ask_at_once_get_the_same_from_one_opening() -> None:
    opened: list[str] = []

    async def open_it() -> object:
        opened.append("once")
        await asyncio.sleep(0)
        return object()

    async def main() -> None:
        async with RunResources() as resources:
            first, second = await asyncio.gather(resources.get("a", open_it), resources.get("a", open_it))
            assert first is second is await resources.get("a", open_it)

    asyncio.run(main())
    assert opened == ["once"]


def test_what_failed_to_open_is_tried_again_by_the_next_who_asks() -> None:
    async def fail() -> object:
        raise OSError("no kernel")

    async def main() -> object:
        async with RunResources() as resources:
            with pytest.raises(OSError, match="no kernel"):
                await resources.get("a", fail)
            return await resources.get("a", opener("kernel"))

    assert asyncio.run(main()) == "kernel"


def test_cancelling_one_who_waits_leaves_the_opening_to_the_other() -> None:
    async def main() -> object:
        door = asyncio.Event()

        async def open_it() -> str:
            await door.wait()
            return "kernel"

        async with RunResources() as resources:
            impatient = asyncio.ensure_future(resources.get("a", open_it))
            patient = asyncio.ensure_future(resources.get("a", open_it))
            await asyncio.sleep(0)
            impatient.cancel()
            await asyncio.sleep(0)
            door.set()
            return await patient

    assert asyncio.run(main()) == "kernel"


def test_what_is_still_opening_when_the_run_ends_is_cancelled() -> None:
    ended: list[str] = []

    async def open_it() -> object:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return object()

    async def main() -> None:
        async with RunResources() as resources:
            waiting = asyncio.ensure_future(resources.get("a", open_it))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_after_the_run_nothing_can_be_opened_and_closing_twice_is_no_error() -> None:
    log: list[str] = []

    async def main() -> None:
        resources = RunResources()
        await resources.get("a", opener(Kernel("a", log)))
        await resources.aclose()
        await resources.aclose()
        with pytest.raises(RuntimeError, match="cannot open 'a': the run has already ended"):
            await resources.get("a", opener(Kernel("a", log)))

    asyncio.run(main())
    assert log == ["a"]


def test_what_broke_can_be_forgotten_and_opened_anew() -> None:
    log: list[str] = []

    async def main() -> None:
        async with RunResources() as resources:
            await resources.get("a", opener(Kernel("broken", log)))
            resources.discard("a")
            resources.discard("never opened")
            await resources.get("a", opener(Kernel("new", log)))

    asyncio.run(main())
    assert log == ["new"]


class Thing:
    def __init__(self, log: list[str], name: str, error: Exception | None = None) -> None:
        self.log, self.name, self.error = log, name, error

    async def aclose(self) -> None:
        self.log.append(self.name)
        if self.error is not None:
            raise self.error


class Plain(Thing):
    aclose = None  # type: ignore[assignment]

    def close(self) -> None:
        self.log.append(self.name)


def test_resources_are_closed_once_the_last_opened_first(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []

    async def run() -> None:
        async def opened(thing: object) -> object:
            return thing

        async def failing() -> object:
            raise OSError("no")

        async with RunResources() as resources:
            first = await resources.get("a", lambda: opened(Thing(log, "a")))
            assert await resources.get("a", failing) is first
            await resources.get("b", lambda: opened(Thing(log, "b", OSError("broken"))))
            await resources.get("c", lambda: opened(Plain(log, "c")))
            await resources.get("d", lambda: opened(object()))
            with pytest.raises(OSError, match="no"):
                await resources.get("e", failing)
            await resources.get("e", lambda: opened(Thing(log, "e")))
            await resources.get("f", lambda: opened(Thing(log, "f")))
            resources.discard("f")
            resources.discard("gone")
            assert resources.editor is None
        with pytest.raises(RuntimeError, match="cannot open 'a': the run has already ended"):
            await resources.get("a", failing)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert log == ["e", "c", "b", "a"]
    assert [record.getMessage() for record in caplog.records] == ["closing b failed"]
