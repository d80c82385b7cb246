"""Server-sent events are the same events however they are cut."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield_http import SSE_END, DataLineDecoder, SSEDecoder, sse
from jackfield_http.sse import NoEventError, StreamTooLongError

payloads = st.lists(
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=5
)


def decoded(pieces: Sequence[bytes]) -> list[bytes]:
    decoder = SSEDecoder()
    return [data for piece in [*pieces, SSE_END] for data in decoder.feed(piece)]


def cut(body: bytes, offsets: Sequence[int]) -> list[bytes]:
    places = sorted({offset % (len(body) + 1) for offset in offsets})
    return [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]


@given(payloads, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 10_000), max_size=8))
def test_cutting_the_bytes_elsewhere_never_changes_the_events(
    payloads: list[str], newline: str, offsets: list[int]
) -> None:
    body = "".join(f": ping{newline}{newline}data: {payload}{newline}{newline}" for payload in payloads).encode()
    assert decoded([codecs.BOM_UTF8 + body]) == decoded(cut(codecs.BOM_UTF8 + body, offsets)) == decoded([body])
    whole = decoded([body])
    assert whole == [payload.encode().strip() for payload in payloads]
    assert decoded(cut(body, offsets)) == whole
    assert decoded([bytes([byte]) for byte in body]) == whole


@given(
    st.lists(st.lists(payloads.map("".join).filter(str.strip), min_size=1, max_size=3), max_size=4),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 10_000), max_size=8),
)
@example([["a", "b"]], "\r\n", [8])
def test_cutting_inside_a_line_end_never_ends_an_event(
    events: list[list[str]], newline: str, offsets: list[int]
) -> None:
    body = "".join(newline.join([*(f"data: {line}" for line in lines), "", ""]) for lines in events).encode()
    whole = ["\n".join(line.strip(" \t\x0b\x0c") for line in lines).encode() for lines in events]
    assert decoded([body]) == whole
    assert decoded(cut(body, offsets)) == whole
    assert decoded([bytes([byte]) for byte in body]) == whole


def test_an_event_of_several_lines_of_data_is_one_text() -> None:
    assert decoded([b"event: message\nid: 7\ndata: a\ndata:b\n\ndata: c\n\n"]) == [b"a\nb", b"c"]


def test_the_last_event_needs_no_blank_line() -> None:
    assert decoded([b"data: 1\n\ndata: [DONE]"]) == [b"1", b"[DONE]"]


def test_comments_and_blank_lines_are_no_events() -> None:
    assert decoded([b":\n\n\n\n: keep-alive\r\n\r\nretry: 3\n\n"]) == []


def test_a_line_in_many_pieces_is_joined_once() -> None:
    # Joining at every piece would copy 50,000 times half of the line: minutes.
    decoder = SSEDecoder()
    for _ in range(50_000):
        assert decoder.feed(b"x" * 200) == []
    assert decoder.feed(b"\n\n") == []  # the line has no field: it is no event
    pieces = [b"data: ", *[b"y" * 200] * 50_000, b"\n\n"]
    assert decoded(pieces) == [b"y" * 10_000_000]


def test_an_event_is_there_when_its_line_ends_by_a_carriage_return() -> None:
    # Not only when the next byte says that no line feed follows: that may be the next event's, and seconds later.
    decoder = SSEDecoder()
    assert [decoder.feed(piece) for piece in (b"data: 1\r", b"\r", b"data: 2\r\n\r", b"\ndata: 3\n\n")] == [
        [],
        [b"1"],
        [b"2"],
        [b"3"],
    ]


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        ([b"data: a\r", b"\n\n"], [[], [b"a"]]),
        ([b"data: a\r", b"", b"\ndata: b\r\n\r\n"], [[], [], [b"a\nb"]]),
        ([b"data: a\rdata: b\n\n"], [[b"a\nb"]]),
        ([b"data: a\n \ndata: b\n\n"], [[b"a\nb"]]),  # a line with a space is not blank
    ],
)
def test_only_a_blank_line_ends_an_event_whatever_ends_its_lines(
    pieces: list[bytes], events: list[list[bytes]]
) -> None:
    for first in ([], [b"data: 0\n\n"]):
        decoder = SSEDecoder()
        assert [decoder.feed(piece) for piece in [*first, *pieces]] == [*([[b"0"]] if first else []), *events]


# --- bounds ---


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("make", [SSEDecoder, DataLineDecoder])
def test_what_is_no_event_is_waited_for_so_long_and_no_longer(make: type[SSEDecoder]) -> None:
    clock = Clock()
    decoder = make(patience_s=60, clock=clock)
    for second in range(0, 600, 15):
        clock.now_s = second
        decoder.feed(b": queued\n\n")
        if second % 60 == 45:
            assert decoder.feed(b"data: 1\n\n") == [b"1"]

    def drip() -> None:
        for second in range(600, 700, 15):
            clock.now_s = second
            decoder.feed(b"data: half of a line that comes drop by drop")

    with pytest.raises(NoEventError):
        drip()
    assert clock.now_s == 675


@pytest.mark.parametrize("make", [SSEDecoder, DataLineDecoder])
@pytest.mark.parametrize("piece", [b"data: 1\n\n", b"data: 1\n\ndata: 2\n\n", b"id: 1\ndata: 1\n\n"])
def test_patience_begins_again_with_each_event(make: type[SSEDecoder], piece: bytes) -> None:
    clock = Clock()
    decoder = make(patience_s=60, clock=clock)
    assert decoder.feed(b"data: 0\n\n") == [b"0"]
    for _ in range(3):
        decoder.feed(b": queued\n")
        clock.now_s += 60
        assert decoder.feed(piece)
        clock.now_s += 60


@pytest.mark.parametrize("make", [SSEDecoder, DataLineDecoder])
def test_a_line_and_a_stream_have_a_longest_size(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], SSEDecoder]
) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    monkeypatch.setattr(sse, "MAX_STREAM_BYTES", 5000)
    with pytest.raises(StreamTooLongError, match="a line of more than 1,000 bytes"):
        _feed_for_ever(make(), b"x" * 100)
    with pytest.raises(StreamTooLongError, match="a stream of more than 5,000 bytes"):
        _feed_for_ever(make(), b"data: 1\n\n")


def test_an_event_of_many_lines_has_a_longest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    with pytest.raises(StreamTooLongError, match="an event of more than 1,000 bytes"):
        _feed_for_ever(SSEDecoder(), b"data: 1\n")


@pytest.mark.parametrize("size", [1000, 1001])
def test_an_event_and_a_stream_of_exactly_the_longest_size_are_read(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    monkeypatch.setattr(sse, "MAX_STREAM_BYTES", 1000)
    pieces = [b"x" * 600, b"y" * (size - 600)]
    for make in (SSEDecoder, DataLineDecoder):
        decoder = make()
        if size > 1000:
            with pytest.raises(StreamTooLongError):
                [decoder.feed(piece) for piece in pieces]
        else:
            assert [decoder.feed(piece) for piece in pieces] == [[], []]


def test_the_size_of_lines_and_events_begins_again_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    decoder = SSEDecoder()
    for _ in range(9):
        assert decoder.feed(b"data: " + b"x" * 50) == []
        assert decoder.feed(b"\ndata: " + b"y" * 60 + b"\n\n") == [b"x" * 50 + b"\n" + b"y" * 60]


def test_the_limits_are_these() -> None:
    assert (sse.MAX_EVENT_BYTES, sse.MAX_STREAM_BYTES, sse.PATIENCE, sse.PATIENCE_S) == (32e6, 300e6, 10, 1200)


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"data:  a \n\n", [b"a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"xdata: a\n\n", []),
        (b"data\n\n", []),
        (b"data:\n\n", [b""]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\nid: 1\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"\xef\xbbdata: a\n\n", []),
    ],
)
def test_an_event_is_read_alike_as_the_first_and_as_a_later_one(body: bytes, data: list[bytes]) -> None:
    assert decoded([body]) == data
    later = SSEDecoder()
    assert later.feed(b"data: 1\n\n") == [b"1"]
    if not body.startswith(b"\xef"):  # a byte order mark begins a stream only
        assert later.feed(body) == data


@pytest.mark.parametrize(
    ("before", "data"),
    [(b"data: 1", b"1data: 2"), (b"data: 1\n", b"1\n2"), (b"data: 1\r", b"1\n2"), (b"id: 1\n", b"2")],
)
def test_a_piece_that_is_an_event_by_itself_continues_what_was_begun(before: bytes, data: bytes) -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: 0\n\n") == [b"0"]
    assert decoder.feed(before) == []
    assert decoder.feed(b"data: 2\n\n") == [data]


def test_a_byte_order_mark_in_the_middle_of_a_stream_is_part_of_its_line() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: 1\n\n") == [b"1"]
    assert decoder.feed(b"\xef\xbb\xbfdata: 2\n\n") == []


def _feed_for_ever(decoder: SSEDecoder, piece: bytes) -> None:
    for _ in range(100_000):
        decoder.feed(piece)


# --- a line is an event ---


def lines_of(pieces: Sequence[bytes]) -> list[bytes]:
    decoder = DataLineDecoder()
    return [data for piece in pieces for data in decoder.feed(piece)] + decoder.end()


@given(payloads, st.sampled_from(["\n", "\r\n", "\n\n", "\r"]), st.lists(st.integers(0, 10_000), max_size=8))
def test_lines_of_data_are_events_with_and_without_blank_lines(
    payloads: list[str], newline: str, offsets: list[int]
) -> None:
    body = "".join(f"id:1{newline}:HTTP_STATUS/200{newline}data:{payload}{newline}" for payload in payloads).encode()
    assert lines_of(cut(body, offsets)) == [data for payload in payloads if (data := payload.encode().strip())]


def test_the_status_of_an_event_is_the_one_in_its_comment() -> None:
    decoder = DataLineDecoder()
    assert decoder.status is None
    decoder.feed(b"id:1\n:HTTP_STATUS/200\ndata:{}\n\nid:2\n:HTTP_STATUS/429\nda")
    assert decoder.status == 429
    assert decoder.feed(b"ta:{}\n") == [b"{}"]
    assert decoder.status == 429
    decoder.feed(b"data: :HTTP_STATUS/500\n\n")
    assert decoder.status == 429
    decoder.feed(b":HTTP_STATUS/400\n")
    assert decoder.status == 400
    decoder.feed(b":HTTP_STATUS/x\n")
    assert decoder.status is None
