"""Conversations are found, named and brought along, each by its owner only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, Message, tool
from jackfield.errors import ConfigError, InvalidMessageError, RunNotFoundError
from jackfield.events import ToolFinished, TurnFinished
from jackfield.messages import FunctionCall
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_serving import AgentNotFoundError, InputTooLargeError, Serving, ServingLimits


@pytest.fixture(params=["memory", "sqlite"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Run a test with a service: `run(test, *script)`."""

    def run_with(test: Callable[[Serving, ScriptedModel], Awaitable[None]], *script: Any, **options: Any) -> None:
        model = ScriptedModel(list(script))
        agent = FnCallAgent(options.pop("tools", []), model, name="helper", system_message="Be brief.")
        store = {"name": "sqlite", "path": str(tmp_path / "runs.db")} if request.param == "sqlite" else None

        async def main() -> None:
            async with Serving({"a": agent}, store=store, **options) as serving:
                await test(serving, model)

        asyncio.run(main())

    return run_with


async def ask(serving: Serving, text: str, **options: Any) -> str:
    run_id = await serving.start("a", text, **options)
    async for _ in serving.attach(run_id, owner=options.get("owner", "")):
        pass
    return run_id


def test_a_search_has_the_latest_hit_of_each_conversation_of_its_owner(run: Callable[..., None]) -> None:
    async def test(serving: Serving, _: ScriptedModel) -> None:
        first = await ask(serving, "When is low water?", owner="ada", session="s1")
        await ask(serving, "And high WATER?", owner="ada", session="s1", continues=first)
        await ask(serving, "Boots?", owner="ada", session="s2")
        await ask(serving, "Low water, mine", owner="bob", session="s3")
        hits = await serving.search("water", owner="ada")
        assert [(hit.session, hit.agent, hit.excerpt) for hit in hits] == [("s1", "a", "And high WATER?")]
        assert [hit.session for hit in await serving.search("six boots", owner="ada")] == ["s2"]
        assert await serving.search("mine", owner="ada") == []
        assert [hit.session for hit in await serving.search("mine", owner="bob")] == ["s3"]
        assert await serving.search("  ", owner="ada") == []
        await ask(serving, "water " * 500, owner="ada", session="s4")
        assert [hit.session for hit in await serving.search("water", owner="ada", limit=1)] == ["s4"]
        assert len((await serving.search("water", owner="ada"))[0].excerpt) < 200

    run(test, *[answer(f"At {number}, six.") for number in range(9)])


def test_a_conversation_keeps_the_title_that_its_owner_gives_it(run: Callable[..., None]) -> None:
    async def test(serving: Serving, _: ScriptedModel) -> None:
        first = await ask(serving, "When?", owner="ada", session="s")
        await serving.rename("s", " The \n tides ", owner="ada")
        await ask(serving, "And then?", owner="ada", session="s", continues=first)
        [session] = await serving.sessions(owner="ada")
        assert session.title == "The tides"
        await serving.rename("s", "x" * 5000, owner="ada")
        assert len((await serving.sessions(owner="ada"))[0].title) <= 200
        with pytest.raises(ConfigError, match="empty"):
            await serving.rename("s", " \n", owner="ada")
        for session_id, owner in (("s", "bob"), ("other", "ada"), ("", "ada")):
            with pytest.raises(RunNotFoundError):
                await serving.rename(session_id, "Mine", owner=owner)

    run(test, answer("At six."), answer("At noon."))


CALL = Message("assistant", "", function_call=FunctionCall("look", "{}"), extra={"function_id": "c"})
RESULT = Message("function", "low", name="look", extra={"function_id": "c"})


def test_a_run_that_took_place_elsewhere_is_read_and_continued(run: Callable[..., None]) -> None:
    made: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        made.append("look")
        return "high"

    async def test(serving: Serving, model: ScriptedModel) -> None:
        response = [CALL, RESULT, Message("assistant", "It is low.")]
        run_id = await serving.add_ended("a", [Message("user", "Tide?")], response, owner="ada", session="s")
        info = await serving.run(run_id, owner="ada")
        assert (info.phase, info.stop_reason, info.text, info.waiting) == ("ended", "finished", "It is low.", ())
        events = [one.event.event async for one in serving.attach(run_id, owner="ada")]
        assert [type(one) for one in events if isinstance(one, TurnFinished | ToolFinished)] == [
            TurnFinished, ToolFinished, TurnFinished,
        ]  # fmt: skip
        again = await serving.add_ended("a", [Message("user", "Sure?")], [Message("assistant", "Yes.")],
                                        owner="ada", session="s", continues=run_id)  # fmt: skip
        await ask(serving, "Thanks", owner="ada", session="s", continues=again)
        assert [message.get_text_content() for message in model.requests[-1].messages] == [
            "Be brief.", "Tide?", "", "low", "It is low.", "Sure?", "Yes.", "Thanks",
        ]  # fmt: skip
        assert made == [], "calls of a conversation that was brought along are never made"
        with pytest.raises(RunNotFoundError):
            await serving.run(run_id, owner="bob")
        with pytest.raises(RunNotFoundError):
            await serving.add_ended("a", [Message("user", "x")], [], owner="bob", continues=run_id)

    run(test, answer("Welcome."), calls(("look", {})), tools=[look])


def test_a_run_that_cannot_have_ended_is_refused(run: Callable[..., None]) -> None:
    async def test(serving: Serving, _: ScriptedModel) -> None:
        asked = [Message("user", "Tide?")]
        with pytest.raises(InvalidMessageError, match="'look' has no result"):
            await serving.add_ended("a", asked, [CALL], session="s")
        with pytest.raises(AgentNotFoundError):
            await serving.add_ended("b", asked, [])
        with pytest.raises(InputTooLargeError):
            await serving.add_ended("a", asked, [Message("assistant", "x" * 2000)])
        assert await serving.runs() == []

    run(test, limits=ServingLimits(input_bytes=1000))
