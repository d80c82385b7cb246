"""The `qwen` call format of older Qwen models: `✿FUNCTION✿`, `✿ARGS✿`, `✿RESULT✿` and `✿RETURN✿`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from jackfield.config import Lang
from jackfield.jsontext import dumps
from jackfield.messages import FUNCTION as FUNCTION_ROLE
from jackfield.messages import FunctionCall, Message
from jackfield.processors import StreamTransform
from jackfield.request import ChatRequest
from jackfield.tags import Tags
from jackfield_call_formats.arguments import object_of, split_arguments
from jackfield_call_formats.calls import FoundCall
from jackfield_call_formats.content import Content, between, in_lines, with_texts
from jackfield_call_formats.prompt import demands, tool_texts
from jackfield_call_formats.reader import CUT_OFF, THINK, AnswerReader
from jackfield_call_formats.text_format import TextFormat

FUNCTION, ARGS, RESULT, RETURN = "✿FUNCTION✿", "✿ARGS✿", "✿RESULT✿", "✿RETURN✿"
_TOKENS = Tags(FUNCTION, ARGS, RESULT, RETURN)
_TOKEN = re.compile("✿(FUNCTION|ARGS|RESULT|RETURN)✿")
_NAME = re.compile(r"\s*[:：]?\s*([^\s:：](?:[^\n]*[^\s])?)\s*")
_NAME_LINE = re.compile(r"\s*[:：]?[ \t]*([^\s:：](?:[^\n]*[^\s])?)[ \t]*(?:\n|\Z)")
_LONGEST_NAME = 256

_BLOCK: Mapping[Lang, str] = {
    "en": """# Tools

## Functions you can call:

{functions}

## How to call them, none, one or several in one answer:

{grammar}""",
    "zh": """# 工具

## 你可以调用的函数：

{functions}

## 调用的格式，一次回答可以不调用、调用一个或调用多个：

{grammar}""",
}
_ONE: Mapping[Lang, str] = {
    "en": """✿FUNCTION✿: the name of one of these functions: [{names}]
✿ARGS✿: its arguments
✿RESULT✿: what it gave back; you are told, do not write it
✿RETURN✿: your answer, based on the results""",
    "zh": """✿FUNCTION✿: 函数名，必须是其中之一：[{names}]
✿ARGS✿: 函数的参数
✿RESULT✿: 函数返回的结果，由系统给出，不要自己写
✿RETURN✿: 根据结果写出的回答""",
}
_SEVERAL: Mapping[Lang, str] = {
    "en": """✿FUNCTION✿: the name of function 1, one of: [{names}]
✿ARGS✿: the arguments of function 1
✿FUNCTION✿: the name of function 2
✿ARGS✿: the arguments of function 2
…
✿RESULT✿: what function 1 gave back; you are told, do not write it
✿RESULT✿: what function 2 gave back
…
✿RETURN✿: your answer, based on the results""",
    "zh": """✿FUNCTION✿: 函数1的名字，必须是其中之一：[{names}]
