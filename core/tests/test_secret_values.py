"""Values that count as secrets: by their names, by a user in an address, and by how random they look."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.secrets import is_secret, weakness_of
from jackfield.secrets._values import shows_no_user
from jackfield.secrets._weakness import is_common, looks_random

MIXED = "a1b2c3d4e5f6"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("api_key", "x", True), ("x-token", "x", True), ("monkey", "x", False), ("key_of", "x", False),
        ("PASSWORD", 5, True), ("token", None, False), ("url", "https://u@h/", True), ("api_key", "https://h/", False),
        ("dsn", "x", True), ("cookie", "x", True),
    ],
)  # fmt: skip
def test_a_setting_is_secret_by_its_name_or_a_user_in_its_address(name: str, value: Any, expected: bool) -> None:
    assert is_secret(name, value) is expected


@pytest.mark.parametrize(
    ("address", "no_user"),
    [
        ("https://h/", True), ("https://h:80/a@b", True), ("https://u@h/", False), ("https://u:a/b@h/", False),
        ("https://h/a@b", True), ("https://h:a/b", True),
    ],
)  # fmt: skip
def test_an_address_shows_a_user_before_an_at_sign(address: str, no_user: bool) -> None:
    assert shows_no_user(address) is no_user


@pytest.mark.parametrize(
    ("value", "is_named", "reason"),
    [
        ("Zq83bXw", True, "it has fewer than 8 characters"),
        ("Zq83bXw4", True, ""),
        ("abcdabcd", True, "it has fewer than 5 different characters"),
        ("abcdeabcde", True, "it consists of words and numbers"),
        ("sk-aaaaabbbbbccd", True, ""),
        ("hello-world-42", True, "it consists of words and numbers"),
        ("SampleProject", True, "it consists of words and numbers"),
        ("aBcDeFgHiJk", True, ""),
        ("node12-word34", False, "it consists of words and numbers"),
        ("node12-word34", True, ""),
        ("/srv/Zq83bXw4Rk2L", False, "it is a path or URL"),
        ("/srv/Zq83bXw4Rk2L", True, ""),
        ("https://Zq83bXw4Rk2L", False, "it is a path or URL"),
    ],
)
def test_a_weak_secret_has_a_reason(value: str, is_named: bool, reason: str) -> None:
    assert weakness_of(value, is_named=is_named) == reason


def test_long_words_are_not_common_and_mixed_pieces_look_random() -> None:
    assert is_common("correct horse")
    assert not is_common("correct horse battery staple")
    assert (looks_random(MIXED), looks_random(MIXED[:-1]), looks_random("a" * 20), looks_random("1" * 20)) == (
        True, False, False, False,
    )  # fmt: skip
