"""Split a model's answer in different ways, and run it through processors and call formats."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest

from jackfield import ChatRequest, sync
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, ReasoningDelta, TextDelta
from jackfield.messages import ModelResponse
from jackfield.models import fold
from jackfield.processors import Processor, StreamTransform, closing

LIMIT_S = 60.0  # far more than any of these streams takes


# --- cutting ---


def pieces(text: str, cuts: Iterable[int]) -> list[str]:
    """Split a text at the given positions."""
    places = [0, *sorted(set(cuts)), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def recut(events: Sequence[ModelEvent], cut: Callable[[str], Iterable[str]]) -> list[ModelEvent]:
    """Return the same answer with each of its texts split differently."""
    out: list[ModelEvent] = []
    for event in events:
        match event:
            case TextDelta() | ReasoningDelta():
                out += [replace(event, text=piece) for piece in cut(event.text)]
            case FunctionCallDelta():
                for piece in cut(event.arguments):
                    out.append(replace(event, arguments=piece))
                    event = replace(event, id="", name="")  # noqa: PLW2901 - they come once
            case _:
                out.append(event)
    return out


def recuts(events: Sequence[ModelEvent], *, seed: int = 0) -> Iterator[list[ModelEvent]]:
    """Yield the same answer split in many ways: not at all, into characters, once at each position, and randomly."""
    whole = joined(events)
    yield whole
    yield recut(whole, lambda text: list(text) or [""])
    yield recut(whole, lambda text: ["", *text[:1], "", *text[1:], ""] if text else [""])
    longest = max((len(_text_of(event)) for event in whole), default=0)
    for place in range(1, longest):
        yield recut(whole, lambda text, place=place: pieces(text, [place] if place < len(text) else []))  # type: ignore[misc]
    dice = random.Random(seed)  # noqa: S311 - the same pieces in every run
    for most in (2, 3, 8, 8, 20, 20):
        yield recut(whole, lambda text, most=most: _thrown(dice, text, most))  # type: ignore[misc]


def joined(events: Sequence[ModelEvent]) -> list[ModelEvent]:
    """Return the same answer with adjacent texts joined."""
    out: list[ModelEvent] = []
    for event in events:
        match out[-1] if out else None, event:
            case TextDelta(before), TextDelta(text):
                out[-1] = TextDelta(before + text)
            case ReasoningDelta(before), ReasoningDelta(text):
                out[-1] = ReasoningDelta(before + text)
            case _:
                out.append(event)
    return out


def _thrown(dice: random.Random, text: str, most: int) -> list[str]:
    return pieces(text, [dice.randrange(len(text) + 1) for _ in range(dice.randint(1, most))])


def _text_of(event: ModelEvent) -> str:
    match event:
        case TextDelta() | ReasoningDelta():
            return event.text
        case FunctionCallDelta():
            return event.arguments
        case _:
            return ""


# --- running ---


class Inner:
    """Stub for the rest of the chain that answers every request with the same events and records how they are read.

    Attributes:
        requests: The requests received, oldest first.
        open: The number of streams that are neither finished nor closed.
        started: The number of streams started.
    """

    def __init__(
        self, events: Sequence[ModelEvent | Exception], *, before_each: Callable[[int], None] = lambda _: None
    ) -> None:
        self._events = events
        self._before_each = before_each
        self.requests: list[ChatRequest] = []
        self.open = 0
        self.started = 0

    def __call__(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        return self._stream()

    async def _stream(self) -> AsyncIterator[ModelEvent]:
        self.started += 1
        self.open += 1
        try:
            for number, event in enumerate(self._events):
                self._before_each(number)
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.open -= 1


def through(processor: Processor, request: ChatRequest, events: Sequence[ModelEvent]) -> list[ModelEvent]:
    """Return a processor's output for an answer."""
    return sync.run(gathered(processor.wrap(Inner(events))(request)))


def each_through(
    processor: Processor, request: ChatRequest, answers: Iterable[Sequence[ModelEvent]]
) -> list[list[ModelEvent]]:
    """Return a processor's output for several answers in sequence."""

    async def all_of_them() -> list[list[ModelEvent]]:
        return [await gathered(processor.wrap(Inner(events))(request)) for events in answers]

    return sync.run(all_of_them())


async def gathered(events: AsyncIterator[ModelEvent]) -> list[ModelEvent]:
    """Return all events of a stream."""
    async with closing(events):
        return [event async for event in events]


def fed(transform: StreamTransform, events: Iterable[ModelEvent]) -> list[ModelEvent]:
    """Return a transform's output for an answer."""
    return [out for event in events for out in transform.feed(event)]


def folded(events: Sequence[ModelEvent]) -> ModelResponse:
    """Combine the events into a complete answer."""
    return fold(events)


def shown(text: str) -> list[ModelEvent]:
    """Return a text answer in one piece."""
    return [TextDelta(text), ModelFinished("stop")]


# --- counting work ---


