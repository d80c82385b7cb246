"""The whole prompt of each format, word by word: a model reacts to every one. What is meant is in `prompts/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackfield.messages import Message

PROMPTS = Path(__file__).with_name("prompts")
FUNCTIONS = [
    {
        "name": "weather",
        "description": "天气 of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Its name."}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
    {
        "name": "code_interpreter",
        "description": "Runs code.",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    },
]


@pytest.mark.parametrize("one_at_a_time", [False, True])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("fmt", ["nous", "nous with code", "qwen", "qwen3_coder", "react"])
def test_the_prompt_is_what_is_meant(request_of: Any, formats: Any, fmt: str, lang: str, one_at_a_time: bool) -> None:
    config = {"parallel_function_calls": False, "function_choice": "weather"} if one_at_a_time else {}
    request = request_of(Message("user", "Go."), functions=FUNCTIONS, lang=lang, **config)
    file = PROMPTS / f"{fmt.replace(' ', '-')}.{lang}{'.one' if one_at_a_time else ''}.txt"
    assert formats[fmt].prompt(request) + "\n" == file.read_text(encoding="utf-8")
