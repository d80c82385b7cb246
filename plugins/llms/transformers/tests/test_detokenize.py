"""Text from tokens: certain as early as can be, and never half of a character."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield_transformers.detokenize import REPLACEMENT, TokenDecoder

TEXTS = st.text(alphabet=st.sampled_from("aé 录音🙂\u0301x\n"), max_size=60)
BYTES = st.lists(st.integers(0, 255), max_size=80)


def as_bytes(tokens: Sequence[int]) -> str:
    """A vocabulary of bytes, as byte-level tokenizers read it."""
    return bytes(tokens).decode("utf-8", "replace")


def with_fallback(tokens: Sequence[int]) -> str:
    """The same, but that one wrong byte spoils the whole run of bytes, as with SentencePiece's byte fallback. Tokens
    from 256 on are words, which begin with a space, except for the first one."""
    runs: list[tuple[bool, list[int]]] = []
    for token in tokens:
        if runs and runs[-1][0] == (token < 256):
            runs[-1][1].append(token)
        else:
            runs.append((token < 256, [token]))
    out = ""
    for are_bytes, run in runs:
        if not are_bytes:
            out += "".join(f" w{token}" for token in run)
            continue
        try:
            out += bytes(run).decode("utf-8")
        except UnicodeDecodeError:
            out += REPLACEMENT * len(run)
    return out.removeprefix(" ")


def pieces(decode, tokens):  # type: ignore[no-untyped-def]
    decoder = TokenDecoder(decode)
    return [*map(decoder.feed, tokens), decoder.finish()]


@given(TEXTS)
def test_a_character_comes_whole_and_with_its_last_byte(text: str) -> None:
    made = pieces(as_bytes, text.encode())
    assert "".join(made) == text
    assert not any(REPLACEMENT in piece for piece in made)
    said = "".join(made[: len(text.encode())])
    assert said == text  # nothing waits for the end


@given(BYTES)
@settings(max_examples=settings().max_examples * 3)
def test_whatever_the_bytes_are_the_text_is_that_of_all_of_them(tokens: list[int]) -> None:
    assert "".join(pieces(as_bytes, tokens)) == as_bytes(tokens)


@given(st.lists(TEXTS | st.integers(256, 300), max_size=12))
def test_words_and_bytes_mixed_are_the_text_of_all_of_them(parts: list[str | int]) -> None:
    tokens = [token for part in parts for token in (part.encode() if isinstance(part, str) else [part])]
    assert "".join(pieces(with_fallback, tokens)) == with_fallback(tokens)


def test_bytes_that_never_become_a_character_are_not_held_for_ever() -> None:
    decoder = TokenDecoder(as_bytes)
    said = "".join(decoder.feed(0xFF) for _ in range(50))
    assert len(said) > 40


def test_each_token_is_decoded_a_bounded_number_of_times() -> None:
    sizes = []

    def counting(tokens: Sequence[int]) -> str:
        sizes.append(len(tokens))
        return as_bytes(tokens)

    text = "录音室 🙂 cable " * 100
    assert "".join(pieces(counting, text.encode())) == text
    assert max(sizes) < 24


def test_after_eight_tokens_without_a_character_all_but_three_open_bytes_are_said() -> None:
    decoder = TokenDecoder(as_bytes)
    assert [decoder.feed(0xFF) for _ in range(9)] == [*[""] * 8, REPLACEMENT * 6]
    # A decoder may replace all open bytes by one sign.
    decoder = TokenDecoder(lambda tokens: "a" * len(tokens) + REPLACEMENT)
    assert [decoder.feed(0) for _ in range(9)] == [*[""] * 8, "a" * 9]
