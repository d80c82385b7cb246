"""Which stop word is the first, and what may be shown before it is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jackfield.config import LLMConfig
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, FinishReason, Message, Usage
from jackfield.models import BaseChatModel, fold
from jackfield.models._stops import until_stop
from jackfield.request import ChatRequest
from jackfield.tags import StopSearch
from jackfield.testing import ScriptedModel

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

CALL = FunctionCallDelta(0, "c1", "look", '{"at": "a STOP sign"}')
PART = FunctionCallDelta(0, "c1", "look", '{"at": ')
STOPPED = [PluginEvent("jackfield.stopped", {"stop": "STOP"}), ModelFinished("stop")]


class _Events(AsyncIterator[ModelEvent]):
    """The events of a server, which counts those that were read."""

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
        answer = []
        async for event in until_stop(["STOP"], server):
            assert event != STOPPED[0] or server.is_closed, "the server still generates when the end is reported"
            answer.append(event)
        return answer

    server = _Events(events)
    return asyncio.run(gathered()), server


def _letters(text: str) -> list[ModelEvent]:
    return [TextDelta(letter) for letter in text]


def test_at_a_stop_word_the_server_is_left_at_once() -> None:
    events, server = _answered(TextDelta("a ST"), TextDelta("OP b"), TextDelta("c"), ModelFinished("stop"))
    assert events == [TextDelta("a "), *STOPPED]
    assert server.is_closed
    assert server.left == [TextDelta("c"), ModelFinished("stop")]


def test_the_answer_ends_before_the_first_stop_word() -> None:
    events, _ = _answered(*_letters("go on STOP here STOP"), ModelFinished("length"))
    assert fold(events).get_content() == "go on "
    assert events[-2:] == STOPPED


def test_usage_that_came_before_the_stop_word_is_kept() -> None:
    usage = Usage(prompt_tokens=3, completion_tokens=4)
    events, _ = _answered(UsageReported(usage), *_letters("a STOP b"), ModelFinished("stop"))
    assert fold(events).usage == usage


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_half_a_stop_word_at_the_end_is_the_models_own_text(reason: FinishReason) -> None:
    end = ModelFinished(reason, model="m", response_id="r")
    events, _ = _answered(*_letters("We must STO"), end)
    assert fold(events).get_content() == "We must STO"
    assert events[-1] == end


def test_nothing_is_added_to_an_answer_that_broke_off() -> None:
    events, _ = _answered(*_letters("We must STO"))
    assert fold(events).get_content() == "We must "
    assert not [event for event in events if isinstance(event, ModelFinished)]


def test_reasoning_and_arguments_of_calls_are_not_cut() -> None:
    whole = [ReasoningDelta("shall I STOP?"), *_letters("ok ST"), CALL, ModelFinished("tool_calls")]
    events, _ = _answered(*whole)
    assert fold(events) == fold(whole)


def test_a_stop_word_is_found_around_events_that_are_no_text() -> None:
    events, _ = _answered(TextDelta("a ST"), ReasoningDelta("hm"), UsageReported(Usage()), TextDelta("OP b"))
    assert fold(events).get_content() == "a "


def test_everything_after_a_stop_word_is_dropped() -> None:
    after: list[ModelEvent] = [CALL, MediaDelta(ContentItem(image="http://h/a.png")), ReasoningDelta("hm")]
    events, _ = _answered(*_letters("a STOP"), *after, ModelFinished("tool_calls"))
    assert fold(events).messages == [Message("assistant", "a ")]
    assert fold(events).finish_reason == "stop"


def test_a_call_that_began_before_a_stop_word_comes_whole_and_nothing_else_does() -> None:
    end = ModelFinished("tool_calls", model="m", data={"signature": "s"})
    rest = FunctionCallDelta(0, arguments='"STOP"}')
    second = FunctionCallDelta(1, "c2", "look", "{}")
    media = MediaDelta(ContentItem(image="http://h/a.png"))
    events, _ = _answered(TextDelta("a "), PART, TextDelta("STOP b"), second, rest, media, TextDelta("c"), end)
    assert events == [TextDelta("a "), PART, rest, end]


def test_after_a_reset_an_answer_is_searched_from_its_beginning() -> None:
    reset, end = StreamReset("again"), ModelFinished("stop")
    events, _ = _answered(TextDelta("a ST"), reset, TextDelta("OP b"), end)
    assert events == [TextDelta("a "), reset, TextDelta("OP b"), end]
    events, _ = _answered(PART, TextDelta("STOP"), reset, TextDelta("b STOP"), end)
    assert events == [PART, reset, TextDelta("b "), *STOPPED]
    assert fold(events).get_function_calls() == []


# --- models ---


def _model(*answers: str, **options: object) -> ScriptedModel:
    config = LLMConfig.parse({"model": "m", "generate_cfg": options})
    script = [[*_letters(text), ModelFinished("stop")] for text in answers]
    return ScriptedModel(script, config=config)


def test_stop_words_of_the_model_and_of_the_call_end_an_answer() -> None:
    model = _model("one END two", "one END two", stop="END")
    assert model.quick_chat("hi") == "one "
    assert model.ask("hi", config={"stop": "e"}).text == "on"


def test_an_empty_stop_word_ends_nothing() -> None:
    assert _model("one", stop=[""]).quick_chat("hi") == "one"


@pytest.mark.parametrize(("send", "sent"), [(True, ("STOP",)), (False, ())])
def test_a_server_is_told_of_stop_words_unless_send_stop_is_false(send: bool, sent: tuple[str, ...]) -> None:
    model = _Recording()
    assert model.ask("hi", config={"stop": "STOP", "send_stop": send}).text == "a "
    assert model.sent == [sent]


class _Recording(BaseChatModel):
    """A backend that ignores stop words, and records those that it would send."""

    backend = "recording"

    def __init__(self) -> None:
        super().__init__(LLMConfig(model="m"), processors=[])
        self.sent: list[tuple[str, ...]] = []

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        self.sent.append(request.config.stop)
        yield TextDelta("a STOP b")
        yield ModelFinished("stop")
