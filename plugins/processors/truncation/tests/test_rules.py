"""What becomes shorter first, what next, and what never."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import chain
from typing import Any

import pytest

from jackfield.errors import ContextLengthError
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.messages import ContentItem, FunctionCall, Message, Origin
from jackfield.request import ChatRequest
from jackfield_counting.requests import RequestCounter
from jackfield_truncation.processor import Truncation

MakeRequest = Callable[..., ChatRequest]
SYSTEM = Message("system", "Be brief.")


def _words(count: int, word: str = "word") -> str:
    return " ".join(f"{word}{number}" for number in range(count))


def _call(call_id: str, arguments: str = "{}") -> Message:
    return Message("assistant", "", function_call=FunctionCall("read", arguments), extra={"function_id": call_id})


def _result(call_id: str, content: Any) -> Message:
    return Message("function", content, name="read", extra={"function_id": call_id, "mine": [1]})


def _shortened(request: ChatRequest, count: Any) -> tuple[Message, ...]:
    return Truncation(count=count).prepare(request).messages


@pytest.fixture
def history() -> list[Message]:
    """Two turns with a tool each, and a third with a step that is done and one that is not read yet."""
    return [
        SYSTEM,
        Message("user", "first " + _words(100)),
        _call("1"),
        _result("1", _words(1000, "old")),
        Message("assistant", "answer " + _words(100)),
        Message("user", "second"),
        _call("2"),
        _result("2", _words(1000, "later")),
        Message("assistant", "done"),
        Message("user", "third"),
        _call("3"),
        _result("3", _words(1000, "read")),
        _call("4"),
        _result("4", _words(1000, "unread")),
    ]


def test_the_oldest_result_is_shortened_first_and_alone_if_that_is_enough(
    make_request: MakeRequest, history: list[Message], words: Any
) -> None:
    came = _shortened(make_request(history, 4000), words)
    assert len(came) == len(history)
    changed = [place for place, message in enumerate(came) if message is not history[place]]
    assert changed == [3]
    text = came[3].content
    assert isinstance(text, str)
    assert text.startswith("old0 ")
    assert text.endswith(" old999")
    assert "characters left out" in text


def test_a_shortened_result_keeps_its_name_its_id_and_all_that_is_the_callers(
    make_request: MakeRequest, history: list[Message], words: Any
) -> None:
    result = _shortened(make_request(history, 4000), words)[3]
    assert (result.role, result.name, result.extra) == ("function", "read", {"function_id": "1", "mine": [1]})


def test_results_are_shortened_before_turns_go_and_the_one_not_yet_read_stays(
    make_request: MakeRequest, history: list[Message], words: Any
) -> None:
    came = _shortened(make_request(history, 1600), words)
    assert len(came) == len(history)
    changed = [place for place, message in enumerate(came) if message is not history[place]]
    assert changed == [3, 7, 11]


def test_then_the_oldest_turn_loses_its_steps_but_the_last(
    make_request: MakeRequest, history: list[Message], words: Any
) -> None:
    came = _shortened(make_request(history, 1400), words)
    assert len(came) == len(history) - 2
    assert came[:4] == (SYSTEM, history[1], history[4], history[5])


@pytest.mark.parametrize("later", [[], [Message("user", "next")]], ids=["in the last turn", "in an earlier turn"])
@pytest.mark.parametrize("gone", range(3))
def test_the_oldest_steps_of_a_turn_go_first_and_no_more_than_needed(
    make_request: MakeRequest, words: Any, gone: int, later: list[Message]
) -> None:
    steps = [[_call(one), _result(one, _words(60, one))] for one in "abcd"]
    history = [Message("user", "go"), *chain(*steps), *later]
    counter = RequestCounter(words, 0)
    fits = sum(map(counter.message, [history[0], *chain(*steps[gone:]), *later]))
    for limit in (fits, fits + 1):
        assert _shortened(make_request(history, limit), words) == (history[0], *chain(*steps[gone:]), *later)


def test_then_one_text_of_the_oldest_turn_is_shortened(
    make_request: MakeRequest, history: list[Message], words: Any
) -> None:
    came = _shortened(make_request(history, 1380), words)
    assert came[2:4] == (history[4], history[5])
    assert str(came[1].content).startswith("first word0 word1 ")
    assert "characters left out" in str(came[1].content)


def test_then_the_oldest_turns_go_whole(make_request: MakeRequest, history: list[Message], words: Any) -> None:
    came = _shortened(make_request(history, 1100), words)
    assert came[:3] == (SYSTEM, history[9], history[10])
    assert came[-1] is history[-1]


def test_then_the_last_turn_loses_the_steps_that_were_read(
    make_request: MakeRequest, history: list[Message], words: Any
) -> None:
    assert _shortened(make_request(history, 1030), words) == (SYSTEM, history[9], history[12], history[13])


def test_then_the_results_not_yet_read_are_shortened_to_one_size(make_request: MakeRequest, words: Any) -> None:
    history = [
        Message("user", _words(300)),
        _call("1"),
        _call("2"),
        _call("3"),
        _result("1", _words(900)),
        _result("2", _words(40)),
        _result("3", _words(700)),
    ]
    came = _shortened(make_request(history, 800), words)
    assert [message is old for message, old in zip(came, history, strict=True)] == [
        *[True] * 4,
        False,
        True,
        False,
    ]
    sizes = [len(str(came[place].content).split()) for place in (4, 6)]
    assert min(sizes) >= 0.9 * max(sizes)


def test_the_users_last_words_are_shortened_in_the_middle_if_they_alone_are_too_many(
    make_request: MakeRequest, words: Any
) -> None:
    long = Message("user", _words(5000), name="ada")
    came = _shortened(make_request([SYSTEM, Message("user", "before"), Message("assistant", "yes"), long], 500), words)
    assert [message.role for message in came] == ["system", "user"]
    text = str(came[1].content)
    assert text.startswith("word0 word1 ")
    assert text.endswith(" word4998 word4999")
    assert came[1].name == "ada"


def test_a_chinese_conversation_gets_a_chinese_note(make_request: MakeRequest) -> None:
    long = "数据分析报告" * 2000
    (message,) = Truncation().prepare(make_request([Message("user", long)], 500, lang="zh")).messages
    assert "此处省略" in str(message.content)


def test_texts_are_shortened_around_media_which_stay(make_request: MakeRequest, words: Any) -> None:
    picture = ContentItem(image="https://example.org/a.png")
    content = [ContentItem(text=_words(3000)), picture, ContentItem(text="What is this?")]
    (came,) = _shortened(make_request([Message("user", content)], 1500), words)
    assert isinstance(came.content, list)
    assert came.content[1:] == [picture, ContentItem(text="What is this?")]
    assert 500 < len(str(came.content[0].text).split()) < 750  # the guess for the picture takes no more than half


def test_media_count_what_the_settings_say(make_request: MakeRequest, words: Any) -> None:
    picture = Message("user", [ContentItem(image="a.png"), ContentItem(video=["1.png", "2.png"])])
    history = [picture, Message("assistant", "nice"), Message("user", _words(600))]
    request = make_request(history, 1000)
    assert Truncation(count=words, media_tokens=120).prepare(request) is request
    assert Truncation(count=words, media_tokens=150).prepare(request).messages == (history[2],)


def test_a_guess_for_media_refuses_nobody_and_costs_no_text(make_request: MakeRequest, words: Any) -> None:
    pictures = [ContentItem(image=f"{number}.png") for number in range(9)]
    request = make_request([Message("user", [*pictures, ContentItem(text=_words(400))])], 1000)
    assert Truncation(count=words, media_tokens=1000).prepare(request) is request


def test_reasoning_of_earlier_turns_goes_before_anything_else(make_request: MakeRequest, words: Any) -> None:
    origin = Origin(backend="b", data={"signature": "s"})
    history = [
        Message("user", "one"),
        Message("assistant", "", reasoning_content=_words(300), origin=origin),
        _call("0").replace(reasoning_content=_words(300), origin=origin),
        _result("0", "page"),
        Message("assistant", "two", reasoning_content=_words(300), origin=origin),
        Message("user", "three"),
        Message("assistant", "", reasoning_content=_words(100)),
        _call("1"),
        _result("1", _words(100)),
    ]
    came = _shortened(make_request(history, 300), words)
    assert came == (history[0], _call("0"), history[3], Message("assistant", "two"), *history[5:])


def test_schemas_count(make_request: MakeRequest, words: Any) -> None:
    function = {"name": "read", "description": _words(200), "parameters": {"type": "object", "properties": {}}}
    history = [Message("user", _words(200)), Message("assistant", "yes"), Message("user", "go")]
    assert _shortened(make_request(history, 350), words) == tuple(history)
    assert _shortened(make_request(history, 350, functions=(function,)), words) != tuple(history)


def test_user_messages_in_a_row_are_no_trouble(make_request: MakeRequest, words: Any) -> None:
    history = [Message("user", _words(500)), Message("user", _words(500)), Message("user", "well?")]
    assert _shortened(make_request(history, 100), words)[-1] is history[-1]


@pytest.mark.parametrize("limit", [None, 0, -1])
def test_without_a_limit_nothing_is_changed(
    make_request: MakeRequest, history: list[Message], words: Any, limit: int | None
) -> None:
    request = make_request(history, limit)
    assert Truncation(count=words).prepare(request) is request
    assert words.counted == []


def test_the_context_leaves_room_for_the_answer_and_a_margin(make_request: MakeRequest, words: Any) -> None:
    history = [Message("user", _words(850)), Message("assistant", "yes"), Message("user", "go")]
    for settings, max_tokens, fits in (
        ({"context_tokens": 1000, "answer_tokens": 10, "margin": 0}, None, True),
        ({"context_tokens": 1000, "answer_tokens": 10}, None, True),
        ({"context_tokens": 1000, "answer_tokens": 10, "margin": 0.2}, None, False),
        ({"context_tokens": 1000, "answer_tokens": 200}, None, False),
        ({"context_tokens": 1000, "answer_tokens": 10}, 200, False),
        ({"context_tokens": 1000}, None, False),
    ):
        request = make_request(history, max_tokens=max_tokens)
        assert (Truncation(count=words, **settings).prepare(request) is request) is fits


def test_max_input_tokens_of_a_request_wins_over_the_context(make_request: MakeRequest, words: Any) -> None:
    request = make_request([Message("user", _words(850))], 2000)
    assert Truncation(context_tokens=100, count=words).prepare(request) is request


@pytest.mark.parametrize("max_tokens", [1000, 5000])
def test_of_an_answer_that_leaves_no_room_the_server_decides(
    make_request: MakeRequest, words: Any, max_tokens: int
) -> None:
    # Its server may end it where the context ends, or have a longer context than is known here.
    truncation = Truncation(context_tokens=1000, margin=0, count=words)
    request = make_request([Message("user", "hi")], max_tokens=max_tokens)
    assert truncation.prepare(request) is request
    history = [*2 * [Message("user", _words(400)), Message("assistant", "ok")], Message("user", "hi")]
    came = truncation.prepare(make_request(history, max_tokens=max_tokens))
    assert came.messages == truncation.prepare(make_request(history)).messages != tuple(history)


def test_a_system_message_that_is_too_long_is_named_with_its_size(make_request: MakeRequest, words: Any) -> None:
    history = [Message("system", _words(600)), Message("user", "hello")]
    with pytest.raises(ContextLengthError) as caught:
        Truncation(count=words).prepare(make_request(history, 500))
    assert "is 109 tokens too long" in str(caught.value)
    assert "messages[0] (system), 604 tokens" in str(caught.value)


def test_schemas_that_are_too_long_are_named(make_request: MakeRequest, words: Any) -> None:
    function = {"name": "read", "description": _words(900), "parameters": {}}
    with pytest.raises(ContextLengthError, match="schemas of its 1 functions"):
        Truncation(count=words).prepare(make_request([Message("user", "hello")], 500, functions=(function,)))


def test_arguments_of_a_call_that_is_open_are_never_cut(make_request: MakeRequest, words: Any) -> None:
    history = [Message("user", "go"), _call("1", _words(700)), _result("1", "ok")]
    with pytest.raises(ContextLengthError, match=r"messages\[1\] \(assistant\)"):
        Truncation(count=words).prepare(make_request(history, 500))


def test_an_answer_to_a_shortened_request_that_is_left_is_closed_at_once(make_request: MakeRequest, words: Any) -> None:
    closed: list[bool] = []

    async def call_next(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        try:
            yield TextDelta("a")
            yield ModelFinished("stop")
        finally:
            closed.append(True)

    async def main() -> None:
        request = make_request([Message("user", "word " * 500), Message("assistant", "a"), Message("user", "b")], 50)
        events = Truncation(count=words).around(request, call_next)
        async for event in events:
            if isinstance(event, TextDelta):
                break
        await events.aclose()  # type: ignore[attr-defined]
        assert closed

    asyncio.run(main())
