"""Any text is encoded as the whole of it would be, and cut where it must be."""

from __future__ import annotations

import sys
import unicodedata

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

import jackfield_bpe.safe
from jackfield_bpe import LONGEST, SafeEncoding

WORDS = st.sampled_from(
    [
        "the",
        " weather",
        "don't",
        "'s",
        "天气",
        "，",
        "。",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "12",
        "345",
        "_",
        "é",
        "e\u0301",
        "🙂",
        "()",
        ", ",
        ".",
        "<|im_end|>",
        "x" * 9,
        "\u200d",
        "/",
        "-",
        "ﬁ",
    ]
)
# What is given at once in properties: room for two blocks. Where parts end is decided in the same way at any length.
PART = 9_000
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=30).map("".join))


@given(text=TEXTS)
def test_a_text_has_the_tokens_that_tiktoken_gives_it(
    safe: SafeEncoding, encoding: tiktoken.Encoding, text: str
) -> None:
    assert safe.encode(text) == encoding.encode_ordinary(text)
    assert safe.count(text) == len(encoding.encode_ordinary(text))
    assert safe.decode(safe.encode(text)) == text


@settings(max_examples=settings().max_examples // 2)
@given(text=TEXTS.filter(lambda text: len(text) > 5), more=TEXTS, offset=st.integers(0, 40))
def test_a_long_text_has_the_tokens_of_the_whole(
    safe: SafeEncoding, encoding: tiktoken.Encoding, text: str, more: str, offset: int
) -> None:
    # Every part ends at another place of these words, none of which is a run of nothing but spaces.
    long = ("Tea, " + text + " and so on: " + more + "!") * ((PART * 2 + offset) // (len(text) + len(more) + 18))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jackfield_bpe.safe, "LONGEST", PART)
        assert safe.encode(long) == encoding.encode_ordinary(long)
        assert safe.count(long) == len(encoding.encode_ordinary(long))


@pytest.mark.parametrize(
    "text", [" ", "a", "数", "🙂", "\n", "\0", "1", "!", "a\u0301", "\ufffd", "ab ", "\u3000", "_"]
)
def test_any_number_of_anything_is_counted_cut_and_comes_back(safe: SafeEncoding, text: str) -> None:
    long = text * (3 * LONGEST // len(text)) + "a"
    tokens = safe.encode(long)
    assert len(tokens) == safe.count(long)
    assert safe.decode(tokens) == long
    start = safe.cut(long, 1000)
    assert long.startswith(start)
    assert safe.count(start) <= 1000 < safe.count(long[: len(start) + 1])


def test_what_looks_like_a_control_token_is_text(safe: SafeEncoding, encoding: tiktoken.Encoding) -> None:
    assert encoding.encode("<|im_end|>", allowed_special="all") == [encoding.n_vocab - 1]
    assert encoding.n_vocab - 1 not in safe.encode("a <|im_end|> b" * 10_000)


@given(
    before=st.text(max_size=5),
    half=st.sampled_from(["\ud83d", "\ude00", "\udfff", "\ud83d\ude00"]),
    after=st.text(max_size=5),
)
def test_half_a_surrogate_pair_is_the_replacement_character(
    safe: SafeEncoding, before: str, half: str, after: str
) -> None:
    text, told = before + half + after, before + "\ufffd" * len(half) + after
    assert safe.encode(text) == safe.encode(told)
    assert safe.count(text) == safe.count(told)
    assert safe.decode(safe.encode(text)) == told
    for most in (1, 2, 3):
        assert safe.cut(text, most) == text[: len(safe.cut(told, most))]


@given(text=TEXTS, most=st.integers(-1, 30))
def test_a_text_is_cut_where_one_character_more_would_be_too_much(safe: SafeEncoding, text: str, most: int) -> None:
    start = safe.cut(text, most)
    assert text.startswith(start)
    assert safe.count(start) <= max(most, 0)
    assert start == text or most < 1 or safe.count(text[: len(start) + 1]) > most


@settings(max_examples=settings().max_examples // 2)
@given(text=TEXTS.filter(bool), most=st.integers(1, 3 * PART))
def test_a_long_text_is_cut_there_too(safe: SafeEncoding, text: str, most: int) -> None:
    long = text * (PART * 5 // 2 // len(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jackfield_bpe.safe, "LONGEST", PART)
        start = safe.cut(long, most)
        assert long.startswith(start)
        assert safe.count(start) <= most
        assert start == long or safe.count(long[: len(start) + 1]) > most


def test_a_long_text_is_not_encoded_to_cut_off_its_beginning(encoding: tiktoken.Encoding) -> None:
    counted = Counting(encoding)
    assert SafeEncoding(counted).cut("The weather changes. " * 100_000, 50)  # type: ignore[arg-type] - it does what is asked of it
    assert counted.characters < 20_000


class Counting:
    """Counts what tiktoken is given."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self.encoding = encoding
        self.characters = 0

    def encode_ordinary(self, text: str) -> list[int]:
        self.characters += len(text)
        return self.encoding.encode_ordinary(text)

    def decode_tokens_bytes(self, tokens: list[int]) -> list[bytes]:
        return self.encoding.decode_tokens_bytes(tokens)


@given(text=TEXTS, most=st.integers(1, 20))
def test_a_text_may_be_normalised_first(encoding: tiktoken.Encoding, text: str, most: int) -> None:
    safe = SafeEncoding(encoding, normal_form="NFC")
    composed = unicodedata.normalize("NFC", text)
    assert safe.encode(text) == encoding.encode_ordinary(composed)
    assert safe.decode(safe.encode(text)) == composed
    start = safe.cut(text, most)
    assert text.startswith(start)
    assert safe.count(start) <= most
    assert start == text or safe.count(text[: len(start) + 1]) > most


@pytest.mark.parametrize("text", ["e\u0301", "tea e\u0301", "e\u0301 tea"])
def test_a_text_that_fits_is_not_cut_because_it_is_normalised(encoding: tiktoken.Encoding, text: str) -> None:
    safe = SafeEncoding(encoding, normal_form="NFC")
    assert safe.cut(text, safe.count(text)) == text
    assert safe.cut(text, safe.count(text) + 1) == text


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_long_word_is_not_split_where_the_break_before_it_is_far_away(
    safe: SafeEncoding, encoding: tiktoken.Encoding, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    monkeypatch.setattr(jackfield_bpe.safe, "LONGEST", PART)
    long = "tea " + "the" * (PART // 3 - 1) + "weather"[:offset]
    for text in (long, long + " and more. " * 9):
        assert len(text) > PART - 3
        assert safe.encode(text) == encoding.encode_ordinary(text)


@pytest.mark.parametrize("tokens", [[-1], [2**40], [10**6], [0, 10**6]])
def test_a_token_that_is_not_there_is_told(safe: SafeEncoding, tokens: list[int]) -> None:
    with pytest.raises(ValueError, match="'small' does not contain this token"):
        safe.decode(tokens)


def test_a_character_that_was_cut_is_the_replacement_character(safe: SafeEncoding) -> None:
    assert safe.decode(safe.encode("🙂")[:1]) == "\ufffd"


def test_importing_it_does_not_import_tiktoken() -> None:
    assert "tiktoken" not in vars(sys.modules["jackfield_bpe.safe"])
    assert jackfield_bpe.safe.LONGEST == 100_000
