"""The `react` call format: `Thought:`, `Action:`, `Action Input:`, `Observation:` and `Final Answer:` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import chain
from typing import ClassVar

from jackfield.config import Lang
from jackfield.events import ReasoningDelta
from jackfield.jsontext import dumps
from jackfield.messages import FunctionCall, Message
from jackfield.processors import StreamTransform
from jackfield.request import ChatRequest
from jackfield.tags import Tags
from jackfield_call_formats.arguments import object_of, split_arguments
from jackfield_call_formats.calls import FoundCall
from jackfield_call_formats.content import Content, between, in_lines, with_texts
from jackfield_call_formats.prompt import demands, tool_texts
from jackfield_call_formats.reader import CUT_OFF, THINK, AnswerReader
from jackfield_call_formats.text_format import TextFormat, one_assistant

THOUGHT, ACTION, INPUT, OBSERVATION, ANSWER = "Thought", "Action", "Action Input", "Observation", "Final Answer"
_LABELS = (THOUGHT, ACTION, INPUT, OBSERVATION, ANSWER)
_COLONS = ":："
# Models often write labels in bold.
_WAYS = ("{label}{colon}", "**{label}{colon}**", "**{label}**{colon}")
_WRITTEN = tuple(way.format(label=label, colon=colon) for label in _LABELS for colon in _COLONS for way in _WAYS)
_LONGEST_LABEL = max(map(len, _WRITTEN))
_INDENT = 8
_LABEL = re.compile(rf"[ \t]{{0,{_INDENT}}}(?:{'|'.join(map(re.escape, _WRITTEN))})")
_LABEL_IN_RESULT = re.compile(rf"^(?=[ \t]*\**(?:{'|'.join(_LABELS)})\**[:：])", re.MULTILINE)
_NAME = re.compile(r"[ \t]*(?:\n[ \t]*)?([^\n]*[^\s])[ \t]*(?:\n\s*|\Z)")
_LONGEST_NAME = 256

_BLOCK: Mapping[Lang, str] = {
    "en": """# Tools

You can use these tools:

{functions}

Work in steps, and begin each line of a step with its label:

Thought: what you know, and what to do next
Action: the name of a tool, one of [{names}]
Action Input: the arguments of the tool
Observation: what the tool gave back; you are told, do not write it
(repeat these as often as you need)
Thought: I can answer now
Final Answer: your answer to the user""",
    "zh": """# 工具

你可以使用这些工具：

{functions}

按步骤工作，每一步的每一行都以标签开头：

Thought: 已经知道什么，下一步做什么
Action: 工具名，必须是其中之一：[{names}]
Action Input: 工具的参数
Observation: 工具返回的结果，由系统给出，不要自己写
（可以按需要重复以上步骤）
Thought: 现在可以回答了
Final Answer: 给用户的最终回答""",
}


class ReActFormat(TextFormat):
    """Calls in plain words, for models not trained on any call format. Thoughts become the answer's reasoning."""

    name: ClassVar[str] = "react"

    def prompt(self, request: ChatRequest) -> str:
        """Return the text to append to the system message."""
        lang = request.lang
        names = ", ".join(str(function["name"]) for function in request.functions)
        block = _BLOCK[lang].format(functions="\n\n".join(tool_texts(request.functions, lang)), names=names)
        return "\n\n".join([block, *demands(request.config, lang)])

    def stop_words(self, request: ChatRequest) -> tuple[str, ...]:  # noqa: ARG002 - they are always the same
        """Return the label of results, to stop the model from inventing them."""
        return (f"\n{OBSERVATION}:",)

    def write_call(self, call: FunctionCall, request: ChatRequest) -> str:  # noqa: ARG002 - JSON needs no schema
        """Write the name and the arguments, each after its label."""
        return f"{ACTION}: {call.name}\n{INPUT}: {_written_arguments(call)}"

    def write_result(self, result: Message) -> Content:
        """Write a result after its label, quoting any of its lines that start with a label."""
        return between(
            f"{OBSERVATION}: ", with_texts(result.content, lambda text: _LABEL_IN_RESULT.sub("> ", text)), ""
        )

    def write_turn(self, turn: Sequence[Message], request: ChatRequest) -> Message:
        """Write reasoning that precedes calls as thoughts. The reasoning of a plain answer stays reasoning."""
        if not any(message.function_call for message in turn):
            return super().write_turn(turn, request)
        parts = chain.from_iterable(self._thought_and_said(message, request) for message in turn)
        return one_assistant(turn, in_lines(list(parts)), None)

    def _thought_and_said(self, message: Message, request: ChatRequest) -> Iterator[Content]:
        if message.reasoning_content:
            yield between(f"{THOUGHT}: ", message.reasoning_content, "")
        yield from self.said(message, request)

    def reader(self, request: ChatRequest) -> StreamTransform:
        """Return a reader that separates thoughts, calls and the answer."""
        return _Reader(request)