class CountedText(str):
    """String that counts how many of its characters are copied or searched, including in strings derived from it."""

    __slots__ = ("_count",)
    _count: list[int]

    def __new__(cls, text: str, count: list[int]) -> CountedText:
        made = super().__new__(cls, text)
        made._count = count
        return made

    def __add__(self, other: str) -> CountedText:
        return self._made(str.__add__(self, other))

    def __radd__(self, other: str) -> CountedText:
        return self._made(str.__add__(other, self))

    def __getitem__(self, key: Any) -> CountedText:
        return self._made(str.__getitem__(self, key))

    def __contains__(self, part: object) -> bool:
        self._count[0] += len(self)
        return isinstance(part, str) and str.__contains__(self, part)

    def _made(self, text: str) -> CountedText:
        self._count[0] += len(text)
        return CountedText(text, self._count)


class CountedBytes(bytes):
    """Bytes that count in the same way as `CountedText`, including in strings decoded from them."""

    _count: list[int]

    def __new__(cls, data: bytes, count: list[int]) -> CountedBytes:
        made = super().__new__(cls, data)
        made._count = count
        return made

    def __getitem__(self, key: Any) -> Any:
        value = bytes.__getitem__(self, key)
        if isinstance(value, int):
            return value
        self._count[0] += len(value)
        return CountedBytes(value, self._count)

    def __contains__(self, part: object) -> bool:
        self._count[0] += len(self)
        return isinstance(part, int | bytes) and bytes.__contains__(self, part)


def _counted(plain: Callable[..., Any]) -> Any:
    def method(self: CountedText | CountedBytes, *args: Any, **kwargs: Any) -> Any:
        self._count[0] += len(self)
        return _counting(plain(self, *args, **kwargs), self._count)

    return method


def _counting(value: Any, count: list[int]) -> Any:
    match value:
        case str():
            return CountedText(value, count)
        case bytes():
            return CountedBytes(value, count)
        case list() | tuple():
            return type(value)(_counting(part, count) for part in value)
    return value


for _name in (
    *("count", "find", "index", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind"),
    *("rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines", "strip", "upper", "endswith"),
):
    setattr(CountedText, _name, _counted(getattr(str, _name)))
    setattr(CountedBytes, _name, _counted(getattr(bytes, _name)))
setattr(CountedText, "casefold", _counted(str.casefold))  # noqa: B010 - like those above
setattr(CountedBytes, "decode", _counted(bytes.decode))  # noqa: B010


HOSTILE_PIECES = ('{"a":', "<tool_call>", "```", "\\", "http://a@", "+49 1", "[1](", "。")
"""Texts that a misled model may repeat: the starts of patterns in processors and call formats."""

LONG_TEXT = 250_000
"""The length of a text for which quadratic work takes a hundred times as long as linear work."""

GROWTH = 2.0
"""The factor by which the work per character may grow for eight times as many characters."""

FEW, MANY = 100, 800
"""The numbers of characters, a factor of eight apart, that are read one at a time while every step is counted."""


@contextmanager
def given_up_after(cpu_s: float) -> Iterator[None]:
    """Fail if a block uses more CPU time than allowed, for work that cannot be counted, such as regular expressions.

    This is a limit, not a measurement. Choose an amount of work for which quadratic time would far exceed the limit on
    any machine, while linear time uses only a small part of it.
    """

    def give_up(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what the interpreter passes
        pytest.fail(f"did not finish within {cpu_s:g} s of processor time")

    # Only the process's own time counts, whatever else the machine does. Regular expressions check for signals while
    # matching.
    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def fail_if_work_grows_faster(read: Callable[[list[ModelEvent]], object], words: str, giving_up_s: float) -> None:
    """Fail unless the work per character stays about the same as a text gets longer.

    Args:
        read: The operation to test, which receives an answer without its end.
        words: The text to repeat, sent both one character at a time and in one piece.
        giving_up_s: The CPU time allowed for 250,000 characters.
    """
    read([TextDelta(words)])  # the first call may import or create things
    by_character = [work_per_character(read, length, words=words) for length in (FEW, MANY)]
    at_once = [_work_at_once(read, length, words=words) for length in (500, 4000)]
    for (short, long), how in ((by_character, "sent one at a time"), (at_once, "sent in one piece")):
        if long > GROWTH * short + 40:
            times = f"but {long:.0f} when {words!r} is repeated 8 times as often"
            pytest.fail(f"{short:.0f} steps per character, {times}, {how}")
    with given_up_after(giving_up_s):
        read([TextDelta((words * LONG_TEXT)[:LONG_TEXT])])


def work_per_character(read: Callable[[list[ModelEvent]], object], n: int, *, words: str = "word word. ") -> float:
    """Return the work per character when `n` characters of repeated `words` arrive one at a time."""
    count = [0]
    events: list[ModelEvent] = [TextDelta(CountedText(letter, count)) for letter in (words * n)[:n]]
    return work_of(lambda: read(events), count) / n


def _work_at_once(run: Callable[..., object], n: int, *, words: str) -> float:
    """Return the work per character when `n` characters of repeated `words` arrive in one piece."""
    count = [0]
    events: list[ModelEvent] = [TextDelta(CountedText((words * n)[:n], count))]
    return work_of(lambda: run(events), count) / n


def work_of(work: Callable[[], object], count: list[int]) -> int:
    """Return the amount of work: calls, executed lines, and steps added to `count`.

    Work is counted rather than timed, so it is the same on every machine.
    """
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG001 - what the interpreter passes
        nonlocal steps
        steps += 1
        return trace

    counted, before = count[0], sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps + count[0] - counted
