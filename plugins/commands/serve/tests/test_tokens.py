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
    "header", ["", "Bearer", "Bearer ", ADA, f"Basic {ADA}", f"Bearer {ADA}x", f"Bearer {ADA[:-1]}", "Bearer \ud800"]
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
    with pytest.raises(ConfigError, match="no tokens found"):
        Tokens.read(file)
    with pytest.raises(ConfigError, match="cannot read token file"):
        Tokens.read(tmp_path / "none")


def test_a_line_with_more_than_two_words_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"bob {BOB}\nada lovelace {ADA}\n")
    with pytest.raises(ConfigError, match="only an owner and a token") as caught:
        Tokens.read(file)
    assert ADA not in str(caught.value)


def test_an_owner_needs_a_plain_name() -> None:
    with pytest.raises(ConfigError, match="owner of token 1"):
        Tokens([("../x", ADA)])


def test_tokens_are_not_kept_in_plain_text() -> None:
    tokens = Tokens([("ada", ADA)])
    assert ADA not in repr(tokens)
    assert ADA not in str(vars(tokens))


def test_sixteen_characters_are_enough() -> None:
    assert Tokens([("ada", "x" * 16)]).owner_of(f"Bearer {'x' * 16}") == "ada"


@pytest.mark.parametrize(
    ("owner", "is_taken"), [("a" * 64, True), ("a" * 65, False), ("a b", False), ("ada@x.y", True)]
)
def test_an_owner_has_at_most_64_plain_characters(owner: str, is_taken: bool) -> None:
    if is_taken:
        assert Tokens([(owner, ADA)]).owner_of(f"Bearer {ADA}") == owner
    else:
        with pytest.raises(ConfigError, match="must be 1 to 64 characters long and contain only"):
            Tokens([(owner, ADA)])


def test_the_token_at_fault_is_named_by_its_number_and_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^token 2 must consist of at least 16 ASCII characters"):
        Tokens([("", ADA), ("", "short")])
    file = tmp_path / "tokens"
    file.write_text(f"{ADA}\n  # a comment\nshort\n")
    with pytest.raises(ConfigError, match=r"tokens': token 2 must consist") as caught:
        Tokens.read(file)
    assert ADA not in str(caught.value)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="tokens' is not valid UTF-8"):
        Tokens.read(file)


@pytest.mark.parametrize("owner", ["ada", "bob", ""])
def test_a_token_that_is_listed_twice_is_refused_because_one_owner_would_see_the_runs_of_another(owner: str) -> None:
    with pytest.raises(ConfigError, match=r"^token 3 is listed twice: give each owner a separate token$"):
        Tokens([("ada", ADA), ("ada", BOB), (owner, ADA)])


def test_the_number_of_tokens_is_shown_and_two_tokens_have_two_owners() -> None:
    tokens = Tokens([("", ADA), ("", BOB)])
    assert repr(tokens) == "<Tokens: 2>"
    assert tokens.owner_of(f"Bearer {ADA}") != tokens.owner_of(f"Bearer {BOB}")
