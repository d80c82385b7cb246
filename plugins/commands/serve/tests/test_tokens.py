"""Tokens, and their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield.errors import ConfigError
from jackfield_serve.tokens import Tokens

ADA, BOB = "ada-Zq83bXw4Rk2LpV7Tn", "bob-Zq83bXw4Rk2LpV7Tn"


def test_each_token_has_its_owner_and_one_without_a_name_an_owner_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# comment\n\nada {ADA}\n{BOB}\n")
    tokens = Tokens.read(file)
    assert tokens.owner_of(f"Bearer {ADA}") == "ada"
    assert tokens.owner_of(f"bearer {ADA} ") == "ada"
    owner = tokens.owner_of(f"Bearer {BOB}")
    assert owner is not None
    assert owner.startswith("token-")
    assert BOB not in owner


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", ADA, f"Basic {ADA}", f"Bearer {ADA}x", f"Bearer {ADA[:-1]}"]
)
def test_any_other_header_has_no_owner(header: str) -> None:
    assert Tokens([("ada", ADA)]).owner_of(header) is None


@pytest.mark.parametrize("token", ["", "short", "a b" * 10, "é" * 20, "x" * 15, "tab\t" * 10])
def test_a_token_that_is_too_weak_or_cannot_be_sent_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Tokens([("", token)])
    assert not token or token not in str(caught.value)


def test_a_file_without_tokens_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# nothing\n")
    with pytest.raises(ConfigError, match="no token"):
        Tokens.read(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        Tokens.read(tmp_path / "none")


def test_a_line_with_more_than_two_words_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"ada lovelace {ADA}\n")
    with pytest.raises(ConfigError, match="more than an owner and a token") as caught:
        Tokens.read(file)
    assert ADA not in str(caught.value)


def test_an_owner_needs_a_plain_name() -> None:
    with pytest.raises(ConfigError, match="owner of token 1"):
        Tokens([("../x", ADA)])


def test_tokens_are_not_kept_in_plain_text() -> None:
    tokens = Tokens([("ada", ADA)])
    assert ADA not in repr(tokens)
    assert ADA not in str(vars(tokens))
