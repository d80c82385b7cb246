"""The rules of Anthropic's protocol find what the provider's servers refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_testkit.anthropic_rules import MAX_CACHE_MARKS, MIN_BUDGET_TOKENS, problem_in

MARK = {"cache_control": {"type": "ephemeral"}}
marks = st.lists(st.booleans(), min_size=1, max_size=MAX_CACHE_MARKS + 1)


def block(text: str, *, is_marked: bool) -> dict[str, Any]:
    return {"type": "text", "text": text, **(MARK if is_marked else {})}


def body_of(system: list[bool], tools: list[bool], content: list[bool]) -> dict[str, Any]:
    """Return a request in which these parts are marked for the cache."""
    return {
        "model": "test-model",
        "max_tokens": 100,
        "system": [block("Be brief.", is_marked=is_marked) for is_marked in system],
        "tools": [
            {"name": f"tool_{number}", "input_schema": {"type": "object"}, **(MARK if is_marked else {})}
            for number, is_marked in enumerate(tools)
        ],
        "messages": [{"role": "user", "content": [block("Hi", is_marked=is_marked) for is_marked in content]}],
    }


@given(marks, marks, marks)
def test_marks_for_the_cache_count_wherever_they_are(
    system: list[bool], tools: list[bool], content: list[bool]
) -> None:
    problem = problem_in(body_of(system, tools, content))
    is_refused = [*system, *tools, *content].count(True) > MAX_CACHE_MARKS
    assert problem == ("A maximum of 4 blocks with cache_control may be provided" if is_refused else "")


@pytest.mark.parametrize("place", range(3), ids=["system", "tools", "content"])
def test_each_place_for_marks_has_the_same_limit(place: int) -> None:
    for count, is_refused in ((MAX_CACHE_MARKS, False), (MAX_CACHE_MARKS + 1, True)):
        parts = [[False], [False], [False]]
        parts[place] = [True] * count
        assert bool(problem_in(body_of(*parts))) is is_refused


# --- the other rules ---

ADAPTIVE, ALWAYS, PREFILL = "claude-opus-4-7", "claude-opus-5-5", "claude-sonnet-4-6"
LOOK_UP = {"name": "look_up", "input_schema": {"type": "object"}}
FORCED = ({"type": "any"}, {"type": "tool", "name": "look_up"})
PIXEL = {"type": "base64", "media_type": "image/png", "data": "AA=="}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "x"}


def user(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks],
    }


def model(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {**user(*blocks), "role": "assistant"}


def use(call_id: str, **changes: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look_up", "input": {}, **changes}


def result(call_id: str, content: Any = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def talk(*messages: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return a request that goes on after the user's first message."""
    return {"messages": [user("Hi"), *messages], "tools": [LOOK_UP], **options}


def thinks(budget_tokens: int = MIN_BUDGET_TOKENS, **options: Any) -> dict[str, Any]:
    return {"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": budget_tokens}, **options}


def answers_in(**schema: Any) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def table_of(**fields: Any) -> dict[str, Any]:
    return answers_in(type="object", properties=fields, additionalProperties=False)


