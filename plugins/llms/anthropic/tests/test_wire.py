"""A request has the limits and options that the protocol and the model take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jackfield.config import GenerateConfig
from jackfield.errors import UnsupportedInputError
from jackfield.messages import FunctionCall, Message, Origin
from jackfield.request import ChatRequest, ModelFacts
from jackfield_anthropic.answer import MAX_PAUSES, usage_of
from jackfield_anthropic.config import AnthropicConfig
from jackfield_anthropic.schemas import enforceable_schema
from jackfield_anthropic.wire import HOSTED_TOOLS, Abilities, countable_body, drop_stale_reasoning, request_body

FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}, "strict": True}


def body(
    *,
    config: dict[str, Any] | None = None,
    abilities: Abilities = Abilities(),  # noqa: B008 - it is frozen
    facts: dict[str, Any] | None = None,
    functions: tuple[Any, ...] = (),
    messages: tuple[Message, ...] = (Message("user", "hi"),),
    **options: Any,
) -> dict[str, Any]:
    request = ChatRequest("m", messages, functions, GenerateConfig(**options), facts=ModelFacts(**(facts or {})))
    return request_body(request, AnthropicConfig(model="m", **(config or {})), abilities)


@pytest.mark.parametrize(
    ("config", "abilities", "facts", "options", "limit"),
    [
        ({}, {}, {}, {}, 8192),
        ({}, {}, {}, {"max_tokens": 5}, 5),
        ({"default_max_tokens": 100}, {}, {}, {}, 100),
        ({"default_max_tokens": 100}, {}, {}, {"max_tokens": 5}, 5),
        ({}, {"thinks_unasked": True}, {}, {}, 32_000),
        ({"thinking": "adaptive"}, {}, {}, {}, 32_000),
        ({"thinking": "disabled"}, {"thinks_unasked": True}, {}, {}, 8192),
        ({"thinking": "enabled"}, {}, {}, {}, 8192 + 1024),
        ({"thinking_budget": 2000}, {}, {}, {}, 8192 + 2000),
        ({"thinking_budget": 2000}, {}, {"max_output_tokens": 5000}, {}, 5000),
        ({}, {}, {"max_output_tokens": 4096}, {}, 4096),
        ({}, {}, {"max_output_tokens": 4096}, {"max_tokens": 9000}, 9000),
        ({"thinking_budget": 2000}, {}, {}, {"max_tokens": 2001}, 2001),
        ({"thinking_budget": 2000, "beta": ("interleaved-thinking-2025-05-14",)}, {}, {}, {"max_tokens": 5}, 5),
    ],
)
def test_a_request_always_has_a_limit(
    config: dict[str, Any], abilities: dict[str, Any], facts: dict[str, Any], options: dict[str, Any], limit: int
) -> None:
    assert body(config=config, abilities=Abilities(**abilities), facts=facts, **options)["max_tokens"] == limit


@pytest.mark.parametrize("limit", [1999, 2000])
def test_a_limit_must_be_larger_than_the_reasoning(limit: int) -> None:
    with pytest.raises(UnsupportedInputError, match=rf"max_tokens \({limit}\) .* thinking_budget \(2000\)"):
        body(config={"thinking_budget": 2000}, max_tokens=limit)


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"temperature": 1}, None),
        ({"temperature": 0.5}, "temperature"),
        ({"top_p": 0.95}, None),
        ({"top_p": 0.94}, "top_p"),
        ({"top_k": 1}, "top_k"),
        ({"temperature": 0, "top_p": 0.1, "top_k": 3}, "temperature, top_p, top_k"),
    ],
)
def test_a_model_that_thinks_takes_hardly_any_sampling(options: dict[str, Any], refused: str | None) -> None:
    sent = body(**options)
    assert {name: sent[name] for name in options} == options
    if refused is None:
        assert {name: body(config={"thinking": "enabled"}, **options)[name] for name in options} == options
    else:
        with pytest.raises(UnsupportedInputError, match=f"^{refused} cannot be set while thinking is enabled"):
            body(config={"thinking": "enabled"}, **options)
    with pytest.raises(UnsupportedInputError, match=f"^m does not support {', '.join(options)}: use its default"):
        body(abilities=Abilities(sampling=False), **options)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("seed", 1),
        ("seed", 0),
        ("presence_penalty", 1),
        ("presence_penalty", 0),
        ("frequency_penalty", 1),
        ("repetition_penalty", 1),
    ],
)
def test_an_option_that_the_protocol_lacks_is_refused(option: str, value: int) -> None:
    with pytest.raises(UnsupportedInputError, match=f"does not support {option}: remove it"):
        body(**{option: value})


@pytest.mark.parametrize(
    ("config", "abilities", "sent"),
    [
        ({}, {}, None),
        ({"thinking": "adaptive"}, {}, {"type": "adaptive"}),
        ({"thinking": "disabled"}, {}, {"type": "disabled"}),
        ({"thinking": "disabled"}, {"thinking": ()}, None),
        ({"thinking": "disabled"}, {"thinking": ("adaptive",)}, {"type": "disabled"}),
        ({"thinking": "enabled"}, {}, {"type": "enabled", "budget_tokens": 1024}),
        ({"thinking_budget": 3000}, {}, {"type": "enabled", "budget_tokens": 3000}),
        ({"thinking": "adaptive", "thinking_budget": 3000}, {}, {"type": "adaptive"}),
    ],
)
def test_thinking_is_asked_for_in_the_words_of_the_protocol(
    config: dict[str, Any], abilities: dict[str, Any], sent: object
) -> None:
    assert body(config=config, abilities=Abilities(**abilities)).get("thinking") == sent


def test_the_details_of_a_model_have_these_defaults() -> None:
    assert Abilities.read({}) == Abilities(None, False, True, True, False)
    details = {"thinking": ["enabled"], "thinks_unasked": True, "sampling": False, "prefill": False, "other": 1}
    assert Abilities.read(details, refuses_schemas=True) == Abilities(("enabled",), True, False, False, True)


@pytest.mark.parametrize(
    ("choice", "parallel", "sent"),
    [
        ("auto", None, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("auto", True, {"type": "auto", "disable_parallel_tool_use": False}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("f", True, {"type": "tool", "name": "f", "disable_parallel_tool_use": False}),
    ],
)
def test_a_choice_of_tools_is_written_in_the_protocols_words(choice: str, parallel: bool | None, sent: object) -> None:
    made = body(functions=(FUNCTION,), function_choice=choice, parallel_function_calls=parallel)
    assert made.get("tool_choice") == sent
    (tool,) = made["tools"]
    assert tool == {"name": "f", "description": "d", "input_schema": FUNCTION["parameters"], "strict": True}


@pytest.mark.parametrize("choice", ["required", "f"])
def test_a_model_that_cannot_be_forced_is_not(choice: str) -> None:
    with pytest.raises(UnsupportedInputError, match="cannot be forced to call a function while thinking is enabled"):
        body(config={"thinking": "enabled"}, functions=(FUNCTION,), function_choice=choice)
    with pytest.raises(
        UnsupportedInputError, match=f"cannot be forced to call a function, but function_choice is '{choice}'"
    ):
        body(facts={"forced_calls": False}, functions=(FUNCTION,), function_choice=choice)


def test_hosted_tools_have_the_versions_that_all_models_have() -> None:
    assert HOSTED_TOOLS == {
        "web_search": "web_search_20250305",
        "web_fetch": "web_fetch_20250910",
        "code_execution": "code_execution_20250825",
    }
    own = {"type": "web_search_20990101", "name": "web_search"}
    made = body(config={"hosted_tools": ("code_execution", own)})
    assert made["tools"] == [{"type": "code_execution_20250825", "name": "code_execution"}, own]
    assert MAX_PAUSES == 20


@pytest.mark.parametrize(
    ("format_", "sent"),
    [
        (None, None),
        ({"type": "text"}, None),
        (
            {"type": "json_schema", "json_schema": {"schema": {"type": "string"}}},
            {"format": {"type": "json_schema", "schema": {"type": "string"}}},
        ),
    ],
)
def test_a_schema_is_enforced_by_the_server_beside_the_effort(format_: Any, sent: Any) -> None:
    assert body(response_format=format_).get("output_config") == sent
    assert body(response_format=format_, reasoning_effort="low")["output_config"] == {**(sent or {}), "effort": "low"}
    refused = body(response_format=format_, abilities=Abilities(refuses_schemas=True))
    assert "output_config" not in refused
    assert ("system" in refused) == (sent is not None)


@pytest.mark.parametrize(
    "format_", [{"type": "json_object"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {}}]
)
def test_another_format_of_answers_is_refused(format_: Any) -> None:
    with pytest.raises(UnsupportedInputError, match="does not support a response_format of type"):
        body(response_format=format_)


@pytest.mark.parametrize(
    ("config", "mark"),
    [({}, {"type": "ephemeral"}), ({"cache_ttl": "1h"}, {"type": "ephemeral", "ttl": "1h"})],
)
def test_the_cache_is_marked_at_the_end_of_each_kept_part(config: dict[str, Any], mark: object) -> None:
    history = (Message("system", "s"), Message("user", "hi"))
    for where, in_history in (("system", False), ("history", True)):
        made = body(config={"cache_control": where, **config}, messages=history, functions=(FUNCTION,))
        assert made["system"][-1]["cache_control"] == mark
        assert "cache_control" not in made["tools"][-1]
        assert ("cache_control" in made["messages"][-1]["content"][-1]) == in_history
        without_system = body(config={"cache_control": where, **config}, functions=(FUNCTION,))
        assert without_system["tools"][-1]["cache_control"] == mark
    assert "cache_control" not in str(body(messages=history, functions=(FUNCTION,)))


def test_the_cache_is_not_marked_at_reasoning() -> None:
    origin = Origin(backend="anthropic", data={"server": "", "content": [{"type": "redacted_thinking", "data": "x"}]})
    history = (Message("user", "hi"), Message("assistant", "", origin=origin))
    made = body(config={"cache_control": "history"}, messages=history)
    assert made["messages"][-1]["content"] == [{"type": "redacted_thinking", "data": "x"}]


def test_an_empty_schema_is_described_to_the_model() -> None:
    made = body(response_format={"type": "json_schema", "json_schema": {"schema": {}}})
    assert ("output_config" in made, len(made["system"])) == (False, 1)


def test_the_extra_body_wins_over_every_part() -> None:
    made = body(config={"thinking": "adaptive"}, max_tokens=5, extra_body={"max_tokens": 9, "thinking": None, "own": 1})
    assert (made["max_tokens"], made["thinking"], made["own"]) == (9, None, 1)


def test_a_schema_in_words_is_in_the_language_of_the_call() -> None:
    wanted = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
    asked = ChatRequest("m", (Message("user", "hi"),), config=GenerateConfig(response_format=wanted))
    config = AnthropicConfig(model="m")
    english, chinese = (request_body(replace(asked, lang=lang), config)["system"][-1]["text"] for lang in ("en", "zh"))
    assert english.isascii()
    assert not chinese.isascii()


def test_each_function_is_told_apart_from_hosted_tools_and_keeps_what_it_states() -> None:
    other = {"name": "web_search", "description": "", "parameters": {"type": "object"}, "strict": False}
    sent = body(functions=(FUNCTION, other))["tools"][1]
    assert sent == {"name": "web_search", "description": "", "input_schema": {"type": "object"}, "strict": False}
    for functions in ((FUNCTION, other), (other, FUNCTION)):
        with pytest.raises(UnsupportedInputError, match="'web_search' is both a hosted tool and a function"):
            body(config={"hosted_tools": ("code_execution", "web_search")}, functions=functions)


@pytest.mark.parametrize("kind", ["adaptive", "between_tools", "disabled"])
def test_only_enabled_thinking_needs_reasoning_before_calls(kind: str) -> None:
    history = (
        Message("user", "hi"),
        Message("assistant", "", function_call=FunctionCall("f", "{}")),
        Message("function", "done", name="f"),
    )
    assert body(config={"thinking": kind}, messages=history, functions=(FUNCTION,))["thinking"] == {"type": kind}
    assert "thinking" not in body(config={"thinking": "enabled"}, messages=history, functions=(FUNCTION,))


def test_only_what_can_be_counted_is_counted() -> None:
    made = body(
        config={"thinking": "enabled"}, functions=(FUNCTION,), reasoning_effort="low", stop=["x"], temperature=1
    )
    assert countable_body(made).keys() == {"model", "messages", "tools", "thinking", "output_config"}
    assert made.keys() - countable_body(made).keys() == {"max_tokens", "stream", "stop_sequences", "temperature"}


@pytest.mark.parametrize(
    ("thinking", "dropped"),
    [
        (None, {"type": "adaptive"}),
        ({"type": "adaptive"}, {"type": "adaptive"}),
        ({"type": "enabled", "budget_tokens": 1024}, None),
        ({"type": "disabled"}, None),
        ({"type": "adaptive", "block_binding": {}}, None),
    ],
)
def test_only_a_model_that_thinks_by_its_own_measure_can_drop_stale_reasoning(thinking: Any, dropped: Any) -> None:
    made = {} if thinking is None else {"thinking": thinking}
    assert drop_stale_reasoning(made) == (dropped is not None)
    if dropped is None:
        assert made == {"thinking": thinking}
    else:
        assert made["thinking"] == {**dropped, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def test_usage_is_read_from_every_place() -> None:
    usage = usage_of(
        {
            "input_tokens": 1,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 300,
            "cache_creation": {"ephemeral_1h_input_tokens": 4000},
            "output_tokens": 50_000,
            "output_tokens_details": {"thinking_tokens": 600_000},
        }
    )
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (321, 50_000, 50_321)
    assert (usage.cached_tokens, usage.cache_write_tokens, usage.long_cache_write_tokens) == (20, 300, 4000)
    assert usage.reasoning_tokens == 600_000


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "fitted"),
    [
        (OBJECT, {**OBJECT, "additionalProperties": False}),
        ({**OBJECT, "additionalProperties": False}, {**OBJECT, "additionalProperties": False}),
        ({**OBJECT, "additionalProperties": True}, None),
        ({**OBJECT, "patternProperties": {"x": {}}}, None),
        ({"type": "object"}, None),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "properties": {}, "additionalProperties": False},
        ),
        ({}, None),
        (True, None),
        ({"enum": [1, 2]}, {"enum": [1, 2]}),
        ({"const": 1, "default": 1, "examples": [1], "$id": "x", "$schema": "y"}, {"const": 1}),
        ({"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
        ({"allOf": [{"type": "string"}]}, {"allOf": [{"type": "string"}]}),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            {"type": "array", "items": {"type": "integer"}, "description": "minItems: 2"},
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 0},
            {"type": "array", "items": {"type": "integer"}, "minItems": 0},
        ),
        ({"type": "array"}, None),
        ({"type": "string", "minLength": 1, "description": ""}, {"type": "string", "description": "minLength: 1"}),
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
        ({"type": "string", "format": "odd"}, {"type": "string", "description": 'format: "odd"'}),
        ({"type": "integer", "format": "date"}, {"type": "integer", "description": 'format: "date"'}),
        (
            {"type": "integer", "minimum": 1, "maximum": 9, "description": "n"},
            {"type": "integer", "description": "n (minimum: 1, maximum: 9)"},
        ),
        (
            {"type": ["array", "string"], "items": {"type": "integer"}, "minItems": 1, "description": "d"},
            {
                "description": "d",
                "anyOf": [{"type": "array", "items": {"type": "integer"}, "minItems": 1}, {"type": "string"}],
            },
        ),
        (
            {"type": ["string", "null"], "title": "t", "enum": ["a", None]},
            {"title": "t", "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null", "enum": [None]}]},
        ),
        (
            {"$ref": "#/definitions/x", "title": "t", "definitions": {"x": {"type": "string"}}},
            {"$defs": {"x": {"type": "string"}}, "$ref": "#/$defs/x"},
        ),
        ({"$ref": "#/$defs/y", "$defs": {"x": {"type": "string"}}}, None),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}}}}, None),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}]}}}, None),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}}, None),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}}},
            None,
        ),
    ],
)  # fmt: skip
def test_a_schema_is_fitted_or_not_enforced_at_all(schema: Any, fitted: Any) -> None:
    wrapped = {"type": "array", "items": schema} if not isinstance(schema, dict) else schema
    assert enforceable_schema(wrapped) == fitted
