"""A question of a server reaches the one person who follows the call, and a model only where the settings name one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.plugins import default_host
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import ToolContext
from jackfield_mcp.asking import Asked
from jackfield_mcp.sampling import Sampler

# --- questions ---


def form(fields: Mapping[str, Any], *required: str) -> Any:
    schema = {"type": "object", "properties": fields, "required": list(required)}
    return SimpleNamespace(message="Sure?", mode="form", requested_schema=schema)


ADDRESS = SimpleNamespace(message="Log in", mode="url", url="https://login.example/")


class Person:
    """Answers each question alike, and notes it."""

    def __init__(self, answer: Any = True) -> None:
        self.answer = answer
        self.questions: list[Any] = []

    async def __call__(self, question: Any) -> Any:
        self.questions.append(question)
        return self.answer


def asked(params: Any, *persons: Person, fills_forms: bool = False) -> dict[str, Any]:
    """The answer to a question while a call of each person runs."""

    async def ask() -> dict[str, Any]:
        questions = Asked("s")
        for person in persons:
            questions.begin(ToolContext(ask=person, fills_forms=fills_forms), asyncio.get_running_loop())
        return (await questions.elicit(None, params)).model_dump(exclude_none=True)  # type: ignore[no-any-return]

    found = asyncio.run(ask())
    return {name: value for name, value in found.items() if name in ("action", "content")}


@pytest.mark.parametrize(
    ("fields", "required", "content"),
    [
        ({"sure": {"type": "boolean"}}, ["sure"], {"sure": True}),
        ({"sure": {"type": "boolean", "default": False}}, ["sure"], {"sure": False}),
        ({"name": {"type": "string", "default": "x"}}, ["name"], {"name": "x"}),
        ({"name": {"type": "string"}}, [], {}),
        ({}, [], {}),
    ],
    ids=["yes or no", "default no", "default text", "optional", "nothing"],
)
def test_an_approval_fills_defaults_and_yes_or_no_fields_and_nothing_else(
    fields: dict[str, Any], required: list[str], content: dict[str, Any]
) -> None:
    person = Person()
    assert asked(form(fields, *required), person) == {"action": "accept", "content": content}
    assert person.questions == [{"server_asks": "Sure?", "answer": content}]


def test_a_question_is_declined_if_no_call_or_more_than_one_runs() -> None:
    one, other = Person(), Person()
    assert asked(form({})) == asked(form({}), one, other) == {"action": "decline"}
    assert one.questions == other.questions == []


@pytest.mark.parametrize(
    ("said", "action"),
    [(True, "accept"), (False, "decline"), ("yes", "decline"), (1, "decline"), ({"a": "x"}, "decline")],
)
def test_an_address_is_shown_and_accepted_only_by_a_plain_yes(said: Any, action: str) -> None:
    person = Person(said)
    assert asked(ADDRESS, person) == {"action": action}
    assert person.questions == [{"server_asks": "Log in", "address": "https://login.example/"}]


def test_a_person_sees_the_form_only_if_it_can_be_filled() -> None:
    text = form({"name": {"type": "string"}}, "name")
    sees, sees_not = Person({"name": "x"}), Person()
    assert asked(text, sees, fills_forms=True) == {"action": "accept", "content": {"name": "x"}}
    assert sees.questions == [{"server_asks": "Sure?", "answer": None, "form": text.requested_schema}]
    assert asked(text, sees_not) == {"action": "decline"}
    assert sees_not.questions == []


@pytest.mark.parametrize(
    ("values", "is_accepted"),
    [
        ({"a": "x"}, True),
        ({"a": ["x"], "b": 2.5}, True),
        ({"a": True, "b": 1}, True),
        ({"b": 1}, False),
        ({"a": "x", "c": 1}, False),
        ({"a": None}, False),
        ({"a": {"x": 1}}, False),
    ],
)
def test_a_form_is_accepted_if_it_is_complete_and_has_fields_of_the_protocol(
    values: dict[str, Any], is_accepted: bool
) -> None:
    fields = {"a": {"type": "string"}, "b": {"type": "number"}}
    result = asked(form(fields, "a"), Person(values), fills_forms=True)
    assert result == ({"action": "accept", "content": values} if is_accepted else {"action": "decline"})


def test_each_call_has_ten_questions() -> None:
    person = Person()

    async def run() -> list[str]:
        questions, actions = Asked("s"), list[str]()
        for _ in range(2):
            call = questions.begin(ToolContext(ask=person), asyncio.get_running_loop())
            actions += [(await questions.elicit(None, form({}))).action for _ in range(12)]
            questions.end(call)
        return actions

    assert asyncio.run(run()) == [*["accept"] * 10, *["decline"] * 2] * 2
    assert len(person.questions) == 20


def test_the_questions_of_a_call_end_with_it() -> None:
    async def run() -> Any:
        is_asked = asyncio.Event()

        async def never(_: Any) -> bool:
            is_asked.set()
            await asyncio.Event().wait()
            return True

        questions = Asked("s")
        call = questions.begin(ToolContext(ask=never), asyncio.get_running_loop())
        waiting = asyncio.ensure_future(questions.elicit(None, form({})))
        await is_asked.wait()
        questions.end(call)
        first = await asyncio.wait_for(waiting, 60)
        # The next call is the only one again.
        questions.begin(ToolContext(ask=Person()), asyncio.get_running_loop())
        return first.action, (await questions.elicit(None, form({}))).action

    assert asyncio.run(run()) == ("decline", "accept")


# --- sampling ---


def text(content: str) -> Any:
    return SimpleNamespace(type="text", text=content)


def request(*contents: Any, **options: Any) -> Any:
    messages = [SimpleNamespace(role="user", content=content) for content in contents]
    unset = dict.fromkeys(("system_prompt", "max_tokens", "temperature", "stop_sequences"))
    return SimpleNamespace(messages=messages, **{**unset, **options})


def sampled(sampler: Sampler, params: Any) -> Any:
    return asyncio.run(sampler(None, params))


def test_a_model_gets_the_messages_and_the_options_of_a_server() -> None:
    model = ScriptedModel([answer("one"), answer("two"), answer("three")])
    sampler = Sampler("s", model, default_host())
    result = sampled(
        sampler,
        request(
            text("a"), [text("b"), text("c")], system_prompt="be short", max_tokens=7, temperature=0.5,
            stop_sequences=["."],
        ),
    )  # fmt: skip
    assert (result.role, result.content.text, result.stop_reason) == ("assistant", "one", "endTurn")
    assert result.model == model.address
    sampled(sampler, request(text("d")))
    sampled(sampler, request(text("e"), temperature=0))
    first, second, third = model.requests
    assert third.config.temperature == 0
    shown = [(message.role, message.get_text_content()) for message in first.messages]
    assert shown == [("system", "be short"), ("user", "a"), ("user", "b\nc")]
    assert (first.config.max_tokens, first.config.temperature, first.config.stop) == (7, 0.5, (".",))
    assert (second.config.max_tokens, second.config.temperature, second.config.stop) == (None, None, ())


def test_a_model_is_asked_a_hundred_times_for_one_start_of_a_server() -> None:
    model = ScriptedModel([answer(str(number)) for number in range(101)])
    sampler = Sampler("s", model, default_host())

    async def ask() -> list[Any]:
        return [await sampler(None, request(text("go on"))) for _ in range(102)]

    results = asyncio.run(ask())
    assert [result.content.text for result in results[:100]] == [str(number) for number in range(100)]
    assert [result.message for result in results[100:]] == ["limit of 100 model responses reached"] * 2
    assert len(model.requests) == 100


def test_only_texts_can_be_asked() -> None:
    model = ScriptedModel([answer("never")])
    image = SimpleNamespace(type="image", data="", mime_type="image/png")
    for content in (image, [text("a"), image]):
        result = sampled(Sampler("s", model, default_host()), request(content))
        assert result.message == "the model request failed: ValueError"
    assert model.requests == []
