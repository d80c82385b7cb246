"""Numbers are told apart by what their standards say: lengths, schemes and check digits."""

from __future__ import annotations

import string
from collections.abc import Callable

import pytest

from jackfield_redaction.checksums import iban_length, is_card, is_cn_id, is_iban
from jackfield_redaction.config import ALL_KINDS

Mark = Callable[..., str]

# The registry of ISO 13616, as it is printed: a country, and the length of its accounts' numbers.
REGISTRY = """
NO15 BE16 DK18 FI18 FK18 FO18 GL18 NL18 SD18 MK19 SI19 AT20 BA20 EE20 KZ20 LT20 LU20 MN20 XK20 CH21 HR21 LI21
LV21 BG22 BH22 CR22 DE22 GB22 GE22 IE22 ME22 RS22 VA22 AE23 GI23 IL23 IQ23 OM23 SO23 TL23 AD24 CZ24 ES24 MD24
PK24 RO24 SA24 SE24 SK24 TN24 VG24 LY25 PT25 ST25 IS26 TR26 BI27 DJ27 FR27 GR27 IT27 MC27 SM27 AL28 AZ28 BY28
CY28 DO28 GT28 HU28 LB28 NI28 PL28 SV28 BR29 EG29 PS29 QA29 UA29 JO30 KW30 MU30 YE30 MT31 SC31 LC32 RU33
"""
IBANS = REGISTRY.split()


def iban(country: str, length: int) -> str:
    """A number with valid check digits."""
    body = ("7A3B" * 9)[: length - 4]
    rest = int("".join(str(int(character, 36)) for character in f"{body}{country}00")) % 97
    return f"{country}{98 - rest:02}{body}"


