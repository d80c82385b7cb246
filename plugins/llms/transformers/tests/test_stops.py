"""Stop texts: where they begin, the text ends, wherever it is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jackfield_transformers.stops import StopCutter

STOPS = st.lists(st.text("ab\n", max_size=4), max_size=3)
CUTS = st.lists(st.text("abc\n", max_size=5), max_size=20)


def expected(text: str, stops: list[str]) -> str:
    return text[: min((text.index(stop) for stop in stops if stop and stop in text), default=len(text))]


@given(CUTS, STOPS)
def test_the_text_ends_where_the_first_stop_text_begins(cut: list[str], stops: list[str]) -> None:
    cutter = StopCutter(stops)
    said = "".join([*map(cutter.feed, cut), cutter.finish()])
    text = "".join(cut)
    assert said == expected(text, stops)
    assert cutter.stopped == (said != text)


@given(CUTS, STOPS)
def test_only_what_may_begin_a_stop_text_waits(cut: list[str], stops: list[str]) -> None:
    cutter = StopCutter(stops)
    said, text = "", ""
    for piece in cut:
        said, text = said + cutter.feed(piece), text + piece
        if not cutter.stopped:
            waiting = text[len(said) :]
            assert waiting == "" or any(stop.startswith(waiting) and stop != waiting for stop in stops)
