"""Read calls between `<tool_call>` tags, written as JSON, JSON with a code block, or XML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from jackfield.request import ChatRequest
from jackfield.tags import Tags
from jackfield_call_formats.calls import FoundCall
from jackfield_call_formats.json_body import calls_in_json, early_json_name, is_strict_json, raw_arguments
from jackfield_call_formats.reader import CUT_OFF, THINK, AnswerReader
from jackfield_call_formats.xml_body import calls_in_xml, early_xml_name, is_strict_xml

CALL, END_CALL = "<tool_call>", "</tool_call>"
FUNCTION, END_FUNCTION = "<function=", "</function>"

NAME_WITHIN = 256
"""A name can only be emitted early if it occurs within this many characters."""

_IN_JSON = re.compile('"|</?tool_call>|<code>')
_IN_STRING = re.compile(r'\\[\s\S]|"|</?tool_call>')
_IN_VALUES = re.compile("</?tool_call>|<parameter=|</parameter>|</function>|</code>")
_IN_CALL = Tags(CALL, END_CALL, "<code>", "</code>", "<parameter=", "</parameter>", END_FUNCTION)
_NOT_BLANK = re.compile(r"\S")
_TAG_OF_CALL = re.compile("(</?tool_call>)")


class TaggedReader(AnswerReader):
    """Reads one answer with calls in `<tool_call>` tags."""

    tags: ClassVar[Tags] = Tags(CALL, THINK)

    def __init__(self, request: ChatRequest) -> None:
        super().__init__(request)
        self._body = _Body(CALL)

    def _open(self, tag: str) -> None:
        self._read_on, self._body = self._in_call, _Body(tag)

    def _in_call(self, text: str, start: int) -> int:
        body = self._body
        tag, end, after = body.scan(text, start)
        body.add(text[start:end])
        if body.index is None and (name := body.new_name()):
            body.index = self._start_call(name)
        if tag == CALL:
            self._close("")
            self._open(CALL)
        elif tag:
            self._close(tag)
        else:
            self._held = text[after:]
            after = len(text)
        return after

    def _close(self, ending: str, *, cut_off: bool = False) -> None:
        """End a call, which may turn out to be several calls or none. `ending` is its end tag, or an incomplete one."""
        self._read_on = self._in_text
        for segment in _segments(self._body, ending):
            calls = self._calls_in(segment.text, cut_off=cut_off) if segment.is_call else []
            if calls:
                self._emit(calls)
            else:
                self._say(segment.whole)

    def _calls_in(self, text: str, *, cut_off: bool) -> list[FoundCall]:
        text = text.strip()
        calls = self._found_in(text, cut_off=cut_off)
        if calls or self._body.index is None:
            return calls
        # The name has been emitted, so this is a call, and the tool will report the invalid arguments to the model.
        return [FoundCall(self._body.name, (CUT_OFF if cut_off else "") + raw_arguments(text))]

    def _found_in(self, text: str, *, cut_off: bool) -> list[FoundCall]:
        if cut_off and not _is_strict(text):
            return []
        if text.startswith("<"):
            return calls_in_xml(text, self._functions, chosen=self._chosen)
        return calls_in_json(text, mend=not cut_off, chosen=self._chosen)

    def _emit(self, calls: list[FoundCall]) -> None:
        for call in calls:
            if self._body.index is None:
                self._call(call)
            else:
                self._end_call(self._body.index, call.arguments)
                self._body.index = None

    def _end(self, *, cut_off: bool) -> None:
        held, self._held = self._held, ""
        if self._read_on == self._in_call:
            half_end = held if END_CALL.startswith(held) else ""
            self._body.add(held.removesuffix(half_end))
            self._close(half_end, cut_off=cut_off)
        else:
            self._say(held)


def _is_strict(text: str) -> bool:
    return is_strict_xml(text) if text.startswith("<") else is_strict_json(text)


class _Body:
    """The part of a call read so far.

    Attributes:
        opening: The tag that opened the call.
        index: The index of the call, once its name has been emitted.
        is_doubtful: True if a tag occurs in what looks like a string or value. If the body turns out to be malformed,
            that tag counts.
    """

    def __init__(self, opening: str) -> None:
        self.opening = opening
        self.index: int | None = None
        self.name = ""
        self.is_doubtful = False
        self._parts: list[str] = []
        self._head = ""
        self._is_name_settled = False
        self._is_json: bool | None = None
        self._in_string = False
        self._has_values = False  # the rest consists of unescaped values: parameters or code
        self._after_end = False  # only white space since the end of a value or the function
        if opening == FUNCTION:
            self._is_json = False
            self.add(FUNCTION)

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str) -> None:
        self._parts.append(text)
        if len(self._head) < NAME_WITHIN:
            self._head = (self._head + text)[:NAME_WITHIN]

    def new_name(self) -> str:
        """Return the call's name the first time it is certain, otherwise ''."""
        if self._is_name_settled or self._is_json is None:
            return ""
        self.name = early_json_name(self._head) if self._is_json else early_xml_name(self._head)
        self._is_name_settled = bool(self.name) or len(self._head) == NAME_WITHIN
        return self.name

    def scan(self, text: str, start: int) -> tuple[str, int, int]:
        """Look for the end of the call.

        Returns:
            The tag that ends the call ('' if none was found), the end of the body, and the position to continue from.
            Text after that position must wait for more.
        """
        if self._is_json is None and (first := _NOT_BLANK.search(text, start)):
            self._is_json = first[0] != "<"  # XML has no strings that could hide a tag
        position = start
        while match := self._next_mark(text, position):
            self._pass(text[position : match.start()])
            position = match.end()
            if self._is_end(match[0]):
                # The end tag of a bare function belongs to the body.
                return match[0], match.end() if match[0] == END_FUNCTION else match.start(), position
        end = self._end_of_settled(text, position)
        self._pass(text[position:end])
        return "", end, end

    def _end_of_settled(self, text: str, position: int) -> int:
        """Return the start of a trailing incomplete tag or escape. All text before it has been scanned."""
        end = _IN_CALL.half(text, position)
        is_half_escape = self._in_string and position < end == len(text) and text.endswith("\\")
        return end - 1 if is_half_escape else end

    def _next_mark(self, text: str, position: int) -> re.Match[str] | None:
        if not self._is_json or self._has_values:
            return _IN_VALUES.search(text, position)
        return (_IN_STRING if self._in_string else _IN_JSON).search(text, position)

    def _pass(self, text: str) -> None:
        if self._after_end and text.strip():
            self._after_end = False

    def _is_end(self, mark: str) -> bool:
        known = _MARKS.get(mark)  # escapes in strings are not marks
        return known is not None and known(self)

    @property
    def _is_between_values(self) -> bool:
        return self._after_end or not self._has_values

    def _quote(self) -> bool:
        self._in_string = not self._in_string
        return False

    def _value_begins(self) -> bool:
        self._has_values, self._after_end = True, False
        return False

    def _value_ends(self) -> bool:
        self._after_end = True
        return False

    def _function_ends(self) -> bool:
        is_end = self._is_between_values
        self._after_end = True
        return is_end and self.opening == FUNCTION

    def _tag(self) -> bool:
        is_end = not self._in_string and self._is_between_values
        self.is_doubtful = self.is_doubtful or not is_end
        return is_end