def luhn(beginning: str, length: int) -> str:
    """A number with a valid check digit, by doubling every second digit from the right."""
    digits = [int(digit) for digit in beginning.ljust(length - 1, "1")]
    doubled = [digit * 2 if number % 2 == 0 else digit for number, digit in enumerate(reversed(digits))]
    total = sum(value // 10 + value % 10 for value in doubled)
    return "".join(map(str, digits)) + str(-total % 10)


def test_each_country_has_the_length_of_the_registry() -> None:
    known = {entry[:2]: int(entry[2:]) for entry in IBANS}
    letters = string.ascii_uppercase
    assert {one + two: iban_length(one + two) for one in letters for two in letters if iban_length(one + two)} == known


@pytest.mark.parametrize("entry", IBANS)
def test_an_account_of_each_country_is_found_and_a_wrong_one_is_not(mark: Mark, entry: str) -> None:
    country, length = entry[:2], int(entry[2:])
    number = iban(country, length)
    assert is_iban(number)
    assert not is_iban(number[:-1])
    assert not is_iban(number + "1")
    wrong = number[:-1] + ("4" if number[-1] != "4" else "5")
    assert not is_iban(wrong)
    assert [pair for pair in range(2, 99) if is_iban(f"{country}{pair:02}{number[4:]}")] == [int(number[2:4])]
    assert mark(f"to {number}, please", kinds=["iban"]) == f"to ‹iban:{number}›, please"
    assert mark(wrong, kinds=["iban"]) == wrong


@pytest.mark.parametrize(
    ("first", "last", "lengths"),
    [
        (2200, 2204, {16}),
        (2221, 2720, {16}),
        (3000, 3059, {14}),
        (3400, 3499, {15}),
        (3528, 3589, {16}),
        (3600, 3699, {14}),
        (3700, 3799, {15}),
        (3800, 3999, {14}),
        (4000, 4999, {16, 19}),
        (5018, 5018, {16}),
        (5020, 5020, {16}),
        (5038, 5038, {16}),
        (5100, 5599, {16}),
        (6011, 6011, {16, 19}),
        (6200, 6299, {16, 17, 18, 19}),
        (6304, 6304, {16}),
        (6440, 6599, {16, 19}),
        (6759, 6763, {16}),
    ],
)
def test_each_scheme_has_its_beginnings_and_lengths(first: int, last: int, lengths: set[int]) -> None:
    for beginning in (first, (first + last) // 2, last):
        assert {length for length in range(12, 21) if is_card(luhn(str(beginning), length))} == lengths
    number = luhn(str(first), min(lengths))
    for digit in string.digits.replace(number[-1], ""):
        assert not is_card(number[:-1] + digit)


@pytest.mark.parametrize(
    "beginning",
    [2199, 2205, 2220, 2721, 2999, 3060, 3399, 3500, 3527, 3590, 5000, 5017, 5019, 5021, 5037, 5039, 5099, 5600, 6010,
     6012, 6199, 6300, 6303, 6305, 6439, 6600, 6758, 6764, 1000, 7000, 8000, 9000],
)  # fmt: skip
def test_a_number_outside_of_all_schemes_is_no_card(beginning: int) -> None:
    assert not any(is_card(luhn(str(beginning), length)) for length in range(12, 21))


def cn_id(body: str) -> str:
    """An identity number of 17 digits with its check character, by ISO 7064 mod 11-2."""
    rest = 0
    for digit in body:
        rest = (rest + int(digit)) * 2 % 11
    return body + "0123456789X"[(12 - rest) % 11]


@pytest.mark.parametrize(
    ("body", "is_one"),
    [
        ("11010519491231002", True),
        ("65432919761122987", True),
        ("81010520000229002", True),
        ("91010519491231002", True),
        ("71010519491231002", False),
        ("01010519491231002", False),
        ("11010519000101002", True),
        ("11010518991231002", False),
        ("11010520991231002", True),
        ("11010521000101002", False),
        ("11010519490229002", False),
        ("11010519491301002", False),
        ("11010519491200002", False),
    ],
)
def test_an_identity_number_has_a_region_a_birthday_and_a_check_character(body: str, is_one: bool) -> None:
    number = cn_id(body)
    assert is_cn_id(number) is is_one
    assert is_cn_id(number.lower()) is is_one
    for character in "0123456789X".replace(number[-1], ""):
        assert not is_cn_id(body + character)


@pytest.mark.parametrize(
    ("beginning", "least", "alphabet"),
    [
        ("sk-", 20, "aB1-_"),
        ("sk_live_", 16, "aB1"),
        ("sk_test_", 16, "aB1"),
        ("rk_live_", 16, "aB1"),
        ("rk_test_", 16, "aB1"),
        *((f"gh{letter}_", 36, "aB1") for letter in "pousr"),
        ("github_pat_", 22, "aB1_"),
        ("glpat-", 20, "aB1-_"),
        *((f"xox{letter}-", 10, "aB1-") for letter in "abceoprs"),
        ("xapp-", 20, "aB1-"),
        ("hf_", 30, "aB1"),
        ("npm_", 36, "aB1"),
        ("pypi-", 50, "aB1-_"),
    ],
)
def test_a_key_has_a_beginning_and_a_least_length(mark: Mark, beginning: str, least: int, alphabet: str) -> None:
    rest = (alphabet * 30)[: least - 1] + "Z"
    for length, found in ((least, True), (least - 1, False)):
        key = beginning + rest[-length:]
        assert mark(f"key={key}, x", kinds=["api_key"]) == (f"key=‹api_key:{key}›, x" if found else f"key={key}, x")


@pytest.mark.parametrize(("beginning", "length"), [("AKIA", 16), ("ASIA", 16), ("AIza", 35)])
def test_some_keys_have_exactly_one_length(mark: Mark, beginning: str, length: int) -> None:
    for more in (-1, 0, 1):
        key = beginning + ("A1B2" * 10)[: length + more]
        assert mark(key, kinds=["api_key"]) == (f"‹api_key:{key}›" if more == 0 else key)


@pytest.mark.parametrize(
    ("rest", "is_random"),
    [
        ("abcdefghijklmnopqrs12", True),
        ("abcdefghijklmnopqrst1", False),
        ("ABCdefghijklmnopqrst", True),
        ("ABcdefghijklmnopqrst", False),
    ],
)
def test_a_loose_key_looks_random(mark: Mark, rest: str, is_random: bool) -> None:
    key = f"sk-{rest}"
    assert mark(key, kinds=["api_key"]) == (f"‹api_key:{key}›" if is_random else key)


@pytest.mark.parametrize(
    "ending", ["css", "gif", "html", "jpeg", "jpg", "json", "jsx", "png", "svg", "tgz", "tsx", "txt", "webp", "PNG"]
)
def test_a_name_of_a_file_is_no_address(mark: Mark, ending: str) -> None:
    assert mark(f"logo@dark.{ending}") == f"logo@dark.{ending}"


@pytest.mark.parametrize(
    ("before", "is_version"),
    [
        *((word, True) for word in ("v", "ver. ", "Version: ", "release ", "build=")),
        *((word, False) for word in ("server ", "via ")),
    ],
)
def test_four_numbers_after_a_word_for_versions_are_no_address(mark: Mark, before: str, is_version: bool) -> None:
    marked = "10.0.2.1" if is_version else "‹ip:10.0.2.1›"
    assert mark(f"{before}10.0.2.1 x") == f"{before}{marked} x"


@pytest.mark.parametrize(
    ("header", "is_token"),
    [
        ("eyJhbGciOiJIUzI1NiJ9", True),  # {"alg":"HS256"}
        ("eyJ0eXAiOiJKV1QifQ", True),  # {"typ":"JWT"}
        ("eyJraWQiOiIxIn0", False),  # {"kid":"1"}
        ("eyJhbGciOiJIUzI1NiJ", False),
    ],
)
def test_a_token_has_a_header_that_can_be_read(mark: Mark, header: str, is_token: bool) -> None:
    for rest in (".e30.abc", ".e30.", ".a.b.c.d"):
        text = header + rest
        assert mark(text, kinds=["jwt"]) == (f"‹jwt:{text}›" if is_token else text)
    assert mark(f"{header}.e30", kinds=["jwt"]) == f"{header}.e30"


def test_kinds_are_tried_in_this_order() -> None:
    assert ALL_KINDS == ("private_key", "api_key", "jwt", "email", "iban", "cn_id", "card", "us_ssn", "ip", "phone")
