"""Several strategies are asked side by side; one that fails is left out, and said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jackfield.errors import ConfigError, JackfieldError, ModelConnectionError, ToolServiceError
from jackfield_documents import ask_all, failures_noted


def answers(value: object) -> Callable[[], Any]:
    async def ask() -> object:
        return value

    return ask


def fails(error: BaseException) -> Callable[[], Any]:
    async def ask() -> None:
        raise error

    return ask


def run(work: Awaitable[Any]) -> Any:
    async def awaited() -> Any:
        return await work

    return asyncio.run(awaited())


def test_they_are_asked_at_the_same_time_and_answer_in_order() -> None:
    async def both() -> dict[str, str]:
        met = asyncio.Barrier(2)  # nobody passes alone

        async def ask(name: str) -> str:
            await met.wait()
            return name

        return await ask_all({name: lambda name=name: ask(name) for name in ("b", "a")})  # type: ignore[misc]

    assert list(asyncio.run(asyncio.wait_for(both(), 60)).items()) == [("b", "b"), ("a", "a")]


@pytest.mark.parametrize("error", [ModelConnectionError("no route", backend="m"), ToolServiceError("gone")])
def test_one_whose_service_fails_is_left_out_and_noted(error: JackfieldError, caplog: pytest.LogCaptureFixture) -> None:
    asked = {"vectors": fails(error), "words": answers(3)}
    with caplog.at_level(logging.WARNING), failures_noted() as noted:
        assert run(ask_all(asked)) == {"words": 3}
        assert run(ask_all(asked)) == {"words": 3}
    assert noted == [f"vectors failed and was skipped: {error}"]
    assert caplog.text == ""


def test_failures_are_collected_where_they_happen_and_logged_again_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    asked = {"vectors": fails(ToolServiceError("gone")), "words": answers(3)}
    with caplog.at_level(logging.WARNING):
        with failures_noted() as outer:
            with failures_noted() as inner:
                run(ask_all(asked))
            assert (len(inner), outer) == (1, [])
            run(ask_all(asked))
        assert (len(inner), len(outer), caplog.text) == (1, 1, "")
        run(ask_all(asked))
    assert caplog.text.count("vectors failed and was skipped: gone") == 1


def test_where_nobody_collects_failures_the_log_has_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        run(ask_all({"vectors": fails(ToolServiceError("gone")), "words": answers(3)}))
    assert "vectors failed and was skipped: gone" in caplog.text


def test_if_all_fail_the_first_error_is_raised_and_names_the_others() -> None:
    asked = {"vectors": fails(ModelConnectionError("no route", backend="m")), "words": fails(ToolServiceError("gone"))}
    with failures_noted() as noted, pytest.raises(ModelConnectionError, match="no route") as raised:
        run(ask_all(asked))
    assert raised.value.__notes__ == ["words also failed: gone"]
    assert noted == []


@pytest.mark.parametrize("error", [ConfigError("wrong"), ZeroDivisionError()])
def test_what_waiting_does_not_cure_is_raised_and_ends_the_others(error: Exception) -> None:
    async def both() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def waits() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def fails_then() -> None:
            await begun.wait()
            raise error

        with pytest.raises(type(error)):
            await ask_all({"slow": waits, "wrong": fails_then})
        assert ended.is_set()

    asyncio.run(asyncio.wait_for(both(), 60))


def test_who_is_cancelled_ends_all() -> None:
    async def cancelled() -> bool:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def waits() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        task = asyncio.create_task(ask_all({"slow": waits}))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended.is_set()

    assert asyncio.run(asyncio.wait_for(cancelled(), 60))


def test_of_nobody_there_is_no_answer() -> None:
    assert run(ask_all({})) == {}
