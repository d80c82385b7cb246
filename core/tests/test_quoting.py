"""Foreign texts in errors: short, in one line, and without the secrets that were sent."""

from __future__ import annotations

import json
import pickle
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.quoting import HIDDEN, SentSecrets, quote_text

KEY = "sk-" + "SECRET-1"


@given(st.lists(st.text(max_size=12) | st.just(KEY), max_size=6), st.integers(1, 80))
def test_what_is_shown_is_one_short_line_without_the_key(parts: list[str], limit: int) -> None:
    line = quote_text(" ".join(parts), KEY, limit)
    assert KEY not in line
    assert len(line) <= limit + 2
    assert "\n" not in line


def test_a_placeholder_for_a_key_is_a_word_like_any_other() -> None:
    assert quote_text("no key in EMPTY", "EMPTY") == "no key in EMPTY"


ODD_KEY = 'sk-"Quoted"\\/+%é-SECRET-42'  # with a form of its own in each encoding
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "capitals": str.upper,
    "small": str.lower,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON, in capitals": lambda key: json.dumps(key)[1:-1].upper(),
    "URL": lambda key: quote(key, safe=""),
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64, after one byte": lambda key: b64encode(b":" + key.encode()).decode(),
    "base64, after two bytes": lambda key: b64encode(b"u:" + key.encode()).decode(),
}


@pytest.mark.parametrize("before", ["", "bad ", "İİİ "], ids=["alone", "after a word", "after long small letters"])
@pytest.mark.parametrize("name", FORMS)
def test_no_piece_of_a_key_is_shown_however_a_server_writes_it(name: str, before: str) -> None:
    written = FORMS[name](ODD_KEY)
    for start in range(0, len(written) - 16, 4):  # a server may quote a part of it
        line = quote_text(f"{before}{written[start : start + 16]} is wrong", ODD_KEY)
        visible = line.replace("[key]", "\0")
        # The ends of base64 also depend on what is beside them.
        assert all(written[at : at + 8] not in visible for at in range(4, len(written) - 12)), line
        assert line.endswith("is wrong")


@pytest.mark.parametrize("repeated", ["tenant-0042-Ab", "TENANT-0042-AB"])
def test_the_value_of_any_header_is_hidden_in_any_case(repeated: str) -> None:
    secrets = SentSecrets(headers={"X-Tenant": "tenant-0042-Ab", "Accept": "application/json"})
    assert quote_text(f"no {repeated} for application/json", secrets) == "no [key] for application/json"


@given(st.integers(1, 60))
def test_a_key_at_the_place_where_a_text_is_cut_is_hidden_before_it_is_cut(limit: int) -> None:
    line = quote_text("x" * 20 + ODD_KEY + "y" * 20, ODD_KEY, limit)
    assert not any(ODD_KEY[:size] in line for size in range(3, len(ODD_KEY)))


def test_the_values_of_all_headers_are_hidden_wherever_they_are_repeated() -> None:
    secrets = SentSecrets(headers={"X-Tenant": "tenant 0042: Ab", "X-Team": "team of nine", "X-Short": "no"})
    said = quote_text("TEAM OF NINE of tenant 0042: Ab, not team of nine, no", secrets)
    assert said == "[key] of [key], not [key], no"
    assert quote_text("team of nine" * 3 + "-team of nine", secrets) == "[key]-[key]"
    spaced = SentSecrets(headers={"X-Team": "team  of nine"})
    assert quote_text("no team  of\nnine, team  of nine", spaced) == "no team of nine, [key]"
    assert quote_text(f"{MIXED_KEY}, {MIXED_KEY}", MIXED_KEY) == "[key], [key]"


def test_secrets_are_true_if_there_are_any() -> None:
    assert SentSecrets(MIXED_KEY)
    assert SentSecrets(headers={"X-Team": "team of nine"})
    assert not SentSecrets("", headers={"Accept": "application/json"})


@pytest.mark.parametrize("name", ["as it is", "JSON", "URL"])
def test_a_short_key_is_hidden_in_each_way_to_write_it(name: str) -> None:
    key = 'a"/b+c%'
    assert quote_text(f"no {FORMS[name](key)} here", key) == "no [key] here"


MIXED_KEY = "sk-Zq83bXw4Rk2LpV7Tn"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n  b", "a b"), ("x" * 500, "x" * 500), ("x" * 501, "x" * 500 + " …"),
        (f"key {MIXED_KEY}!", f"key {HIDDEN}!"), (f"key {MIXED_KEY.upper()}!", f"key {HIDDEN}!"),
        (f"key {MIXED_KEY[3:11]}!", f"key {HIDDEN}!"), (f"key {MIXED_KEY[3:10]}!", f"key {MIXED_KEY[3:10]}!"),
    ],
)  # fmt: skip
def test_a_foreign_text_is_quoted_in_a_line_without_the_key(text: str, shown: str) -> None:
    assert quote_text(text, MIXED_KEY) == quote_text(text, SentSecrets(MIXED_KEY)) == shown
    assert quote_text("abc", "", 2) == "ab …"


@pytest.mark.parametrize(
    ("headers", "text", "shown"),
    [
        ({"Authorization": "Bearer abcdef"}, "abcdef", HIDDEN), ({"Authorization": "Bearer abcde"}, "abcde", "abcde"),
        ({"X-Plain": "12345678"}, "12345678", HIDDEN), ({"X-Plain": "1234567"}, "1234567", "1234567"),
        ({"X-Plain": "1234567890123456"}, "12345678", HIDDEN), ({"X-Plain": "123456789012345"}, "12345678", "12345678"),
        ({"Accept": "application/json"}, "application/json", "application/json"),
        ({"X-Target": "http://host.example/v1"}, "no host.example", "no host.example"),
        ({"X-Target": "http://host.example/v1"}, "HTTP://host.example/v1!", f"{HIDDEN}!"),
        ({"X-Words": "many words in a row"}, "words in", "words in"),
        ({"user-agent": "jackfield-0.1.0-abcdef"}, "jackfield-0.1.0", "jackfield-0.1.0"),
        ({"X-Session": "abcdef"}, "abcdef", HIDDEN),
    ],
)  # fmt: skip
def test_headers_are_hidden_as_keys_or_as_a_whole(headers: dict[str, str], text: str, shown: str) -> None:
    secrets = SentSecrets(headers=headers)
    assert secrets.hide(text) == shown
    assert pickle.loads(pickle.dumps(secrets)).hide(text) == text
