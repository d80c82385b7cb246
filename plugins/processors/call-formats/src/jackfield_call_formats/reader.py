"""Base class for reading one model answer in any call format.

Text is forwarded as soon as its meaning is certain. Only a possible start of a tag is buffered, and a call until it
ends. The result does not depend on how the stream is split, and each character is read once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ClassVar

from jackfield.errors import ModelRequestError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    TextDelta,
)
from jackfield.messages import FinishReason
from jackfield.request import ChatRequest
from jackfield.tags import Tags
from jackfield_call_formats.calls import LEFT_OUT, Calls, FoundCall

THINK, END_THINK = "<think>", "</think>"
_END_OF_THOUGHT = Tags(END_THINK)

_USE_NATIVE = (
    "the server parsed the call itself: use native calls (fncall_prompt_type: 'native'), "
    "or start the server without its tool-call parser"
)

# Must not start like JSON, or the arguments might be repaired and a tool run with half a path or command.
CUT_OFF = "unfinished, the answer ended too early (at its length limit?): "


class AnswerReader(ABC):
    """Reads one answer. Subclasses recognise the start of a call and read it to its end.

    `_read_on` holds the state while text is read: a function that reads text from a position and returns the position
    it reached. To wait for more text, the function stores the remainder in `_held` and returns the text's length.
    """

    tags: ClassVar[Tags]
    """Tags that end plain text: `<think>`, and those that start the format's calls."""

    def __init__(self, request: ChatRequest) -> None:
        config = request.config
        self._functions = request.functions
        self._offered = frozenset(str(function["name"]) for function in request.functions)
        self._chosen = config.function_choice if config.function_choice in self._offered else ""
        self._calls = Calls(at_most_one=config.parallel_function_calls is False)
        self._out: list[ModelEvent] = []
        self._held = ""
        self._blank: list[str] = []  # white space at the start of a text, which counts only if more text follows
        self._at_start = True
        self._has_text = False  # something other than white space arrived
        self._has_media = False
        self._stopped = False
        self._read_on: Callable[[str, int], int] = self._in_thought if config.thought_in_content else self._in_text

    def feed(self, event: ModelEvent) -> Iterable[ModelEvent]:
        """Return the events to forward for one event.

        Raises:
            ModelRequestError: The server reported a call but removed its text.
        """
        match event:
            case TextDelta():
                self._has_text = self._has_text or bool(event.text.strip())
                if self._stopped:
                    return ()
                if self._is_plain(event.text):
                    return (event,)
                self._read(event.text)
            case FunctionCallDelta():
                self._out.append(self._calls.native(event))
            case ReasoningDelta():
                if self._read_on == self._in_thought and not self._has_text:
                    self._read_on = self._in_text  # the server already separates thoughts from the text
                self._out.append(event)
            case ModelFinished():
                self._finish(event)
            case _:
                self._has_media = self._has_media or isinstance(event, MediaDelta)
                return (event,)
        out, self._out = self._out, []
        return out

    def _is_plain(self, text: str) -> bool:
        """Return True if text can be forwarded unchanged. This is a shortcut for the most common case."""
        return (
            not self._held and not self._at_start and self._read_on == self._in_text and not self.tags.may_be_in(text)
        )

    def _read(self, piece: str) -> None:
        text, self._held = self._held + piece, ""
        position = 0
        while position < len(text) and not self._stopped:
            position = self._read_on(text, position)

    # --- text ---

    def _in_text(self, text: str, start: int) -> int:
        match = self.tags.search(text, start)
        if match is None:
            return self._all_but_half_tag(self.tags, text, start)
        self._say(text[start : match.start()])
        if match[0] == THINK:
            self._begin_thought()
        else:
            self._open(match[0])
        return match.end()

    @abstractmethod
    def _open(self, tag: str) -> None:
        """Handle a tag from `tags` that was found in text."""

    def _begin_thought(self) -> None:
        self._say(THINK)
        self._read_on = self._in_thought

    def _in_thought(self, text: str, start: int) -> int:
        match = _END_OF_THOUGHT.search(text, start)
        if match is None:
            return self._all_but_half_tag(_END_OF_THOUGHT, text, start)
        self._say(text[start : match.end()])
        self._text_begins()
        return match.end()

    def _text_begins(self) -> None:
        """Continue with text after a thought or a call. White space counts only if more text follows."""
        self._read_on, self._at_start = self._in_text, True

    def _all_but_half_tag(self, tags: Tags, text: str, start: int) -> int:
        end = tags.half(text, start)
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

    # --- calls ---

    def _start_call(self, name: str) -> int:
        index, begins = self._calls.start(name)
        self._out += begins
        return index

    def _end_call(self, index: int, arguments: str) -> None:
        if index != LEFT_OUT:
            self._out.append(FunctionCallDelta(index, arguments=arguments))
        self._blank.clear()
        self._at_start = True

    def _call(self, call: FoundCall) -> None:
        self._end_call(self._start_call(call.name), call.arguments)

    def _stop(self) -> None:
        """Handle a stop word by ignoring everything the server sends after it."""
        self._stopped = True
        self._held = ""

    def _is_whole_name(self, name: str, *, is_last: bool) -> bool:
        """Return True if an offered function has this name and, with `is_last`, no longer name starts with it."""
        others = self._offered - {name}
        return name in self._offered and not (is_last and any(other.startswith(name) for other in others))

    # --- the end ---

    @abstractmethod
    def _end(self, *, cut_off: bool) -> None:
        """Release all buffered text. `cut_off` is True if the model did not end the answer itself."""

    def _finish(self, event: ModelFinished) -> None:
        if not self._stopped:
            self._end(cut_off=event.is_cut_off)
        if self._blank and not self._calls:
            self._out.append(TextDelta("".join(self._blank)))
        self._out += self._calls.left_out()
        self._out.append(replace(event, reason=self._reason(event)))

    def _reason(self, event: ModelFinished) -> FinishReason:
        reason = "stop" if self._stopped else event.reason
        if self._calls:
            return "tool_calls" if reason == "stop" else reason
        if reason == "tool_calls":
            self._report_missing_call(event.provider_reason or reason)
        return reason

    def _report_missing_call(self, reason: str) -> None:
        what = f"the response finished with {reason!r}, but contains no call"
        if not self._has_text and not self._has_media:
            raise ModelRequestError(f"{what} and no text; {_USE_NATIVE}", code="call_parsed_by_server")
        self._out.append(PluginEvent("jackfield-call-formats.missing_call", {"note": f"{what}; {_USE_NATIVE}"}))
