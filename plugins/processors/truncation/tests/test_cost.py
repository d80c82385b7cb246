"""Counting is the expensive part: what is small is not counted, and what was counted is not counted again."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jackfield.messages import FunctionCall, Message, as_messages
from jackfield.request import ChatRequest
from jackfield_counting.estimating import estimate_tokens
from jackfield_counting.requests import Counts
from jackfield_truncation.processor import Truncation

MakeRequest = Callable[..., ChatRequest]


def _history(length: int) -> list[Message]:
    """Turns of four messages, each text another."""
    history: list[Message] = []
    for number in range(length // 4):
        ids = {"function_id": str(number)}
        history += [
            Message("user", f"question {number} " + "and more " * 20),
            Message("assistant", "", function_call=FunctionCall("read", f'{{"page": {number}}}'), extra=ids),
            Message("function", f"page {number} " + "of the report " * 60, name="read", extra=ids),
            Message("assistant", f"answer {number} " + "in short " * 20),
        ]
    return history


FUNCTIONS = tuple({"name": f"tool_{number}", "parameters": {"type": "object"}} for number in range(20))


def test_a_small_request_is_not_counted_at_all(make_request: MakeRequest, words: Any) -> None:
    request = make_request([*_history(20), Message("user", "go on, 请")], 100_000, functions=FUNCTIONS)
    assert Truncation(count=words).prepare(request) is request
    assert words.counted == []


def test_each_text_is_counted_once_however_often_it_is_sent(make_request: MakeRequest, words: Any) -> None:
    history = [*_history(500), Message("user", "go on")]
    truncation = Truncation(count=words)
    request = make_request(history, 70_000, functions=FUNCTIONS)
    assert truncation.prepare(request) is request
    assert len(words.counted) == len(set(words.counted)) > 500
    words.counted.clear()
    longer = make_request(
        [*history, Message("assistant", "well"), Message("user", "go on!")], 70_000, functions=FUNCTIONS
    )
    assert truncation.prepare(longer) is longer
    assert sorted(words.counted) == ["go on!", "well"]


def test_a_history_that_has_to_be_shortened_is_counted_once_too(make_request: MakeRequest, words: Any) -> None:
    history = [*_history(500), Message("user", "go on")]
    truncation = Truncation(count=words)
    first = truncation.prepare(make_request(history, 20_000, functions=FUNCTIONS))
    words.counted.clear()
    assert truncation.prepare(make_request(history, 20_000, functions=FUNCTIONS)) == first
    assert words.counted == []


def test_one_more_question_changes_little_of_what_is_sent(make_request: MakeRequest, words: Any) -> None:
    history = [*_history(500), Message("user", "go on")]
    truncation = Truncation(count=words)
    first = truncation.prepare(make_request(history, 25_000)).messages
    words.counted.clear()
    second = truncation.prepare(
        make_request([*history, Message("assistant", "well"), Message("user", "go on!")], 25_000)
    ).messages
    different = [place for place, message in enumerate(first) if message != second[place]]
    assert len(different) <= 2
    assert len(words.counted) < 20


def test_histories_of_dicts_are_counted_once_too(make_request: MakeRequest, words: Any) -> None:
    dicts = [message.model_dump() for message in _history(40)]
    truncation = Truncation(count=words)
    for _ in range(2):
        truncation.prepare(make_request(as_messages(dicts), 6000))
    assert len(words.counted) == len(set(words.counted)) > 0


def test_a_message_that_its_owner_changed_is_counted_anew(make_request: MakeRequest, words: Any) -> None:
    message = Message("user", "short")
    truncation = Truncation(count=words)
    request = make_request([message], 100)
    assert truncation.prepare(request) is request
    message["content"] = "long " * 500
    assert truncation.prepare(request) is not request


def test_what_is_remembered_is_bounded() -> None:
    counts = Counts(len)
    for number in range(101_000):
        counts.of(str(number))
    assert counts.remembered <= 100_000
    assert counts.of("5") == 1


def test_threads_count_the_same(make_request: MakeRequest) -> None:
    request = make_request([*_history(80), Message("user", "go on")], 3000)
    truncation = Truncation()
    expected = Truncation().prepare(request)
    with ThreadPoolExecutor(8) as pool:
        assert all(came == expected for came in pool.map(truncation.prepare, [request] * 24))


def test_a_text_is_not_taken_for_small_by_its_characters_when_it_has_more_bytes(make_request: MakeRequest) -> None:
    request = make_request([Message("user", "数据🙂" * 200)], 1000)
    assert Truncation(count=lambda text: len(text.encode())).prepare(request) is not request


def test_the_bound_holds_for_the_estimate() -> None:
    for text in ("", "a", "1", "\n", "a1b2", "!", "数", "数1数", "🙂", "\u3000", "é" * 9, "_" * 3, "word " * 50):
        assert estimate_tokens(text) <= (len(text) if text.isascii() else 4 * len(text))
