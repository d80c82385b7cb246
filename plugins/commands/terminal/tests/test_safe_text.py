"""What people write is shown as it is, and nothing in it steers the terminal."""

from __future__ import annotations

import io
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_terminal.safe_text import Terminal, shown_text

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x85\r\u202eevil\u2066\u200b\u2060\ufeff\u2028\U000e0041\x00b"
PRINTED_RAW = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


@pytest.mark.parametrize(
    "text", ["می‌خواهم", "क्‍ष", "👩‍👩‍👧", "❤️", "1️⃣ one", "#️⃣*️⃣", "葛󠄀", "naïve\tcafé\n你好　世界", "100 %"]
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert shown_text(text) == text


@pytest.mark.parametrize("text", ["ad\u200dmin", "read\ufe0f", "\u200d", "é\u200d\u200d\u200dx", "❤\ufe0f\ufe0e\ufe0f"])
def test_a_joiner_that_joins_nothing_is_shown(text: str) -> None:
    assert "\\u" in shown_text(text)


@given(st.text() | st.text(st.sampled_from(HOSTILE + "ab é")))
def test_no_text_has_an_order_in_it(text: str) -> None:
    for shown in (shown_text(text), shown_text(text, "é")):
        assert not PRINTED_RAW.search(shown)
        assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"]


@given(st.lists(st.text(st.sampled_from(HOSTILE + "ab é👩\u200d\ufe0f"), max_size=4), max_size=5))
def test_how_a_text_is_cut_does_not_matter(pieces: list[str]) -> None:
    # But for a carriage return before a line feed: the piece has gone when the other comes.
    pieces = [piece.replace("\r", "") for piece in pieces]
    whole, cut = io.StringIO(), io.StringIO()
    Terminal(whole).write("".join(pieces))
    terminal = Terminal(cut)
    for piece in pieces:
        terminal.write(piece)
    assert cut.getvalue() == whole.getvalue()


def test_a_terminal_joins_what_is_written_in_pieces_even_empty_ones() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    for piece in ("👩", "", "\u200d", "", "👧", "", "\n", "", "\u200d"):
        terminal.write(piece)
    assert stream.getvalue() == "👩\u200d👧\n\\u200d"
