"""Tokens as Qwen 1 to 3 count them, beside the SDK's own tokenizer."""

from __future__ import annotations

import logging
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield_bpe import LONGEST
from jackfield_dashscope.tokenizer import QwenTokenizer, _encoding, vocabulary_path
from jackfield_testkit.forks import output_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.text(
    st.sampled_from("ab Z9你好，。\n\r\t'<|>é\u0301\u00a0"), max_size=200
)


@pytest.fixture(scope="module")
def qwen() -> QwenTokenizer:
    return QwenTokenizer()


@pytest.mark.parametrize(
    ("text", "count"),
    [(" ".join("a" * 100), 100), ("你好，世界", 3), ("", 0), ("12345", 5), ("<|im_start|>", 6), ("<|im_end|>", 6)],
)
def test_counts_are_those_of_the_vocabulary(qwen: QwenTokenizer, text: str, count: int) -> None:
    assert qwen.count(text) == count


@pytest.fixture(scope="module")
def sdks() -> Any:
    """The SDK's own tokenizer, which takes long to make."""
    from dashscope.tokenizers import get_tokenizer

    return get_tokenizer("qwen-turbo")


@given(TEXTS)
def test_ids_are_those_of_the_sdk(qwen: QwenTokenizer, sdks: Any, text: str) -> None:
    assert qwen.encode(text) == sdks.encode(text, allowed_special=set(), disallowed_special=())


@given(TEXTS)
def test_decoding_gives_the_normalised_text_back(qwen: QwenTokenizer, text: str) -> None:
    assert qwen.decode(qwen.encode(text)) == unicodedata.normalize("NFC", text)


def test_a_text_cannot_write_a_control_token_but_one_can_be_decoded(qwen: QwenTokenizer) -> None:
    assert max(qwen.encode("<|endoftext|><|im_start|><|im_end|>")) < 151_643
    assert qwen.decode([151_644, 151_645]) == "<|im_start|><|im_end|>"
    with pytest.raises(ValueError, match="does not contain this token"):
        qwen.decode([10_000_000])


@given(TEXTS, st.integers(0, 60))
def test_a_cut_is_a_beginning_that_fits_and_cannot_be_one_character_longer(
    qwen: QwenTokenizer, text: str, most: int
) -> None:
    cut = qwen.cut(text, most)
    assert text.startswith(cut)
    assert qwen.count(cut) <= most
    assert cut == text or qwen.count(text[: len(cut) + 1]) > most


@pytest.mark.parametrize("text", [" " * 400_000 + "a", "a" * 150_000, "\ud83d" * 10, "\0" * 1000, "好" * 150_000])
def test_no_text_is_too_long_or_too_odd(qwen: QwenTokenizer, text: str) -> None:
    assert qwen.count(text) == len(qwen.encode(text)) > 0
    assert qwen.count(qwen.cut(text, 50)) == 50 or qwen.count(text) < 50


def test_a_long_text_of_lines_has_the_ids_of_the_whole(qwen: QwenTokenizer) -> None:
    line = "In the year 1789, Müller's lines had 3 words; 你好，世界。\n"
    text = line * (2 * LONGEST // len(line) + 10)
    assert len(text) > 2 * LONGEST
    assert qwen.encode(text) == qwen.encoding.encoding.encode_ordinary(text)


def test_all_instances_share_one_vocabulary(qwen: QwenTokenizer) -> None:
    assert QwenTokenizer().encoding is qwen.encoding


def test_making_and_using_one_does_not_import_the_sdk() -> None:
    code = (
        "import sys\n"
        "from jackfield_dashscope.tokenizer import QwenTokenizer\n"
        "made = QwenTokenizer()\n"
        "assert 'tiktoken' not in sys.modules\n"
        "assert made.count('hello world') == 2\n"
        "assert 'dashscope' not in sys.modules\n"
    )
    output_of(code)


@pytest.mark.parametrize("place", ["dashscope/resources/qwen.tiktoken", "elsewhere/qwen.tiktoken", ""])
def test_the_vocabulary_is_found_wherever_the_sdk_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    about = tmp_path / "dashscope-9.9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: dashscope\nVersion: 9.9\n")
    (about / "RECORD").write_text("".join(f"{name},,\n" for name in ("dashscope/__init__.py", place) if name))
    if place:
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_bytes(b"")
    monkeypatch.syspath_prepend(tmp_path)
    if place:
        assert vocabulary_path() == tmp_path / place
    else:
        with pytest.raises(ConfigError, match=r"dashscope 9\.9 does not contain qwen\.tiktoken"):
            vocabulary_path()


def test_a_vocabulary_that_is_another_is_used_and_said_to_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    changed = tmp_path / "qwen.tiktoken"
    changed.write_bytes(b"".join(vocabulary_path().read_bytes().splitlines(keepends=True)[:-1]))
    with caplog.at_level(logging.WARNING):
        assert _encoding(changed).count("hello world") == 2
    assert str(changed) in caplog.text
