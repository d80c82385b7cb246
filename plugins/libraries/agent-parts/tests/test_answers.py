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
    with pytest.raises(ValueError, match="without a JSON list"):
        list_in(text)
    with pytest.raises(ValueError, match="without a JSON object"):
        object_in(text)
