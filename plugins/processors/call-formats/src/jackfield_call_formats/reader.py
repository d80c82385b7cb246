"""Find the calls in a stream of text, looking at each character once.

What is certain goes out at once; only a tag that may be in the making is held back, and a call until it ends. Where the
stream is cut makes no difference to the folded answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto

from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, ReasoningDelta, TextDelta
from jackfield.request import FunctionSchema
from jackfield_call_formats.call_body import (
    NAME_WITHIN,
    FoundCall,
    early_name,
    find_calls,
    is_strict,
    raw_arguments,
)

_CALL, _END, _THINK, _END_THINK = "<tool_call>", "</tool_call>", "<think>", "</think>"
_TAGS = (_CALL, _END, _THINK, _END_THINK)
_LONGEST_TAG = max(map(len, _TAGS))

_IN_TEXT = re.compile("<tool_call>|<think>")
_IN_JSON = re.compile('"|</?tool_call>')
_IN_STRING = re.compile(r'\\[\s\S]|"|</?tool_call>')
_IN_XML = re.compile("</tool_call>")
_TAG_OF_CALL = re.compile("(</?tool_call>)")

# It begins like no JSON, so that nobody mends the arguments and runs a tool with the half of a path or a command.
_CUT_OFF = "unfinished, the answer reached its length limit: "


class _State(Enum):
    TEXT = auto()
    THOUGHT = auto()
    CALL = auto()


class NousReader:
    """Reads one answer.

    Args:
        functions: The tools offered; their schemas type the values of XML calls.
        begins_in_thought: The answer begins inside a `<think>` block whose opening tag the prompt already has.
    """

    def __init__(self, *, functions: Sequence[FunctionSchema] = (), begins_in_thought: bool = False) -> None:
        self._functions = functions
        self._state = _State.THOUGHT if begins_in_thought else _State.TEXT
        self._held = ""  # perhaps the beginning of a tag, or of an escape in a string
        self._blank: list[str] = []  # white space at the start of a text: it counts only if more text follows
        self._at_start = True
        self._has_text = False
        self._next_index = 0
        self._native: dict[int, int] = {}
        self._body = _Body()
        self._out: list[ModelEvent] = []

    def feed(self, event: ModelEvent) -> Iterable[ModelEvent]:
        """What to pass on for an event."""
        match event:
            case TextDelta():
                self._has_text = self._has_text or bool(event.text.strip())
                if self._state is _State.TEXT and not self._held and not self._at_start and "<" not in event.text:
                    return (event,)
                self._read(event.text)
            case FunctionCallDelta():
                self._out.append(replace(event, index=self._native_index(event.index)))
            case ReasoningDelta():
                if self._state is _State.THOUGHT and not self._has_text:
                    self._state = _State.TEXT  # the server takes the thoughts out of the text itself
                self._out.append(event)
            case ModelFinished():
                self._finish(event)
            case _:
                return (event,)
        out, self._out = self._out, []
        return out

    # --- the text ---

    def _read(self, piece: str) -> None:
        text, self._held = self._held + piece, ""
        position = 0
        while position < len(text):
            match self._state:
                case _State.TEXT:
                    position = self._read_text(text, position)
                case _State.THOUGHT:
                    position = self._read_thought(text, position)
                case _State.CALL:
                    position = self._read_call(text, position)

    def _read_text(self, text: str, start: int) -> int:
        match = _IN_TEXT.search(text, start)
        if match is None:
            return self._say_all_but_half_tag(text, start)
        self._say(text[start : match.start()])
        if match[0] == _CALL:
            self._state, self._body = _State.CALL, _Body()
        else:
            self._say(_THINK)
            self._state = _State.THOUGHT
        return match.end()

    def _read_thought(self, text: str, start: int) -> int:
        end = text.find(_END_THINK, start)
        if end < 0:
            return self._say_all_but_half_tag(text, start)
        end += len(_END_THINK)
        self._say(text[start:end])
        self._state, self._at_start = _State.TEXT, True
        return end

    def _say_all_but_half_tag(self, text: str, start: int) -> int:
        end = _half_tag(text, start)
        self._say(text[start:end])
        self._held = text[end:]
        return len(text)

    def _say(self, text: str) -> None:
        if not text:
            return
        if self._at_start:
            if text.isspace():
                self._blank.append(text)
                return
            text = "".join([*self._blank, text])
            self._blank.clear()
            self._at_start = False
        self._out.append(TextDelta(text))

    # --- a call ---

    def _read_call(self, text: str, start: int) -> int:
        body = self._body
        tag, end, after = body.scan(text, start)
        body.add(text[start:end])
        if body.index is None and (name := body.new_name()):
            body.index = self._start_call(name)
        if tag:
            self._close_call(_END if tag == _END else "")
            if tag == _CALL:
                self._state, self._body = _State.CALL, _Body()
        else:
            self._held = text[after:]
            after = len(text)
        return after

    def _close_call(self, ending: str, *, cut_off: bool = False) -> None:
        """Let a call go, or what turns out to be several, or none; `ending` is its end tag, or half of it."""
        self._state = _State.TEXT
        for is_call, segment, tag in _segments(self._body, ending):
            calls = self._calls_in(segment, cut_off=cut_off) if is_call else []
            if calls:
                self._emit(calls)
                self._blank.clear()
                self._at_start = True
            else:
                self._say(f"{_CALL}{segment}{tag}" if is_call else segment)

    def _calls_in(self, segment: str, *, cut_off: bool) -> list[FoundCall]:
        calls = find_calls(segment, self._functions, mend=not cut_off)
        if cut_off and not is_strict(segment):
            calls = []
        if calls or self._body.index is None:
            return calls
        # Its name has been shown, so it is a call, and its tool tells the model what is wrong with the arguments.
        return [FoundCall(self._body.name, (_CUT_OFF if cut_off else "") + raw_arguments(segment))]

    def _emit(self, calls: Iterable[FoundCall]) -> None:
        for call in calls:
            if self._body.index is not None:
                self._out.append(FunctionCallDelta(self._body.index, arguments=call.arguments))
                self._body.index = None
            else:
                self._out.append(FunctionCallDelta(self._start_call(call.name), arguments=call.arguments))

    def _start_call(self, name: str) -> int:
        index = self._next_index
        self._next_index += 1
        self._out.append(FunctionCallDelta(index, id=str(index + 1), name=name))
        return index

    def _native_index(self, index: int) -> int:
        if index not in self._native:
            self._native[index] = self._next_index
            self._next_index += 1
        return self._native[index]

    # --- the end ---

    def _finish(self, event: ModelFinished) -> None:
        held, self._held = self._held, ""
        if self._state is _State.CALL:
            half_end = held if _END.startswith(held) else ""
            self._body.add(held.removesuffix(half_end))
            self._close_call(half_end, cut_off=event.reason == "length")
        else:
            self._say(held)
        if self._blank and not self._next_index:
            self._out.append(TextDelta("".join(self._blank)))
        found_calls = self._next_index > 0
        self._out.append(replace(event, reason="tool_calls") if found_calls and event.reason == "stop" else event)


class _Body:
    """What has been read of one call.

    Attributes:
        index: The call's, once its name has been passed on.
        tag_in_string: There is a tag in what looks like a string. If the JSON turns out to be broken, it was none.
    """

    __slots__ = ("_head", "_in_string", "_is_json", "_parts", "index", "name", "tag_in_string")

    def __init__(self) -> None:
        self.index: int | None = None
        self.name = ""
        self.tag_in_string = False
        self._parts: list[str] = []
        self._head = ""
        self._is_json: bool | None = None
        self._in_string = False

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str) -> None:
        self._parts.append(text)

    def new_name(self) -> str:
        """The call's name, the first time it is certain; '' before and if it never is."""
        if len(self._head) >= NAME_WITHIN:
            return ""
        self._head = (self._head + self._parts[-1])[:NAME_WITHIN]
        self.name = early_name(self._head)
        return self.name

    def scan(self, text: str, start: int) -> tuple[str, int, int]:
        """Look for the end of the call.

        Returns:
            The tag that ends it ('' if there is none yet), where the body ends, and where to go on: there begins what
            must wait for more text.
        """
        if self._is_json is None:
            first = text[start:].lstrip()[:1]
            if first:
                # XML has no strings that could hide a tag.
                self._is_json = first != "<"
        position = start
        while match := self._next_mark(text, position):
            position = match.end()
            found = match[0]
            if found == '"':
                self._in_string = not self._in_string
            elif found[0] == "<":
                if not self._in_string:
                    return found, match.start(), position
                self.tag_in_string = True
        end = _half_tag(text, position)
        if self._in_string and end == len(text) and text.endswith("\\") and position < end:
            end -= 1  # half an escape: all the others have been matched with what they escape
        return "", end, end

    def _next_mark(self, text: str, position: int) -> re.Match[str] | None:
        if self._is_json:
            return (_IN_STRING if self._in_string else _IN_JSON).search(text, position)
        return _IN_XML.search(text, position)


def _half_tag(text: str, start: int) -> int:
    """Where a tag begins that may go on in the next piece; the end of the text if there is none."""
    less_than = text.rfind("<", max(start, len(text) - _LONGEST_TAG + 1))
    if less_than >= 0 and any(tag.startswith(text[less_than:]) for tag in _TAGS):
        return less_than
    return len(text)


def _segments(body: _Body, ending: str) -> Iterator[tuple[bool, str, str]]:
    """What a body consists of: one call, or, if a broken string hid tags, what they part.

    Yields:
        Whether it is a call, its text, and the tag that ends it.
    """
    text = body.text
    if not body.tag_in_string or is_strict(text):
        yield True, text, ending
        return
    pieces = [*_TAG_OF_CALL.split(text), ending]
    in_call = True
    for segment, tag in zip(pieces[::2], pieces[1::2], strict=True):
        end_tag = "" if tag == _CALL else tag
        if in_call:
            yield True, segment, end_tag
        else:
            yield False, segment + end_tag, ""
        in_call = tag == _CALL
