"""JSON in answers."""

from __future__ import annotations

import pytest

from jackfield_agent_parts import list_in, object_in


@pytest.mark.parametrize("text", ['{"a": [1]}', '```json\n{"a": [1]}\n```', 'Here: {"a": [1],} Good?', '{"a": [1]'])
def test_an_object_is_found(text: str) -> None:
    assert object_in(text) == {"a": [1]}


@pytest.mark.parametrize("text", ['["a"]', '```\n["a"]\n```', 'Here: ["a",]', '["a"'])
def test_a_list_is_found(text: str) -> None:
    assert list_in(text) == ["a"]


@pytest.mark.parametrize("text", ["", "no", "5", "null"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="contains no JSON list"):
        list_in(text)
    with pytest.raises(ValueError, match="contains no JSON object"):
        object_in(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": {"b": 1}} and {"c": 2}', None),
        ('} {"a": 1}', {"a": 1}),
        ('{"a": "}"}', {"a": "}"}),
        ("Nothing } here {", {}),
        ('[1] {"a": 2}', {"a": 2}),
        ("{nonsense}", None),
        ('{"a": "x } y", "b": [1', {"a": "x } y", "b": [1]}),
        ('So: {"a": {"b": 1}, "c": 2', {"a": {"b": 1}, "c": 2}),
        ('{"a": {"b": 1} thanks, "it" is so', {"a": {"b": 1}}),
        ('{"a": "x }', None),
    ],
)
def test_an_object_goes_from_the_first_brace_to_its_end(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(ValueError, match="contains no JSON object"):
            object_in(text)
    else:
        assert object_in(text) == value


def test_a_list_that_is_cut_off_may_have_a_bracket_in_a_text() -> None:
    assert list_in('Here: ["x ] y", [1], 2') == ["x ] y", [1], 2]


def test_a_list_in_an_object_is_found_and_an_object_in_a_list_too() -> None:
    assert list_in('{"a": [1, [2]]}') == [1, [2]]
    assert object_in('[{"a": 1}]') == {"a": 1}
