"""Prompt sentences shared by several formats. The wording is ours; each format defines its own tags and grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jackfield.config import GenerateConfig, Lang
from jackfield.request import FunctionSchema
from jackfield_call_formats.schemas import schema_json

_REQUIRED: Mapping[Lang, str] = {
    "en": "This time your answer must contain at least one function call.",
    "zh": "这一次，回答中至少要包含一个函数调用。",
}
_CHOSEN: Mapping[Lang, str] = {
    "en": 'This time your answer must call the function "{name}".',
    "zh": "这一次，回答中必须调用函数“{name}”。",
}
_ONE: Mapping[Lang, str] = {
    "en": "Write at most one function call in an answer, and wait for its result.",
    "zh": "一次回答最多写一个函数调用，然后等待结果。",
}


def demands(config: GenerateConfig, lang: Lang) -> list[str]:
    """Return the requirements for the next answer."""
    lines = []
    if config.function_choice == "required":
        lines.append(_REQUIRED[lang])
    elif config.function_choice not in ("auto", "none"):
        lines.append(_CHOSEN[lang].format(name=config.function_choice))
    if config.parallel_function_calls is False:
        lines.append(_ONE[lang])
    return lines


_ARGS_FORMAT: Mapping[Lang, str] = {
    "en": "Write the arguments as a JSON object.",
    "zh": "参数写成一个 JSON 对象。",
}
_ARGS_FORMAT_OF_CODE: Mapping[Lang, str] = {
    "en": "Write the code between lines of three backticks.",
    "zh": "把代码写在两行三个反引号之间。",
}
_PARAMETERS: Mapping[Lang, str] = {"en": "Parameters", "zh": "参数"}
_CODE_TOOL = "code_interpreter"


def tool_texts(functions: Sequence[FunctionSchema], lang: Lang) -> list[str]:
    """Describe each function with a heading and a paragraph.

    A schema's `name_for_human` and `args_format` override the name in the heading and the default sentence about
    arguments.
    """
    return [_tool_text(function, lang) for function in functions]


def _tool_text(function: FunctionSchema, lang: Lang) -> str:
    name = function["name"]
    sentence = (_ARGS_FORMAT_OF_CODE if name == _CODE_TOOL else _ARGS_FORMAT)[lang]
    return (
        f"### {function.get('name_for_human', name)}\n\n"
        f"{name}: {function.get('description', '')} "
        f"{_PARAMETERS[lang]}: {schema_json(function.get('parameters') or {})} {function.get('args_format', sentence)}"
    )
