"""Agents for the suites of faces, and requests that a face does not expect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from jackfield.agents import Agent, FnCallAgent
from jackfield.errors import ModelAuthError
from jackfield.events import MediaDelta, ModelEvent, ModelFinished, TextDelta
from jackfield.messages import USER, ContentItem
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer

INSIDE = "testkit-inner-Qx71"
"""Text in agents' errors and file paths that no client may see."""
_DEEP = 100_000
NOT_JSON = {
    "empty": b"",
    "cut": b'{"',
    "text": b"question",
    "constant": b'{"a": NaN}',
    "bytes": b'{"a": "\xff\xfe"}',
    "two": b"{} {}",
    "deep": b"[" * _DEEP + b"]" * _DEEP,
    "deep objects": b'{"a":' * (_DEEP // 4) + b"1" + b"}" * (_DEEP // 4),
    "array": b"[]",
    "null": b"null",
    "number": b"1e999999",
}

ANSWERS: Mapping[str, Callable[[str], str]] = {
    "echo": lambda text: f"You said: {text}",
    "shout": lambda text: f"YOU SAID: {text.upper()}",
}


class _Silent(ScriptedModel):
    """A model that sends one word and then nothing more."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:  # noqa: ARG002
        yield TextDelta("Hm")
        await asyncio.Event().wait()


def make_agents() -> dict[str, Agent]:
    """Create the agents to ask.

    Their answers contain the question, everything the user has said, or files. Others never finish, or fail.
    """

    def says(form: Callable[[str], str]) -> Callable[[ChatRequest], Sequence[ModelEvent | Exception]]:
        return lambda request: answer(form(request.messages[-1].get_text_content()))

    agents: dict[str, Agent] = {
        name: FnCallAgent(llm=ScriptedModel(says(form)), name=name) for name, form in ANSWERS.items()
    }

    def recall(request: ChatRequest) -> Sequence[ModelEvent | Exception]:
        return answer(" / ".join(one.get_text_content() for one in request.messages if one.role == USER))

    agents["falls_silent"] = FnCallAgent(llm=_Silent([]), name="falls_silent")
    files = [ContentItem(image=f"/srv/{INSIDE}/plan.png"), ContentItem(video=[f"/srv/{INSIDE}/1.png"])]
    drawing: list[ModelEvent | Exception] = [TextDelta("See:"), *map(MediaDelta, files), ModelFinished("stop")]
    agents["draws"] = FnCallAgent(llm=ScriptedModel(lambda _: drawing), name="draws")
    agents["recall"] = FnCallAgent(llm=ScriptedModel(recall), name="recall")

    def fails(error: Exception) -> Callable[[ChatRequest], Sequence[ModelEvent | Exception]]:
        return lambda _: [error]

    failures = {"crashes": ZeroDivisionError(INSIDE), "is_refused": ModelAuthError(f"key {INSIDE} is not valid")}
    for name, error in failures.items():
        agents[name] = FnCallAgent(llm=ScriptedModel(fails(error)), name=name)
    return agents
