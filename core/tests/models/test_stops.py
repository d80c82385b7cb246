"""Which stop word is the first, and what may be shown before it is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, PluginEvent, StreamReset, TextDelta
from jackfield.models._stops import until_stop
from jackfield.tags import StopSearch

# Few letters, so that words overlap, contain each other and nearly come.
LETTERS = st.text("ab\n", max_size=30)
WORDS = st.lists(st.text("ab\n", min_size=1, max_size=5), min_size=1, max_size=4)
PIECES = st.lists(st.text("ab\n", max_size=6), max_size=12)


def _letter_by_letter(text: str, words: list[str]) -> tuple[str, str]:
    """What a server does that looks after each character: the text before the stop word, and the word."""
    for end in range(1, len(text) + 1):
        ended = [word for word in words if text[:end].endswith(word)]
        if ended:
            longest = max(ended, key=len)
            return text[: end - len(longest)], longest
    return text, ""


def _searched(pieces: list[str], words: list[str]) -> tuple[list[str], str]:
    search, shown = StopSearch(words), []
    for piece in pieces:
        shown.append(search.feed(piece))
        if search.found:
            return shown, search.found
    return [*shown, search.rest()], ""


@settings(max_examples=settings().max_examples * 4)
@given(PIECES, WORDS)
@example(["aba"], ["aba", "b"])
@example(["abab"], ["bab", "aba"])
def test_however_a_text_is_cut_it_stops_where_one_that_looks_at_each_letter_stops(
    pieces: list[str], words: list[str]
) -> None:
    shown, found = _searched(pieces, words)
    assert ("".join(shown), found) == _letter_by_letter("".join(pieces), words)


@given(PIECES, WORDS)
def test_nothing_is_held_back_but_what_a_stop_word_may_begin_with(pieces: list[str], words: list[str]) -> None:
    search, text, shown = StopSearch(words), "", 0
    for piece in pieces:
        shown += len(search.feed(piece))
        text += piece
        if search.found:
            return
        held = text[shown:]
        assert not held or any(word.startswith(held) and word != held for word in words)


@given(LETTERS, LETTERS, WORDS)
def test_what_is_shown_is_never_taken_back(first: str, then: str, words: list[str]) -> None:
    shown, _ = _letter_by_letter(first + then, words)
    assert shown.startswith(StopSearch(words).feed(first))


@given(st.text(max_size=30), st.text(min_size=1, max_size=5), st.text(max_size=10))
def test_any_characters_may_be_in_a_stop_word(before: str, word: str, after: str) -> None:
    shown, found = _searched(list(before + word + after), [word])
    assert ("".join(shown), found) == _letter_by_letter(before + word + after, [word])
    assert found == word


def test_characters_that_only_look_alike_do_not_stop() -> None:
    search = StopSearch(["é", "STOP"])
    assert search.feed("e\u0301 stop ＳＴＯＰ") == "e\u0301 stop ＳＴＯＰ"
    assert search.found == ""


# --- whole answers ---


class _Events(AsyncIterator[ModelEvent]):
    """The events of a server, of which it is known how many were read."""

    def __init__(self, events: Sequence[ModelEvent]) -> None:
        self.left = list(events)
        self.is_closed = False

    async def __anext__(self) -> ModelEvent:
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)

    async def aclose(self) -> None:
        self.is_closed = True


def _answered(*events: ModelEvent) -> tuple[list[ModelEvent], _Events]:
    async def gathered() -> list[ModelEvent]:
        return [event async for event in until_stop(["STOP"], server)]

    server = _Events(events)
    return asyncio.run(gathered()), server


def _called(index: int, arguments: str = "{}") -> FunctionCallDelta:
    return FunctionCallDelta(index, id=f"c{index}", name="act", arguments=arguments)


STOPPED = [PluginEvent("jackfield.stopped", {"stop": "STOP"}), ModelFinished("stop")]


def test_at_a_stop_word_the_server_is_left_at_once() -> None:
    events, server = _answered(TextDelta("a ST"), TextDelta("OP b"), TextDelta("c"), ModelFinished("stop"))
    assert events == [TextDelta("a "), *STOPPED]
    assert server.is_closed
    assert server.left == [TextDelta("c"), ModelFinished("stop")]


def test_a_call_that_began_before_the_stop_word_is_read_to_its_end_and_a_later_one_is_dropped() -> None:
    begun, rest, later = _called(0, '{"a":'), FunctionCallDelta(0, arguments=" 1}"), _called(1)
    end = ModelFinished("tool_calls")
    events, _ = _answered(begun, TextDelta("a STOP"), later, rest, TextDelta("b"), end)
    assert events == [begun, TextDelta("a "), rest, end]


def test_after_a_reset_an_answer_is_searched_from_its_beginning() -> None:
    reset, end = StreamReset("again"), ModelFinished("stop")
    events, _ = _answered(TextDelta("a ST"), reset, TextDelta("OP b"), end)
    assert events == [TextDelta("a "), reset, TextDelta("OP b"), end]
    begun = _called(0)
    events, _ = _answered(begun, TextDelta("STOP"), reset, TextDelta("b STOP"), end)
    assert events == [begun, reset, TextDelta("b "), *STOPPED]
