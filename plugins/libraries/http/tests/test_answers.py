"""A reader turns objects into events, up to the end of the answer and no further."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from jackfield.errors import ModelResponseError
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield_http import AnswerReader, Failures, Wire, arguments_of, count_of
from jackfield_http.sse import PATIENCE_S, NoEventError


class SaidReader(AnswerReader):
    """`{"say": text}`, then `[END]`."""

    texts: ClassVar[frozenset[str]] = frozenset({"say"})
    end_mark: ClassVar[bytes | None] = b"[END]"

    @property
    def complete(self) -> bool:
        return self.done

    def read_event(self, wire: Wire) -> list[ModelEvent]:
        return [TextDelta(wire["say"].removeprefix("-"))]

    def last_events(self) -> list[ModelEvent]:
        return [ModelFinished("stop")]


def reader(**options: Any) -> SaidReader:
    return SaidReader(Failures("acme"), **options)


A, B, END = b'data: {"say": "a"}\n\n', b'data: {"say": "b"}\n\n', b"data: [END]\n\n"


@pytest.mark.parametrize("pieces", [[A + END + B], [A + END, B], [A, END + B], [A, END, B]])
def test_nothing_is_read_after_the_end_mark(pieces: list[bytes]) -> None:
    said = reader()
    assert [event for piece in pieces for event in said.feed(piece)] == [TextDelta("a")]
    assert said.done
    assert list(said.finish()) == [ModelFinished("stop")]


def test_the_last_object_needs_no_line_end() -> None:
    said = reader()
    assert list(said.feed(A + B.rstrip() + b"\n\n" + END.rstrip())) == [TextDelta("a"), TextDelta("b")]
    assert list(said.finish()) == [ModelFinished("stop")]


def test_an_answer_that_is_done_is_not_read_to_its_end() -> None:
    said = reader()
    list(said.feed(END + b"data: broken"))
    assert list(said.finish()) == [ModelFinished("stop")]


def test_the_events_before_an_error_come_first() -> None:
    events = reader().feed(A + b"data: {}\n\n")
    assert next(events) == TextDelta("a")
    with pytest.raises(ModelResponseError, match=r"not part of a response: '\{\}'; check base_url") as caught:
        next(events)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("way", ["feed", "whole"])
@pytest.mark.parametrize("error_class", [AttributeError, KeyError, IndexError, TypeError, ValueError])
def test_an_object_without_an_expected_part_is_not_part_of_an_answer(error_class: type[Exception], way: str) -> None:
    class FailingReader(SaidReader):
        def read_event(self, wire: Wire) -> list[ModelEvent]:
            raise error_class("odd")

    said = FailingReader(Failures("acme"))
    with pytest.raises(ModelResponseError, match="not part of a response") as caught:
        list(said.feed(A)) if way == "feed" else said.whole(b'{"say": "a"}')
    assert type(caught.value.__cause__) is error_class


def test_an_object_that_is_nested_too_deeply_is_not_part_of_an_answer() -> None:
    with pytest.raises(ModelResponseError, match="not part of a response"):
        list(reader().feed(b"data: " + b'{"say":' * 100_000 + b"\n\n"))


def test_a_half_character_at_the_end_comes_out_replaced_before_the_last_events() -> None:
    said = reader()
    assert list(said.feed(A)) == [TextDelta("a")]
    assert not said.has_halves
    assert list(said.feed(rb'data: {"say": "b\ud83d"}' + b"\n\n" + END)) == [TextDelta("b")]
    assert said.has_halves
    assert list(said.finish()) == [TextDelta("\ufffd"), ModelFinished("stop")]


def test_halves_are_joined_across_objects_that_are_whole() -> None:
    said = reader()
    pieces = [rb'data: {"say": "\ud83d"}', rb'data: {"say": ""}', rb'data: {"say": "\ude00"}', b'data: {"say": "b"}']
    events = [event for piece in pieces for event in said.feed(piece + b"\n\n")]
    assert events == [TextDelta("\U0001f600"), TextDelta("b")]


@pytest.mark.parametrize(
    ("patience_s", "limit_s"), [(None, 1200.0), (5, 5)], ids=["ten times two minutes", "as configured"]
)
def test_a_server_may_send_comments_for_so_long(
    patience_s: float | None, limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PATIENCE_S == 1200
    said, now = reader(patience_s=patience_s), [100.0]
    monkeypatch.setattr(said.events, "_clock", lambda: now[0])
    list(said.feed(b": queued\n\n"))
    now[0] += limit_s
    list(said.feed(b": queued\n\n"))
    now[0] += 0.01
    with pytest.raises(NoEventError, match=f"no event in {limit_s:g} s") as caught:
        list(said.feed(b": queued\n\n"))
    assert caught.value.patience_s == limit_s


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), ("", ""), ('{"x": 1}', '{"x": 1}'), ({"x": "é"}, '{"x": "é"}'), ([], "[]")]
)
def test_arguments_are_text_however_a_server_sends_them(value: object, text: str) -> None:
    assert arguments_of(value) == text


def test_the_largest_count_fits_into_64_bits() -> None:
    assert count_of(2**63 - 1) == 2**63 - 1
    assert count_of(float("nan")) == 0
    assert count_of(float("inf")) == 0


@pytest.mark.parametrize("value", [True, False, None, "3", -1, [3]])
def test_only_a_positive_number_is_a_count(value: object) -> None:
    assert (count_of(value), count_of(3), count_of(3.0)) == (0, 3, 3)
