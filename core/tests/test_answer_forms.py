"""Forms of answers: data found among words, reasons of misfits, and schemas that are refused."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from jackfield.answers import Form, MisfitError, asking_text, form_of, sent_back_text
from jackfield.errors import ConfigError


class City(BaseModel):
    name: str
    founded: date | None = None


OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', 1),
        (' <think>{"a": 2}</think>\n{"a": 1} ', 1),
        ('Here:\n```json\n{"a": 1}\n```\nDone.', 1),
        ('```\n{"a": 2}\n```\nor\n```\n{"a": 1}\n```', 1),
        ('It is {"a": 1}, I think.', 1),
        ('It is {"a": 1}', 1),
        ("{'a': 1,}", 1),
        ('{"a": 1, "b": "x\ny"}', 1),
        ('Either {"a": 1} or {"a": 2}.', 1),
        ('So: {"a": 1}\nIt isn\'t {"a": 2}', 1),
        ('The value of {a} is {"a": 1}.\n```json\n{"a": 1}\n```', 1),
    ],
)
def test_the_data_of_an_answer_is_found_among_words(text: str, value: int) -> None:
    assert Form(OBJECT).read(text)["a"] == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no answer"),
        ("<think>Hm.</think> \n", "there is no answer"),
        ("I do not know.", "not valid JSON"),
        ('{"a": "x"}', "a: 'x' is not of type 'integer'"),
        ("{}", "'a' is a required property"),
        ("[" * 100_000, "not valid JSON"),
    ],
    ids=["nothing", "thoughts alone", "words", "a wrong type", "a missing one", "deep"],
)
def test_an_answer_that_does_not_fit_is_told_why(text: str, said: str) -> None:
    with pytest.raises(MisfitError) as caught:
        Form(OBJECT).read(text)
    assert str(caught.value) == said


def test_misfits_of_a_type_are_told_with_their_places_five_at_most() -> None:
    with pytest.raises(MisfitError) as caught:
        Form(City).read('{"founded": "x"}')
    assert str(caught.value).startswith("name: Field required; founded: Input should be a valid date")
    with pytest.raises(MisfitError, match=r"^answer: Input should be a valid integer"):
        Form(int).read('{"value": "x"}')
    with pytest.raises(MisfitError) as caught:
        Form(list[int]).read('["a", "b", "c", "d", "e", "f"]')
    assert str(caught.value).count("valid integer") == 5
    with pytest.raises(MisfitError, match=r"^1\.name: Input should be a valid string$"):
        Form(list[City]).read('[{"name": "Bonn"}, {"name": 5}]')
    assert Form(City).read('{"name": "Bonn", "founded": "2026-01-02"}') == City(name="Bonn", founded=date(2026, 1, 2))


@pytest.mark.parametrize(
    ("wanted", "text", "value", "sent"),
    [
        (
            int,
            '{"value": 5}',
            5,
            {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]},
        ),
        (int, "5", 5, None),
        (dict[str, int], '{"value": 5}', {"value": 5}, None),
        ({"type": "array"}, '{"value": [1]}', [1], None),
        (OBJECT, '{"a": 1, "value": 2}', {"a": 1, "value": 2}, OBJECT),
        (dict[str, int] | None, '{"value": {"value": 5}}', {"value": 5}, None),
        (dict[str, int] | None, '{"value": 5, "other": 6}', {"value": 5, "other": 6}, None),
    ],
)
def test_what_is_no_object_is_wrapped_in_one(wanted: Any, text: str, value: Any, sent: Any) -> None:
    form: Form[Any] = form_of(wanted)
    assert form.read(text) == value
    if sent is not None:
        assert form.sent == sent
    assert form_of(form) is form
    listed: Form[Any] = Form(list[City])
    assert listed.sent["$defs"].keys() == {"City"}
    assert "$defs" not in listed.sent["properties"]["value"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"type": "text"}, "the output schema is not a valid JSON Schema: 'text' is not valid under any"),
        ({"type": "object", "$ref": "#/$defs/a"}, "the schema refers to '#/$defs/a', which it does not define"),
        ({"allOf": [{"$ref": "#/allOf/1"}]}, "the schema refers to '#/allOf/1', which it does not define"),
        ({"$ref": "https://h/a"}, "the schema refers to 'https://h/a', which it does not define"),
        (len, "output must be a type or a JSON Schema, got the function len"),
        (object(), "is not a type that can be read from JSON"),
        ("City", "'City' is not a type that can be read from JSON: "),
    ],
    ids=["invalid", "a name", "a number", "elsewhere", "a function", "an object", "the name of a type"],
)
def test_what_is_no_form_is_refused(wanted: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        form_of(wanted)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {}}}, {"$ref": "#/$defs/a%20b", "$defs": {"a b": {}}},
        {"$ref": "#/$defs/a~0b", "$defs": {"a~b": {}}}, {"$ref": "#/$defs/a~01b", "$defs": {"a~1b": {}}},
        {"default": {"$ref": "#/gone"}, "enum": [{"$ref": "#/gone"}]}, {"examples": [{"$ref": "#/gone"}]},
        {"allOf": [{}, {"$ref": "#/allOf/0"}]},
        {"const": {"$ref": "#/gone"}}, {"$ref": "#name", "$defs": {"a": {"$anchor": "name"}}},
        {"$ref": "https://h/a", "$defs": {"a": {"$id": "https://h/a"}}}, {"properties": {"$ref": {"type": "string"}}},
    ],
    ids=str,
)  # fmt: skip
def test_a_reference_inside_of_a_schema_is_found(schema: dict[str, Any]) -> None:
    assert Form(schema).schema == schema


def test_the_prompts_have_the_schema_and_the_reasons() -> None:
    assert asking_text({"a": "é"}, "en").endswith('It must fit this JSON Schema:\n{"a": "é"}')
    assert asking_text({}, "zh").startswith("只用一个 JSON 对象回答")
    assert sent_back_text("x" * 4001, "en") == (
        f"This answer does not fit: {'x' * 4000}. Give the whole answer again, corrected."
    )
