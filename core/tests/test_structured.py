"""An answer as data: asked for in the way the model can, validated, sent back with the reasons."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from jackfield._response_formats import response_format, strict_schema
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError, InvalidAnswerError, InvalidMessageError
from jackfield.events import MediaDelta, ModelFinished, TextDelta
from jackfield.messages import ContentItem, Message, Usage
from jackfield.models._structured import ANSWER_TOOL
from jackfield.request import ModelFacts
from jackfield.testing import ScriptedModel, answer, calls


class Weather(BaseModel):
    city: str
    day: datetime.date
    degrees: float = 3.0


GOOD = '{"city": "Bonn", "day": "2026-01-02"}'
FITS = Weather(city="Bonn", day=datetime.date(2026, 1, 2))
HELD = ModelFacts(json_schema=True)
PLAIN = ModelFacts(native_tools=False)


@pytest.mark.parametrize("facts", [HELD, ModelFacts()], ids=["native", "tool"])
@pytest.mark.parametrize("way", ["native", "tool", "prompt"])
def test_a_way_that_the_caller_chooses_is_taken_whatever_the_model_can(way: Any, facts: ModelFacts) -> None:
    model = ScriptedModel([answer(GOOD)], facts=facts, processors=[])
    assert model.parse("q", Weather, way=way).value == FITS
    [request] = model.requests
    chosen = [
        request.config.response_format is not None,
        request.config.function_choice == ANSWER_TOOL,
        request.messages[0].role == "system",
    ]
    assert chosen == [way == "native", way == "tool", way == "prompt"]


def test_a_question_with_a_history_is_asked_for_data_with_its_options_and_as_often_as_allowed() -> None:
    model = ScriptedModel([answer("no")] * 2, facts=HELD)
    before = [Message("user", "a"), Message("assistant", "b")]
    with pytest.raises(InvalidAnswerError, match="in 2 attempts"):
        model.ask("q", output=Weather, history=before, attempts=2, config={"seed": 7})
    assert [request.config.seed for request in model.requests] == [7, 7]
    assert [message.content for message in model.requests[0].messages] == ["a", "b", "q"]


def test_a_server_that_can_is_given_the_schema_and_nothing_else_changes() -> None:
    model = ScriptedModel([answer(GOOD)], facts=HELD)
    assert model.parse("q", Weather).value == FITS
    (request,) = model.requests
    assert request.config.response_format == response_format(Weather.model_json_schema())
    assert [message.content for message in request.messages] == ["q"]
    assert request.functions == ()


def test_a_model_with_tools_is_made_to_call_one_whose_arguments_are_the_answer() -> None:
    model = ScriptedModel([calls((ANSWER_TOOL, {"city": "Bonn", "day": "2026-01-02"}))])
    assert model.parse("q", Weather).value == FITS
    (request,) = model.requests
    assert request.config.function_choice == ANSWER_TOOL
    assert [function["name"] for function in request.functions] == [ANSWER_TOOL]


def test_the_first_of_several_answers_counts_and_calls_of_other_tools_do_not() -> None:
    other: dict[str, object] = {"city": "Jena", "day": "2026-01-02"}
    first = (ANSWER_TOOL, {**other, "city": "Bonn"})
    for made in ([first, (ANSWER_TOOL, other)], [("look", other), first]):
        assert ScriptedModel([calls(*made)]).parse("q", Weather, attempts=1).value == FITS


def test_an_answer_is_validated_as_json_also_by_a_strict_model() -> None:
    class Stay(BaseModel, strict=True):
        nights: tuple[datetime.date, ...]

    model = ScriptedModel([answer('{"nights": ["2026-01-02"]}')], facts=HELD)
    assert model.parse("q", Stay, attempts=1).value == Stay(nights=(datetime.date(2026, 1, 2),))


@pytest.mark.parametrize(("question", "word"), [("q", "Answer"), ("天气", "回答")])
def test_any_other_model_is_told_the_schema_in_the_language_of_the_conversation(question: str, word: str) -> None:
    model = ScriptedModel([answer(GOOD)], facts=PLAIN)
    assert model.parse(question, Weather).value == FITS
    system, user = model.requests[0].messages
    assert word in system.content
    assert '"degrees"' in system.content
    assert user.content == question


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"Here it is:\n```json\n{GOOD}\n```\nAnything else?",
        f"<think>a {{brace}}</think>\n{GOOD}",
        f"The weather: {GOOD} as of today",
        "{'city': 'Bonn', 'day': '2026-01-02',}",
    ],
)
@pytest.mark.parametrize("facts", [HELD, ModelFacts(), PLAIN], ids=["native", "tool", "prompt"])
def test_what_models_write_around_the_answer_does_no_harm(text: str, facts: ModelFacts) -> None:
    assert ScriptedModel([answer(text)], facts=facts).parse("q", Weather).value == FITS


@pytest.mark.parametrize("facts", [HELD, ModelFacts(), PLAIN], ids=["native", "tool", "prompt"])
def test_an_answer_that_does_not_fit_goes_back_with_the_reasons_and_all_attempts_are_paid_for(
    facts: ModelFacts,
) -> None:
    wrong = calls((ANSWER_TOOL, {"city": 1})) if facts == ModelFacts() else answer('{"city": 1}')
    model = ScriptedModel([wrong, answer(GOOD)], facts=facts)
    result = model.parse("q", Weather)
    assert (result.value, result.attempts) == (FITS, 2)
    assert result.response.usage.total_tokens == 4
    sent_back = model.requests[1].messages[-1]
    assert sent_back.role == ("function" if facts == ModelFacts() else "user")
    assert "city" in sent_back.content
    assert "day" in sent_back.content


@pytest.mark.parametrize("facts", [HELD, ModelFacts(), PLAIN], ids=["native", "tool", "prompt"])
def test_the_options_of_a_request_hold_for_every_attempt_in_every_way(facts: ModelFacts) -> None:
    wrong = calls((ANSWER_TOOL, {"city": 1})) if facts == ModelFacts() else answer('{"city": 1}')
    model = ScriptedModel([wrong, answer(GOOD)], facts=facts)
    model.parse("q", Weather, config={"seed": 7})
    assert [request.config.seed for request in model.requests] == [7, 7]


@pytest.mark.parametrize(("lang", "word"), [("en", "This answer does not fit"), ("zh", "这个回答不符合要求")])
@pytest.mark.parametrize("facts", [HELD, ModelFacts(), PLAIN], ids=["native", "tool", "prompt"])
def test_an_answer_is_sent_back_in_the_language_that_the_model_is_set_to(
    facts: ModelFacts, lang: str, word: str
) -> None:
    wrong = calls((ANSWER_TOOL, {"city": 1})) if facts == ModelFacts() else answer('{"city": 1}')
    config = {"model": "m", "generate_cfg": {"lang": lang}}
    model = ScriptedModel([wrong, answer(GOOD)], facts=facts, config=config)
    model.parse("q" if lang == "zh" else "你好", Weather)
    assert model.requests[1].messages[-1].get_text_content().startswith(word)


def test_no_fitting_answer_is_an_error_that_says_what_was_wrong_and_what_it_cost() -> None:
    model = ScriptedModel([answer("nope")] * 2, facts=HELD)
    with pytest.raises(InvalidAnswerError, match="in 2 attempts: not valid JSON") as caught:
        model.parse("q", Weather, attempts=2)
    assert caught.value.partial_text == "nope"
    assert caught.value.usage == Usage(prompt_tokens=2, completion_tokens=2)
    assert not caught.value.retryable


def test_a_model_that_no_request_can_force_gets_the_schema_in_the_prompt() -> None:
    model = ScriptedModel([answer(GOOD)], facts=ModelFacts(forced_calls=False))
    assert model.parse("q", Weather).value == FITS
    assert (model.requests[0].functions, model.requests[0].config.function_choice) == ((), "auto")


def test_an_answer_that_was_cut_off_says_so() -> None:
    model = ScriptedModel([[TextDelta('{"city": "Bo'), ModelFinished("length")]], facts=HELD)
    with pytest.raises(InvalidAnswerError, match="increase max_tokens"):
        model.parse("q", Weather, attempts=1)


@pytest.mark.parametrize("text", ["[1, 2]", '{"value": [1, 2]}'])
def test_what_is_no_object_travels_in_one(text: str) -> None:
    model = ScriptedModel([answer(text)], facts=HELD)
    assert model.parse("q", list[int]).value == [1, 2]
    wanted = model.requests[0].config.response_format
    assert wanted is not None
    assert wanted["json_schema"]["schema"]["required"] == ["value"]


def test_a_json_schema_gives_plain_values() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}
    model = ScriptedModel([answer('{"n": 1}'), answer('{"n": 4}')], facts=HELD)
    assert model.parse("q", schema).value == {"n": 4}
    assert "minimum" in model.requests[1].messages[-1].content


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"type": "oject"}, "not a valid JSON Schema"),
        (type("Odd", (), {}), "not a type"),
        ({"$ref": "http://h/x"}, "does not define"),
        ({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}}}, "refers to '#/.defs/b', which"),
    ],
)
def test_what_cannot_be_wanted_is_a_config_error_before_anybody_is_asked(wanted: Any, told: str) -> None:
    model = ScriptedModel([answer("{}")], facts=HELD)
    with pytest.raises(ConfigError, match=told):
        model.parse("q", wanted)
    assert model.requests == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/b", "$defs": {"b": {"type": "integer"}}},
        {"$ref": "#b", "$defs": {"b": {"$anchor": "b", "type": "integer"}}},
        {"type": "integer", "enum": [1, {"$ref": "#/nowhere"}], "properties": {"$ref": {"type": "string"}}},
        {"$ref": "u:b", "$defs": {"b": {"$id": "u:b", "$ref": "#/$defs/c", "$defs": {"c": {"type": "integer"}}}}},
    ],
)
def test_references_within_a_schema_are_followed(schema: Any) -> None:
    assert ScriptedModel([answer("1")], facts=HELD).parse("q", schema).value == 1


def test_a_pydantic_model_may_stand_for_its_response_format() -> None:
    wanted = GenerateConfig.parse({"response_format": Weather}).response_format
    assert wanted == response_format(Weather.model_json_schema())

    class Renamed(BaseModel):
        place: str = Field(alias="where")

    wanted = GenerateConfig.parse({"response_format": Renamed}).response_format
    assert list(wanted["json_schema"]["schema"]["properties"]) == ["where"], "answers are validated by aliases"


def test_a_schema_is_strict_only_where_that_does_not_change_what_fits() -> None:
    strict = strict_schema(Weather.model_json_schema())
    assert strict is not None
    assert strict["required"] == ["city", "day", "degrees"]
    assert "default" not in strict["properties"]["degrees"]
    named_default = {"type": "object", "properties": {"default": {"type": "string"}}}
    assert strict_schema(named_default) == {**named_default, "additionalProperties": False, "required": ["default"]}
    assert strict_schema({"type": "object", "additionalProperties": {"type": "string"}}) is None
    assert strict_schema({"type": "object"}) is None
    assert strict_schema({"type": "array", "items": {"type": "string"}}) is None
    text = {"type": "string"}
    for free in ({"additionalProperties": text}, {"additionalProperties": {}}, {"patternProperties": {"^x": text}}):
        assert strict_schema({"type": "object", "properties": {"a": text}, **free}) is None
    untyped = {"type": "object", "properties": {"a": {"properties": {"b": text}}}}
    closed = {"properties": {"b": text}, "additionalProperties": False, "required": ["b"]}
    assert (strict_schema(untyped) or {})["properties"] == {"a": closed}
    data = {"enum": [{"default": 1}], "const": {"properties": {}}, "examples": [{"default": 1}], "default": 3}
    kept = {key: value for key, value in data.items() if key != "default"}
    for place in ("properties", "$defs", "definitions"):
        made = strict_schema({"type": "object", "properties": {"b": text}, place: {"default": data, "title": text}})
        assert (made or {})[place] == {"default": kept, "title": text}


@pytest.mark.parametrize(
    ("title", "name"),
    [("City of Bonn!", "City_of_Bonn_"), ("x" * 70, "x" * 64), ("", "answer"), ("天气", "_")],
)
def test_a_response_format_has_a_name_that_servers_accept(title: str, name: str) -> None:
    wanted: Any = response_format({"type": "object", "title": title, "properties": {"a": {}}})
    assert wanted["json_schema"]["name"] == name


@pytest.mark.parametrize("name", ["Müller", "北京"])
def test_the_patterns_of_a_type_mean_what_pydantic_means(name: str) -> None:
    class Person(BaseModel):
        name: str = Field(pattern=r"^\w+\b$")

    model = ScriptedModel([answer(f'{{"name": "{name}"}}')], facts=HELD)
    assert model.parse("q", Person, attempts=1).value == Person(name=name)


def test_a_type_that_pydantic_cannot_use_is_refused_before_a_model_is_asked() -> None:
    model = ScriptedModel([answer("{}")])
    with pytest.raises(ConfigError, match="pydantic supports"):
        model.parse("q", Annotated[str, Field(pattern="(")])
    assert model.requests == []


# --- what is sent back ---


def test_an_answer_is_sent_back_short_and_without_its_reasoning() -> None:
    long = "x" * 5000
    for steps, sent in (
        (
            [
                [*answer(long, reasoning="Hm.")[:-1], ModelFinished("stop", data={"signature": "of the whole"})],
                answer(GOOD),
            ],
            [("assistant", "x" * 4000, None, None)],
        ),
        ([answer("", reasoning="Hm."), answer(GOOD)], []),
    ):
        model = ScriptedModel(steps, facts=HELD)
        assert model.parse([Message("user", "q")], Weather).value == FITS
        question, *answered, correction = model.requests[1].messages
        assert [(one.role, one.content, one.reasoning_content, one.origin) for one in answered] == sent
        assert (question.content, correction.role) == ("q", "user")
        assert len(correction.get_text_content()) < 4200


def test_an_answer_with_media_that_does_not_fit_is_sent_back_as_well() -> None:
    image = ContentItem(image="https://h/a.png")
    drawn = [TextDelta("Look."), MediaDelta(image), ModelFinished("stop")]
    model = ScriptedModel([drawn, answer(GOOD)], facts=replace(HELD, images=True))
    assert model.parse("q", Weather).value == FITS
    _, answered, correction = model.requests[1].messages
    assert (answered.role, answered.get_text_content(), correction.role) == ("assistant", "Look.", "user")


def test_a_correction_is_the_result_of_the_call_that_did_not_fit() -> None:
    model = ScriptedModel([calls((ANSWER_TOOL, {"city": 1}), text="Here: "), answer(GOOD)])
    assert model.parse("q", Weather).value == FITS
    _, said, call, correction = model.requests[1].messages
    assert (said.content, call.function_call.name) == ("Here: ", ANSWER_TOOL)  # type: ignore[union-attr]
    assert (correction.role, correction.name, correction.function_id) == ("function", ANSWER_TOOL, call.function_id)


def test_the_last_error_names_the_model_and_the_attempts() -> None:
    named = [TextDelta("nope"), ModelFinished("stop", model="m-1")]
    with pytest.raises(InvalidAnswerError, match=r"^m-1 gave no valid answer in 1 attempt: not valid JSON"):
        ScriptedModel([named], facts=HELD).parse("q", Weather, attempts=1)
    with pytest.raises(InvalidAnswerError, match=r"^the model gave no valid answer in 1 attempt") as caught:
        ScriptedModel([answer("nope")], facts=HELD).parse("q", Weather, attempts=1)
    assert "max_tokens" not in str(caught.value)


def test_a_question_for_data_is_checked_before_the_model_is_asked() -> None:
    model = ScriptedModel([], facts=HELD)
    with pytest.raises(ConfigError, match="unknown way 'force': use native, tool, prompt, or omit way"):
        model.parse("q", Weather, way="force")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="attempts must be at least 1"):
        model.parse("q", Weather, attempts=0)
    with pytest.raises(ConfigError):
        model.parse([], Weather)
    with pytest.raises(InvalidMessageError, match="the question is empty"):
        model.parse([Message("user", " ")], Weather)
    assert model.requests == []


@pytest.mark.parametrize(
    ("question", "config", "lang"),
    [("你好", None, "zh"), ("q", None, "en"), ("你好", {"lang": "en"}, "en"), ("q", {"lang": "zh"}, "zh")],
)
def test_the_tool_for_the_answer_is_described_in_the_language_of_the_conversation(
    question: str, config: Any, lang: str
) -> None:
    model = ScriptedModel([calls((ANSWER_TOOL, {"city": 1})), calls((ANSWER_TOOL, {"city": "B", "day": "2026-01-02"}))])
    model.parse(question, Weather, config=config)
    [tool] = model.requests[0].functions
    words = {
        "en": "Give your final answer, as data. Call it exactly once.",
        "zh": "以数据形式给出最终答案。只调用一次。",
    }
    assert tool["description"] == words[lang]
    assert model.requests[0].config.function_choice == ANSWER_TOOL
    correction = model.requests[1].messages[-1].get_text_content()
    assert correction.startswith({"en": "This answer does not fit: ", "zh": "这个回答不符合要求："}[lang])


def test_a_schema_that_no_answer_can_be_checked_against_is_no_fault_of_the_answer() -> None:
    model = ScriptedModel([answer("{}")] * 3, facts=HELD)
    with pytest.raises(ConfigError, match="refers to '#gone', which it does not define"):
        model.parse("q", {"type": "object", "allOf": [{"$ref": "#gone"}]})
    assert len(model.requests) == 1
