"""An agent with a tool: the model sees placeholders, the tool and the user see values."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.config import GenerateConfig, LLMConfig
from jackfield.errors import ConfigError, ModelOverloadedError
from jackfield.events import ModelEvent, TextDelta
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_redaction.processor import Redaction

BOB = "bob@example.com"
PHONE = "+49 30 1234567"


@tool
def look_up(mail: str) -> str:
    """Look up somebody's telephone number."""
    return f"{mail} has the number {PHONE}"


def _ask(model: ScriptedModel) -> list[dict[str, Any]]:
    agent = FnCallAgent([look_up], model)
    return [dict(message) for message in agent.run_nonstream([{"role": "user", "content": f"Which number has {BOB}?"}])]


def _sent(model: ScriptedModel) -> str:
    return str([message.model_dump() for request in model.requests for message in request.messages])


SCRIPT = [
    calls(("look_up", {"mail": "[EMAIL_1]"}), text="I ask for [EMAIL_1]."),
    answer("[EMAIL_1] has [PHONE_1].", reasoning="[PHONE_1] is it"),
]


@pytest.mark.parametrize("named", ["redaction", {"name": "redaction", "kinds": ["email", "phone"]}])
def test_a_model_that_is_configured_with_it_sees_only_placeholders(named: str | dict[str, Any]) -> None:
    model = ScriptedModel(SCRIPT, config=LLMConfig(model="scripted", processors=(named,)))
    messages = _ask(model)
    assert messages[-1]["content"] == f"{BOB} has {PHONE}."
    assert messages[-2]["reasoning_content"] == f"{PHONE} is it"
    assert [message["content"] for message in messages if message["role"] == "function"] == [
        f"{BOB} has the number {PHONE}"
    ]
    assert BOB not in _sent(model)
    assert PHONE not in _sent(model)
    assert "[EMAIL_1] has the number [PHONE_1]" in _sent(model)


def test_an_attempt_that_failed_in_a_placeholder_leaves_nothing_in_the_next() -> None:
    broken: list[ModelEvent | Exception] = [TextDelta("It is [EMA"), ModelOverloadedError("busy", retry_after_s=0)]
    config = LLMConfig(model="scripted", processors=("redaction",), generate_cfg=GenerateConfig(max_retries=1))
    model = ScriptedModel([broken, answer("IL_1] [EMAIL_1]")], config=config)
    assert _ask(model)[-1]["content"] == f"IL_1] {BOB}"


def test_what_is_removed_reaches_neither_the_model_nor_the_tool_nor_the_user() -> None:
    script = [calls(("look_up", {"mail": "[EMAIL]"})), answer(f"Or {PHONE}.")]
    model = ScriptedModel(script, processors=[Redaction(mode="remove")])
    messages = _ask(model)
    assert messages[-1]["content"] == "Or [PHONE]."
    assert BOB not in _sent(model)
    assert BOB not in str(messages)


def test_settings_that_do_not_fit_are_told_before_anything_is_sent() -> None:
    model = ScriptedModel(SCRIPT, config=LLMConfig(model="scripted", processors=({"name": "redaction", "kind": "x"},)))
    with pytest.raises(ConfigError, match="kinds"):
        _ask(model)
    assert model.requests == []