✿ARGS✿: 函数1的参数
✿FUNCTION✿: 函数2的名字
✿ARGS✿: 函数2的参数
…
✿RESULT✿: 函数1返回的结果，由系统给出，不要自己写
✿RESULT✿: 函数2返回的结果
…
✿RETURN✿: 根据结果写出的回答""",
}


class QwenFormat(TextFormat):
    """Calls between ✿ markers. One user message returns all results of a turn."""

    name: ClassVar[str] = "qwen"

    def prompt(self, request: ChatRequest) -> str:
        """Return the text to append to the system message."""
        lang = request.lang
        names = ", ".join(str(function["name"]) for function in request.functions)
        grammar = (_ONE if request.config.parallel_function_calls is False else _SEVERAL)[lang]
        functions = "\n\n".join(tool_texts(request.functions, lang))
        block = _BLOCK[lang].format(functions=functions, grammar=grammar.format(names=names))
        return "\n\n".join([block, *demands(request.config, lang)])

    def stop_words(self, request: ChatRequest) -> tuple[str, ...]:
        """Return the markers that follow a call."""
        # After results, a model may start its answer with ✿RETURN✿, and a server that stops there would return nothing.
        answers_results = bool(request.messages) and request.messages[-1].role == FUNCTION_ROLE
        return (RESULT,) if answers_results else (RESULT, RETURN)

    def write_call(self, call: FunctionCall, request: ChatRequest) -> str:  # noqa: ARG002 - JSON needs no schema
        """Write the name and the arguments, each after its marker."""
        return f"{FUNCTION}: {call.name}\n{ARGS}: {_written_arguments(call)}"

    def write_result(self, result: Message) -> Content:
        """Write a result after its marker, escaping any other marker in it."""
        return between(f"{RESULT}: ", with_texts(result.content, lambda text: _TOKEN.sub(r"✽\1✽", text)), "")

    def write_results(self, results: Sequence[Message]) -> Content:
        """Write the results, followed by the marker at which the answer continues."""
        return in_lines([*map(self.write_result, results), f"{RETURN}:"])

    def reader(self, request: ChatRequest) -> StreamTransform:
        """Return a reader for one answer."""
        return _Reader(request)


def _written_arguments(call: FunctionCall) -> str:
    arguments, raw = object_of(call), call.arguments
    if arguments is not None:
        return _without_tokens(dumps(arguments))
    if _TOKEN.search(raw) or raw.startswith('"'):
        return _without_tokens(dumps(raw))
    return f"\n{raw}" if raw.startswith("```") else raw


def _without_tokens(json_text: str) -> str:
    return json_text.replace("✿", "\\u273f") if _TOKEN.search(json_text) else json_text


class _Reader(AnswerReader):
    """Reads calls, each running from `✿FUNCTION✿` to the next marker that belongs to something else."""

    tags: ClassVar[Tags] = Tags(FUNCTION, ARGS, RESULT, RETURN, THINK)

    def __init__(self, request: ChatRequest) -> None:
        super().__init__(request)
        self._name = ""
        self._parts: list[str] = []
        self._index = 0

    def _open(self, tag: str) -> None:
        is_first = self._at_start and not self._calls
        if tag == FUNCTION:
            self._parts, self._read_on = [], self._in_name
        elif tag == ARGS and is_first and self._chosen:
            self._begin_arguments(self._chosen)
        elif tag == ARGS:
            self._say(tag)
        elif is_first:
            self._blank.clear()
            self._read_on = self._after_label  # a label before the answer, which follows
        else:
            self._stop()

    def _after_label(self, text: str, start: int) -> int:
        self._read_on = self._in_white_space
        return start + (text[start] in ":：")

    def _in_white_space(self, text: str, start: int) -> int:
        rest = text[start:].lstrip()
        if rest:
            self._read_on = self._in_text
        return len(text) - len(rest)

    def _in_name(self, text: str, start: int) -> int:
        """Decide if a call has started, based on the characters that may form its name."""
        section = text[start : start + _LONGEST_NAME]
        match = _TOKENS.search(section, 0)
        if match is None and len(section) < _LONGEST_NAME:
            self._held = text[start:]
            return len(text)
        before = section[: match.start()] if match else section
        name = _NAME.fullmatch(before)
        if match and match[0] == ARGS and name:
            self._begin_arguments(name[1])
            return start + match.end()
        return start + self._end_name(before)

    def _end_name(self, section: str) -> int:
        """Emit a call without arguments if the name is offered, else text. Return the number of characters read."""
        self._read_on = self._in_text
        name = _NAME_LINE.match(section)
        if name and self._is_whole_name(name[1], is_last=name.end(1) == len(section)):
            self._call(FoundCall(name[1], "{}"))
            return name.end()
        self._say(FUNCTION)
        return 0

    def _begin_arguments(self, name: str) -> None:
        self._name, self._parts = name, []
        self._index = self._start_call(name)
        self._read_on = self._in_arguments

    def _in_arguments(self, text: str, start: int) -> int:
        match = _TOKENS.search(text, start)
        if match is None:
            end = _TOKENS.half(text, start)
            self._parts.append(text[start:end])
            self._held = text[end:]
            return len(text)
        self._parts.append(text[start : match.start()])
        self._end_arguments()
        if match[0] == ARGS:
            self._begin_arguments(self._name)  # the same function again
        else:
            self._read_on = self._in_text
            self._open(match[0])
        return match.end()

    def _end_arguments(self, *, cut_off: bool = False) -> None:
        written = "".join(self._parts).lstrip().removeprefix(":").removeprefix("：")
        split = split_arguments(written)
        if cut_off and not split.is_whole:
            self._end_call(self._index, CUT_OFF + written.strip())
            return
        self._end_call(self._index, split.arguments)
        self._say(split.rest)

    def _end(self, *, cut_off: bool) -> None:
        held, self._held = self._held, ""
        if self._read_on == self._in_arguments:
            self._end_arguments(cut_off=cut_off)  # an incomplete marker at the end is not part of the arguments
        elif self._read_on == self._in_name:
            read = 0 if cut_off else self._end_name(held)
            self._say((FUNCTION if cut_off else "") + held[read:])
        else:
            self._say(held)