TO_NODE, TO_OTHER = ({"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in ("node", "other"))
# For each rule: the error, requests that the rule allows, and requests that break it.
RULES: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("max_tokens: must be at least 1", [{"max_tokens": 1}], [{"max_tokens": 0}, {"max_tokens": None}]),
    (
        f"temperature, top_p and top_k: not supported by {ADAPTIVE}",
        [{"temperature": 0}, {"model": "claude-opus-4-6", "top_k": 5}, {"model": ADAPTIVE}],
        [{"model": ADAPTIVE, name: 1} for name in ("temperature", "top_p", "top_k")],
    ),
    (
        f"thinking.enabled.budget_tokens: must be at least {MIN_BUDGET_TOKENS}",
        [thinks()],
        [thinks(MIN_BUDGET_TOKENS - 1)],
    ),
    ("max_tokens: must be greater than thinking.budget_tokens", [thinks(1999)], [thinks(2000)]),
    (
        "temperature: may only be set to 1 when thinking is enabled",
        [thinks(temperature=1)],
        [thinks(temperature=0), thinks(temperature=0.9)],
    ),
    (
        "top_k must be unset and top_p at least 0.95 when thinking is enabled",
        [thinks(top_p=0.95)],
        [thinks(top_p=0.94), thinks(top_k=5)],
    ),
    (
        f"thinking.type.enabled: not supported by {ADAPTIVE}",
        [thinks(model="claude-opus-4-6"), {"model": ADAPTIVE, "thinking": {"type": "adaptive"}}],
        [thinks(model=ADAPTIVE)],
    ),
    (
        f"thinking.type.disabled: not supported by {ALWAYS}",
        [{"model": ADAPTIVE, "thinking": {"type": "disabled"}}],
        [{"model": ALWAYS, "thinking": {"type": "disabled"}}],
    ),
    (
        "Thinking may not be enabled when tool_choice forces tool use",
        [thinks(tools=[LOOK_UP], tool_choice={"type": "auto"}), {"tools": [LOOK_UP], "tool_choice": FORCED[0]}],
        [thinks(tools=[LOOK_UP], tool_choice=choice) for choice in FORCED],
    ),
    (
        f"tool_choice: {ALWAYS} takes auto and none only",
        [{"model": ALWAYS, "tools": [LOOK_UP], "tool_choice": {"type": kind}} for kind in ("auto", "none")],
        [{"model": ALWAYS, "tools": [LOOK_UP], "tool_choice": choice} for choice in FORCED],
    ),
    # schemas
    (
        "property 'maximum' is not supported",
        [table_of(age={"type": "integer", "title": "Age"})],
        [
            answers_in(type="integer", maximum=5),
            table_of(first={"type": "string"}, age={"type": "integer", "maximum": 5}),
            answers_in(type="array", items={"type": "integer", "maximum": 5}),
            answers_in(anyOf=[{"type": "null"}, {"type": "integer", "maximum": 5}]),
            answers_in(allOf=[{"type": "integer", "maximum": 5}]),
            answers_in(**{"$ref": "#/$defs/age", "$defs": {"age": {"type": "integer", "maximum": 5}}}),
        ],
    ),
    (
        "recursive definition 'node' is not supported",
        [
            answers_in(
                type="array",
                items={"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]},
                **{"$defs": {"a": {"type": "null"}}},
            )
        ],
        [
            answers_in(**{"$ref": "#/$defs/node", "$defs": {"other": TO_NODE, "node": node}})
            for node in (TO_NODE, TO_OTHER)
        ]
        + [answers_in(**{"$ref": "#/$defs/other", "$defs": {"other": TO_NODE, "node": TO_NODE}})],
    ),
    ("no definition 'gone'", [], [table_of(age={"$ref": "#/$defs/gone"})]),
    ("a type is required", [answers_in(enum=[1]), answers_in(const=1)], [table_of(age={"title": "Age"})]),
    ("use anyOf for several types", [answers_in(anyOf=[{"type": "null"}])], [answers_in(type=["null", "string"])]),
    (
        "'additionalProperties' must be explicitly set to false",
        [table_of()],
        [answers_in(type="object"), answers_in(type="object", additionalProperties=True)],
    ),
    ("an array needs items", [answers_in(type="array", items={"type": "null"})], [answers_in(type="array")]),
    (
        "format or minItems has an unsupported value",
        [answers_in(type="string", format="uuid"), answers_in(type="array", items={"type": "null"}, minItems=1)],
        [answers_in(type="string", format="color"), answers_in(type="array", items={"type": "null"}, minItems=2)],
    ),
    # tools
    (
        "should match '^[a-zA-Z0-9_-]{1,128}$'",
        [{"tools": [{**LOOK_UP, "name": "a-Z_9" + "x" * 123}]}],
        [{"tools": [LOOK_UP, {**LOOK_UP, "name": name}]} for name in ("", "x" * 129, "look up", "näh", "a\n", None)],
    ),
    (
        "tools.input_schema.type: must be 'object'",
        [{"tools": [{"type": "web_search_20250305", "name": "web_search"}]}],
        [{"tools": [LOOK_UP, {"name": "b", **schema}]} for schema in ({}, {"input_schema": {"type": "array"}})],
    ),
    (
        "tools: Tool names must be unique.",
        [{"tools": [LOOK_UP, {**LOOK_UP, "name": "Look_up"}]}],
        [{"tools": [LOOK_UP, {**LOOK_UP, "name": "b"}, LOOK_UP]}],
    ),
    ("tool_choice: may only be specified while providing tools", [], [{"tool_choice": {"type": "auto"}}]),
    (
        "tool_choice: no tool 'gone'",
        [{"tools": [LOOK_UP], "tool_choice": FORCED[1]}],
        [{"tools": [LOOK_UP], "tool_choice": {"type": "tool", "name": "gone"}}],
    ),
    # messages
    ("messages: at least one message is required", [], [{"messages": []}]),
    ('first message must use the "user" role', [], [{"messages": [model("Hi"), user("Hi")]}]),
    (
        "a role or a content is missing or not valid",
        [talk(model("Yes."), user("So?"))],
        [talk(model("Yes."), {"role": "system", "content": "x"}), talk(model("Yes."), user())],
    ),
    (
        "text content blocks must contain non-whitespace text",
        [{"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}],
        [
            {"system": " "},
            {"system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": ""}]},
            {"messages": [{"role": "user", "content": "\n"}]},
            talk(model("Yes.", " "), user("So?")),
            talk(model(use("a")), user(result("a", [{"type": "text", "text": ""}]))),
        ],
    ),
    (
        "each `tool_result` block must have a corresponding `tool_use` block in the previous message",
        [
            talk(model(use("a"), use("b")), user(result("b"), result("a"), "So?")),
            talk(model(use("a")), user(result("a")), model(use("b")), user(result("b"))),
        ],
        [
            talk(model("Yes."), user(result("a"))),
            talk(model(use("a"), use("b")), user(result("a"))),
            talk(model(use("a")), user(result("a"), result("a"))),
            talk(model(use("a")), user("So?"), model("Yes."), user(result("a"))),
            {"messages": [user(result("a"))]},
        ],
    ),
    (
        "`tool_result` blocks must come first",
        [talk(model(use("a")), user(result("a"), "So?"))],
        [
            talk(model(use("a")), user("So?", result("a"))),
            talk(model(use("a"), use("b")), user(result("a"), "So?", result("b"))),
        ],
    ),
    (
        "`tool_use` ids must be unique",
        [],
        [
            talk(model(use("a"), use("a")), user(result("a"), result("a"))),
            talk(model(use("a")), user(result("a")), model(use("a")), user(result("a"))),
            talk(
                model(use("a")),
                user(result("a")),
                model(use("b")),
                user(result("b")),
                model(use("a")),
                user(result("a")),
            ),
        ],
    ),
    (
        "tools: must be defined for requests with `tool_use` blocks",
        [],
        [{"messages": [user("Hi"), model(use("a")), user(result("a"))]}],
    ),
    (
        "`tool_use` ids were found without `tool_result` blocks immediately after",
        [],
        [talk(model(use("a"))), talk(model(use("a")), user(result("a")), model(use("b")))],
    ),
    (
        "final assistant content cannot end with trailing whitespace",
        [talk(model("Yes. ", "So"))],
        [talk(model("So", "Yes. ")), talk(model("Yes.\n"))],
    ),
    (
        "the conversation must end with a user message",
        [talk(model("So"), model="claude-sonnet-4-5"), talk(model("So"), user("So?"), model=PREFILL)],
        [talk(model("So"), model=PREFILL), talk(model("So"), model=ALWAYS), talk(model(THOUGHT, "So"), **thinks())],
    ),
    (
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
        [talk(model(thought, use("a")), user(result("a")), **thinks()) for thought in (THOUGHT, HIDDEN)]
        + [
            talk(model(use("a")), user(result("a"))),
            talk(model(use("a")), user(result("a")), model("So"), user("So?"), **thinks()),
        ],
        [
            talk(model(use("a")), user(result("a")), **thinks()),
            talk(model("So", use("a")), user(result("a")), **thinks()),
        ],
    ),
    # blocks
    (
        "id and name should match",
        [talk(model(use("a-Z_9")), user(result("a-Z_9")))],
        [
            talk(model(use("a", name="look up")), user(result("a"))),
            talk(model(use("a"), use("a b")), user(result("a"), result("a b"))),
            talk(model(use("")), user(result(""))),
        ],
    ),
    (
        "tool_use.input: must be an object",
        [talk(model(use("a", input={"b": [1]})), user(result("a")))],
        [talk(model(use("a", input=value)), user(result("a"))) for value in ("{}", [], None)],
    ),
    (
        "image.source.media_type: must be",
        [talk(user("See", {"type": "image", "source": {"type": "url", "url": "https://example.com/a.tiff"}}))]
        + [
            talk(user({"type": "image", "source": {**PIXEL, "media_type": f"image/{kind}"}}))
            for kind in ("jpeg", "png", "gif", "webp")
        ],
        [
            talk(user("See", {"type": "image", "source": {**PIXEL, "media_type": "image/tiff"}})),
            talk(
                model(use("a")),
                user(result("a", [{"type": "image", "source": {**PIXEL, "media_type": "image/bmp"}}])),
            ),
        ],
    ),
    (
        "thinking.signature: Field required",
        [talk(model(THOUGHT, "So"), user("So?"))],
        [talk(model({**THOUGHT, "signature": sign}, "So"), user("So?")) for sign in ("", None)],
    ),
    (
        "cache_control cannot be set for thinking blocks",
        [talk(model(THOUGHT, {"type": "text", "text": "So", **MARK}), user("So?"))],
        [talk(model({**block, **MARK}, "So"), user("So?")) for block in (THOUGHT, HIDDEN)],
    ),
]


@pytest.mark.parametrize(("error", "allowed", "refused"), RULES, ids=[error[:40] for error, *_ in RULES])
def test_each_rule_refuses_only_requests_that_break_it(
    error: str, allowed: list[dict[str, Any]], refused: list[dict[str, Any]]
) -> None:
    base = {"model": "test-model", "max_tokens": 100, "messages": [user("Hi")]}
    assert [problem_in({**base, **changes}) for changes in allowed] == [""] * len(allowed)
    for changes in refused:
        assert error in problem_in({**base, **changes}), changes


@pytest.mark.parametrize(
    ("name", "is_adaptive", "always_thinks", "forbids_prefill"),
    [
        ("claude-opus-4-6", False, False, True),
        ("claude-opus-4-7", True, False, True),
        ("claude-opus-4-8", True, False, True),
        ("claude-opus-5", True, False, True),
        ("claude-opus-5-5", True, True, True),
        ("claude-sonnet-4-5", False, False, False),
        ("claude-sonnet-4-6", False, False, True),
        ("claude-sonnet-5", True, False, True),
        ("claude-sonnet-5-5", True, True, True),
        ("claude-haiku-4-5", False, False, False),
        ("claude-haiku-5", True, False, True),
        ("claude-fable-5", True, True, True),
        ("claude-mythos-5", True, True, True),
        ("other-claude-opus-5", False, False, False),
    ],
)
def test_rules_of_model_generations(name: str, is_adaptive: bool, always_thinks: bool, forbids_prefill: bool) -> None:
    base = {"model": name, "max_tokens": 2000, "messages": [user("Hi")]}
    assert bool(problem_in({**base, "temperature": 1})) is is_adaptive
    assert bool(problem_in({**base, **thinks()})) is is_adaptive
    assert bool(problem_in({**base, "thinking": {"type": "disabled"}})) is always_thinks
    assert bool(problem_in({**base, "messages": [user("Hi"), model("So")]})) is forbids_prefill
