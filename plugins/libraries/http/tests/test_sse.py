"""Server-sent events are the same events however they are cut."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield_http import SSE_END, DataLineDecoder, SSEDecoder

payloads = st.lists(
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=5
)


def decoded(pieces: Sequence[bytes]) -> list[bytes]:
    decoder = SSEDecoder()
    return [data for piece in [*pieces, SSE_END] for data in decoder.feed(piece)]


def cut(body: bytes, offsets: Sequence[int]) -> list[bytes]:
    places = sorted({offset % (len(body) + 1) for offset in offsets})
    return [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]


@settings(max_examples=60)
@given(payloads, st.sampled_from(["\n", "\r\n"]), st.lists(st.integers(0, 10_000), max_size=8))
def test_cutting_the_bytes_elsewhere_never_changes_the_events(
    payloads: list[str], newline: str, offsets: list[int]
) -> None:
    body = "".join(f": ping{newline}{newline}data: {payload}{newline}{newline}" for payload in payloads).encode()
    whole = decoded([body])
    assert whole == [payload.encode().strip() for payload in payloads]
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


# --- a line is an event ---


def lines_of(pieces: Sequence[bytes]) -> list[bytes]:
    decoder = DataLineDecoder()
    return [data for piece in pieces for data in decoder.feed(piece)] + decoder.end()


@settings(max_examples=60)
@given(payloads, st.sampled_from(["\n", "\r\n", "\n\n"]), st.lists(st.integers(0, 10_000), max_size=8))
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