_MARKS: Mapping[str, Callable[[_Body], bool]] = {
    '"': _Body._quote,
    "<parameter=": _Body._value_begins,
    "<code>": _Body._value_begins,
    "</parameter>": _Body._value_ends,
    "</code>": _Body._value_ends,
    END_FUNCTION: _Body._function_ends,
    CALL: _Body._tag,
    END_CALL: _Body._tag,
}
"""Handlers for the marks in a body. Each returns True if the body ends there."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """Part of a call body. If it is a call, `text` is the part between its tags."""

    text: str
    is_call: bool
    opening: str = ""
    ending: str = ""

    @property
    def whole(self) -> str:
        return f"{self.opening}{self.text}{self.ending}"


def _segments(body: _Body, ending: str) -> Iterator[_Segment]:
    """Yield the segments of a body: one call, or the texts between tags that a malformed string hid."""
    text = body.text
    opening = body.opening if body.opening == CALL else ""
    ending = "" if ending == END_FUNCTION else ending
    if not body.is_doubtful or _is_strict(text.strip()):
        yield _Segment(text, True, opening, ending)
    else:
        yield from _parted([*_TAG_OF_CALL.split(text), ending], opening)


def _parted(pieces: Sequence[str], opening: str) -> Iterator[_Segment]:
    """Yield segments from an alternating sequence of texts and tags."""
    is_call = True
    for segment, tag in zip(pieces[::2], pieces[1::2], strict=True):
        end_tag = "" if tag == CALL else tag
        if is_call:
            yield _Segment(segment, True, opening, end_tag)
        elif segment + end_tag:
            yield _Segment(segment + end_tag, False)
        is_call, opening = tag == CALL, CALL
