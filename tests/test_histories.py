"""A conversation moves between providers: begun on one, gone on with another, and back. Only what is declared is lost.

Declared is: reasoning may stay behind, a provider's own data does, and ids may change as long as calls and results
belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jackfield import BaseChatModel, Message, get_chat_model
from jackfield_testkit import replies
from jackfield_testkit.anthropic import AnthropicMessages
from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.responses import FakeResponses
from jackfield_testkit.server import FakeOpenAI

TOOL = {
    "name": "look_up",
    "description": "Looks something up.",
    "parameters": {"type": "object", "properties": {"what": {"type": "string"}}, "required": []},
}
SERVERS: Mapping[str, Callable[[], FakeOpenAI]] = {
    "openai": FakeOpenAI,
    "openai_responses": FakeResponses,
    "qwen_dashscope": FakeDashScope,
    "anthropic": partial(FakeOpenAI, dialect=AnthropicMessages()),
}
KEY = "sk-" + "test"
OPAQUE = b"encrypted:"  # how a thought begins that the server of Responses gives out, and wants back


@dataclass(frozen=True)
class Party:
    """A provider: its server, and a model there."""

    server: FakeOpenAI
    model: BaseChatModel

    def answer(self, history: Sequence[Message], reply: replies.Reply) -> list[Message]:
        """Have the server answer a history like this."""
        self.server.reply(reply)
        return list(self.model.chat(list(history), [TOOL], stream=False))

    @property
    def last_seen(self) -> list[dict[str, Any]]:
        """The messages of the last request, as Chat Completions would have them."""
        return list(self.server.requests[-1].json["messages"])


@pytest.fixture(scope="module")
def parties() -> Iterator[Mapping[str, Party]]:
    """One of each."""
    made = {}
    for backend, make_server in SERVERS.items():
        server = make_server().start()
        config = {"model_type": backend, "model": "test-model", "base_url": server.url, "api_key": KEY}
        made[backend] = Party(server, get_chat_model(config))
    yield made
    for party in made.values():
        party.server.stop()


# --- what is said ---

WORDS = st.sampled_from(["Yes.", "看一下", 'a "quoted" \\ line\nand another', "🙂", "<tool_call>", "0"])


@dataclass(frozen=True)
class Step:
    """A question, what the model calls before it answers, and its answer."""

    question: str
    thought: str
    calls: tuple[tuple[str, str], ...]
    answer: str


STEPS = st.builds(
    Step,
    WORDS,
    st.sampled_from(["", "Hm …"]),
    st.lists(st.tuples(WORDS, WORDS), max_size=3).map(tuple),
    WORDS,
)


def carried_out(history: list[Message], step: Step, party: Party, number: int) -> None:
    """Take a step with one provider: everything it says goes into the history."""
    history.append(Message("user", step.question))
    if step.calls:
        # Servers count their ids anew: those of two providers may be the same.
        calls = [
            replies.ToolCall("look_up", {"what": what}, id=f"call_{place}")
            for place, (what, _) in enumerate(step.calls)
        ]
        said = party.answer(history, replies.tool_calls(calls))
        history += said
        asked = [message for message in said if message.function_call]
        assert len(asked) == len(step.calls)
        for message, (_, result) in zip(asked, step.calls, strict=True):
            history.append(Message("function", f"{result} {number}", name="look_up", extra=message.extra))
    reply = replies.reasoning(step.thought, then=step.answer) if step.thought else replies.text(step.answer)
    history += party.answer(history, reply)


def visible(history: Sequence[Message]) -> list[tuple[str, ...]]:
    """What no provider may lose of a history, in order."""
    seen: list[tuple[str, ...]] = []
    for message in history:
        if message.function_call:
            seen.append(("call", message.function_call.name, message.function_call.arguments))
        elif message.content:
            seen.append((message.role, message.get_text_content()))
    return seen


def received(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The same, of what arrived at a server."""
    seen: list[tuple[str, ...]] = []
    for message in messages:
        role = "function" if message["role"] == "tool" else message["role"]
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        if text:
            seen.append((role, text))
        seen += [("call", call["function"]["name"], call["function"]["arguments"]) for call in calls_of(message)]
    return seen


def calls_of(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return message.get("tool_calls") or ()


def assert_calls_are_answered(messages: Sequence[Mapping[str, Any]]) -> None:
    """Each call has an id of its own, and its result, with that id, right behind it."""
    ids = [call["id"] for message in messages for call in calls_of(message)]
    assert len(set(ids)) == len(ids)
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids


@pytest.mark.parametrize(("first", "second"), list(permutations(SERVERS, 2)))
@given(steps=st.tuples(STEPS, STEPS, STEPS))
@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_conversation_goes_to_another_provider_and_back_and_loses_nothing_that_is_visible(
    parties: Mapping[str, Party], first: str, second: str, steps: tuple[Step, Step, Step]
) -> None:
    history: list[Message] = []
    for number, (name, step) in enumerate(zip((first, second, first), steps, strict=True)):
        before = [message.model_dump_json() for message in history]
        # As it would be kept between two sessions.
        history = [Message(**Message.model_validate_json(text).model_dump()) for text in before]
        carried_out(history, step, parties[name], number)
        assert [message.model_dump_json() for message in history[: len(before)]] == before
    final = Message("user", "And now?")
    for party in (parties[first], parties[second]):
        party.answer([*history, final], replies.text("Done."))
        assert received(party.last_seen) == visible([*history, final])
        assert_calls_are_answered(party.last_seen)
        is_its_own = isinstance(party.server, FakeResponses)
        has_come_back = is_its_own and party is parties[first] and bool(steps[0].thought)
        assert is_its_own or OPAQUE not in party.server.requests[-1].body
        assert not has_come_back or OPAQUE in party.server.requests[-1].body