def _written_arguments(call: FunctionCall) -> str:
    arguments, raw = object_of(call), call.arguments
    if arguments is not None:
        return dumps(arguments)
    if raw.startswith('"') or any(_LABEL.match(line) for line in raw.splitlines()):
        return dumps(raw)
    return f"\n{raw}" if raw.startswith("```") else raw


class _Section(Enum):
    """The section being read. `<think>` blocks and action names are handled separately."""

    TEXT = auto()
    THOUGHT = auto()
    INPUT = auto()
    ANSWER = auto()


class _Reader(AnswerReader):
    """Reader that looks for labels at the start of each line and forwards all other text."""

    tags: ClassVar[Tags] = Tags("\n", THINK)

    def __init__(self, request: ChatRequest) -> None:
        super().__init__(request)
        self._at_line_start = True
        self._section = _Section.TEXT
        self._has_begun = True  # white space after a label is not part of the section
        self._thoughts = _Thoughts()
        self._label = ""
        self._input: list[str] = []
        self._index = 0

    def _is_plain(self, text: str) -> bool:
        in_text = self._section is _Section.TEXT and self._has_begun and not self._at_line_start
        return in_text and super()._is_plain(text)

    # --- lines ---

    def _in_text(self, text: str, start: int) -> int:
        if self._section is _Section.ANSWER:
            self._take(text[start:])
            return len(text)
        if not self._at_line_start:
            return self._in_line(text, start)
        label = _LABEL.match(text, start)
        if label is None and _may_be_label(text, start):
            return self._hold(text, start)
        self._at_line_start = False
        if label is None:
            return start
        self._read_label(label[0])
        return label.end()

    def _in_line(self, text: str, start: int) -> int:
        match = self.tags.search(text, start)
        if match is None:
            end = self.tags.half(text, start)
            self._take(text[start:end])
            self._held = text[end:]
            return len(text)
        if match[0] == THINK and self._section is not _Section.INPUT:
            self._take(text[start : match.start()])
            self._end_section()
            self._begin_thought()
        else:
            self._take(text[start : match.end()])
            self._at_line_start = match[0] == "\n"
        return match.end()

    def _text_begins(self) -> None:
        super()._text_begins()
        self._at_line_start = True

    def _open(self, tag: str) -> None:
        raise AssertionError(f"no call starts with {tag!r}")  # labels are found at line starts

    def _read_label(self, label: str) -> None:
        is_first = self._at_start and not self._calls and not self._thoughts
        match _kind(label):
            case "Action":
                if self._section is _Section.INPUT:
                    self._end_section()
                self._label, self._read_on = label, self._in_action
            case "Action Input" if is_first and self._chosen:
                self._begin_input(self._chosen)
            case "Observation" if not is_first:
                self._end_section()
                self._stop()
            case "Thought":
                self._begin_section(_Section.THOUGHT)
            case "Final Answer":
                self._begin_section(_Section.ANSWER)
            case _:
                self._take(label)  # the tag has no meaning here

    # --- sections ---

    def _begin_section(self, section: _Section) -> None:
        self._end_section()
        self._section, self._has_begun = section, False

    def _end_section(self) -> None:
        if self._section is _Section.INPUT:
            self._end_input()
        self._section, self._has_begun = _Section.TEXT, True
        self._thoughts.end()

    def _take(self, text: str) -> None:
        if not self._has_begun:
            text = text.lstrip()
            self._has_begun = bool(text)
        match self._section:
            case _Section.INPUT:
                self._input.append(text)
            case _Section.THOUGHT:
                self._out += self._thoughts.add(text)
            case _:
                self._say(text)

    # --- calls ---

    def _in_action(self, text: str, start: int) -> int:
        """Decide if a call has started, based on the characters that may form its name."""
        section = text[start : start + _LONGEST_NAME]
        line = _NAME.match(section)
        if line is None:
            return self._hold(text, start) if len(section) < _LONGEST_NAME else start + self._end_action(section)
        behind = start + line.end()
        if _may_be_label(text, behind):
            return self._hold(text, start)
        label = _LABEL.match(text, behind)
        if label and _kind(label[0]) == INPUT:
            self._begin_input(self._name_in(line))
            return label.end()
        return start + self._end_action(section)

    def _hold(self, text: str, start: int) -> int:
        """Buffer the text from `start` until more arrives."""
        self._held = text[start:]
        return len(text)

    def _end_action(self, section: str) -> int:
        """Emit a call without arguments if the name is offered, else text. Return the number of characters read."""
        self._read_on = self._in_text
        line = _NAME.match(section)
        if line and self._is_whole_name(self._name_in(line), is_last=line.end(1) == len(section)):
            self._end_section()
            self._call(FoundCall(self._name_in(line), "{}"))
            self._at_line_start = True
            return line.end()
        self._take(self._label)
        return 0

    def _name_in(self, line: re.Match[str]) -> str:
        name = line[1]
        return name if name in self._offered else name.strip("`*\"' ") or name

    def _begin_input(self, name: str) -> None:
        self._begin_section(_Section.INPUT)
        self._input, self._read_on = [], self._in_text
        self._index = self._start_call(name)

    def _end_input(self, *, cut_off: bool = False) -> None:
        written = "".join(self._input)
        split = split_arguments(written)
        if cut_off and not split.is_whole:
            self._end_call(self._index, CUT_OFF + written.strip())
        else:
            self._end_call(self._index, split.arguments)
            self._say(split.rest)

    # --- the end ---

    def _end(self, *, cut_off: bool) -> None:
        held, self._held = self._held, ""
        self._end_reading(held, cut_off=cut_off)
        if self._section is _Section.INPUT:
            self._end_input(cut_off=cut_off)
        if self._at_start and not self._calls and self._thoughts:
            # If a model only produced thoughts, they become the answer, because an empty one is useless.
            self._say(self._thoughts.text)

    def _end_reading(self, held: str, *, cut_off: bool) -> None:
        if self._read_on == self._in_thought:
            self._say(held)
        elif self._read_on != self._in_action:
            self._take(held)
        elif cut_off:
            self._take(self._label + held)
        else:
            self._take(held[self._end_action(held) :])


class _Thoughts:
    """Forwards thoughts, starting each section on a new line and dropping its trailing white space."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._between = ""

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str) -> list[ReasoningDelta]:
        stripped = text.rstrip()
        if not stripped:
            self._between += text
            return []
        thought = self._between + stripped
        self._between = text[len(stripped) :]
        self._parts.append(thought)
        return [ReasoningDelta(thought)]

    def end(self) -> None:
        self._between = "\n" if self._parts else ""


def _kind(label: str) -> str:
    return label.strip(" \t*:：")


def _may_be_label(text: str, start: int) -> bool:
    """Return True if a label may start here but the text ends too early to tell."""
    if len(text) - start > _INDENT + _LONGEST_LABEL:
        return False
    rest = text[start:].lstrip(" \t")
    is_indented_too_far = len(text) - start - len(rest) > _INDENT
    return not is_indented_too_far and any(len(rest) < len(label) and label.startswith(rest) for label in _WRITTEN)
