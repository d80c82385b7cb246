"""What is found, and what looks like it and is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.detectors import _measure_ipv6, _phone_length
from jackfield_redaction.scanner import Finder, replace_in

Mark = Callable[..., str]

JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    "Proc-Type: 4,ENCRYPTED\n"
    "DEK-Info: AES-128-CBC,3F17F5316E2BAC89\n\n"
    "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MxszEVqzDq5vTbxu\n"
    "Wq1P9XQnFUT4ZJrV0pQsxq8=\n"
    "-----END RSA PRIVATE KEY-----"
)

FOUND = {
    "email": [
        "bob@example.com",
        "bob.smith+news@mail.example.co.uk",
        "B_O-B%x@EXAMPLE.ORG",
        "9lives@cat.museum",
        "a@b.cn",
    ],
    "phone": [
        "+14155550123",
        "+1 (415) 555-0123",
        "+1-415-555-0123",
        "+49 (0)30 123456",
        "+49 30 / 123456",
        "+33 1 23 45 67 89",
        "+86 138 1234 5678",
        "+1.4155550123",
        "0049 30 1234567",
        "(415) 555-0123",
        "(415)555-0123",
        "415-555-0123",
        "415.555.0123",
        "1-800-555-0199",
        "13812345678",
        "138 1234 5678",
        "199-1234-5678",
        "8613812345678",
        "010-12345678",
        "0571-88888888",
        "+44\u00a020\u00a07946\u00a00958",
        "415\u2011555\u20110123",
    ],
    "card": [
        "4111111111111111",
        "4111 1111 1111 1111",
        "5500-0000-0000-0004",
        "378282246310005",
        "3782 822463 10005",
        "30569309025904",
        "6011111111111117",
        "3530111333300000",
        "2223003122003222",
        "6240008631401148",
    ],
    "iban": [
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000",
        "GB29NWBK60161331926819",
        "GB29 NWBK 6016 1331 9268 19",
        "FR14 2004 1010 0505 0001 3M02 606",
        "NO93 8601 1117 947",
        "MT84 MALT 0110 0001 2345 MTLC AST0 01S",
    ],
    "ip": [
        "192.168.1.17",
        "8.8.8.8",
        "255.255.255.255",
        "2001:db8::1",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "fe80::1ff:fe23:4567:890a",
        "2001:db8::192.0.2.33",
    ],
    "cn_id": ["11010519491231002X", "11010519491231002x", "110101199003070054"],
    "us_ssn": ["078-05-1120", "123-45-6789"],
    "api_key": [
        "sk-abcdefghijklmnop0123456789ABCDEF",
        "sk-proj-Ab3_dE-fGh1jKlMn0pQrStUvWxYz",
        "sk-ant-api03-R2D2c3poR2D2c3po_R2D2c3po-AA",
        "sk-0123456789abcdef0123456789abcdef",
        "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
        "glpat-ABCdef123456-7890xyz",
        "xoxb-123456789012-abcdefGHIJKL",
        "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
        "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    ],
    "jwt": [JWT, f"{JWT.rpartition('.')[0]}."],
    "private_key": [
        PEM,
        PEM.replace("\n", "\\n"),
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ",  # cut off
    ],
}

LEFT_ALONE = [
    # addresses
    "@alice and bob@localhost and a @ b.com",
    "lodash@4.17.21, @types/node@18.0.0, icon@2x.png, logo@dark.svg",
    "git@github.com:owner/repository.git",
    "version 1.2.3.4, v10.0.2.1, Version: 4.5.6.7, Chrome/120.0.0.0, libfoo-1.2.3.4.tar.gz",
    "127.0.0.1 and 0.0.0.0 and ::1 and [::] and 0.1.2.3 and 0000:0:0:0:0:0:0:0 and 0000::1",
    "1.2.3, 1.2.3.4.5, 256.1.1.1, 1.2.3.400, 01.02.03.04",
    "at 12:30:45, 00:1A:2B:3C:4D:5E, std::vector, xs[1::2], dead:beef::cafe, a::b",
    # numbers
    "2024-01-02 10:20:30, 2024-01-02T10:20:30+0800, 20240102103000, 02.01.2024",
    "1712345678, 1712345678901, 1712345678901234, 1712345678901234567",
    "order 1234567890, 12345678901, 4111111111111112, 4111 1111 1111 1112",
    "3.14159265358979323846, 0.4155550123, 1,234,567,890, 1e100, -415555012, +35236450.6",
    "978-3-16-148410-0, 4006381333931, 0-306-40615-2",
    "550e8400-e29b-41d4-a716-446655440000, 12345678-1234-1234-1234-123456789012",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "000-12-3456, 666-12-3456, 912-34-5678, 123-00-4567, 123-45-0000, 1123-45-67890",
    "IMG_13912345678.jpg, x13812345678, 138123456789, 12812345678",
    "110105194912310021, 11010519491331002X, 110105184912310028",
    "DE89370400440532013001, DE8937040044053201300, XX89370400440532013000, GB29 NWBK",
    "1234567-8901, 555-1234, 123-456-7890, 415-155-0123, +1 2345",
    # keys
    "sk-learn, sk-fading-circle-v2-animation-example, sk-spinner-double-bounce-indicator, task-1234567890",
    "AKIA, AKIAlowercase12345678, ghp_short, hf_hub_download, xoxo-gossip, npm_config_registry, github_pat",
    "eyJ.eyJ.eyJ, eyJhbGciOiJ9.x, eyJabcdefghijklmnop.abcdefghijkl.abcdefgh",
    "-----BEGIN CERTIFICATE-----\nMIIDXTCCAkWgAwIBAgIJAJC1HiIAZAiI\n-----END CERTIFICATE-----",
    "-----BEGIN PRIVATE KEY----- ... -----END PRIVATE KEY-----",
    "-----\n- one\n-- two\n--- three\n",
]


def _values() -> list[tuple[str, str]]:
    return [(kind, value) for kind, values in FOUND.items() for value in values]


@pytest.mark.parametrize(("kind", "value"), _values())
def test_a_value_is_found_whole_and_as_its_kind(mark: Mark, kind: str, value: str) -> None:
    assert mark(value) == f"‹{kind}:{value}›"


@pytest.mark.parametrize(("kind", "value"), _values())
def test_a_value_is_found_between_words_punctuation_and_chinese(mark: Mark, kind: str, value: str) -> None:
    for before, after in (
        ("Send it to ", " today."),
        ("(", ")"),
        ('"', '", "x"'),
        ("", ".\nNext"),
        ("他的", "，谢谢"),
        ("是", "吗"),
        ("<", ">"),
        ('{\\"x\\":\\"a\\n', '\\n\\"}'),
        ("\\u003c", "\\u003e"),
        ("key=", "&x=1"),
    ):
        assert mark(before + value + after) == f"{before}‹{kind}:{value}›{after}"


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_only_looks_like_a_value_is_left_alone(mark: Mark, text: str) -> None:
    assert mark(text) == text


@pytest.mark.parametrize("kind", FOUND)
def test_each_kind_can_be_switched_off(mark: Mark, kind: str) -> None:
    others = [other for other in FOUND if other != kind]
    for value in FOUND[kind]:
        assert f"‹{kind}:" not in mark(value, kinds=others)
        assert mark(value, kinds=[kind]) == f"‹{kind}:{value}›"
        assert mark(value, kinds=[]) == value


def test_values_beside_each_other_are_told_apart(mark: Mark) -> None:
    text = (
        "4111 1111 1111 1111 123, 4111 1111 1111 1111 2027; +33 1 23 45 67 89 (415) 555-0123 +49 30 123456 2024-01-02"
    )
    assert mark(text) == (
        "‹card:4111 1111 1111 1111› 123, ‹card:4111 1111 1111 1111› 2027; "
        "‹phone:+33 1 23 45 67 89› ‹phone:(415) 555-0123› ‹phone:+49 30 123456 2024›-01-02"
    )


def test_values_to_keep_are_left_alone_whatever_their_case(mark: Mark) -> None:
    text = "help@acme.com HELP@ACME.COM bob@acme.com 10.0.3.4 10.1.3.4"
    assert mark(text, keep=["help@acme.com", "10.0.*"]) == (
        "help@acme.com HELP@ACME.COM ‹email:bob@acme.com› 10.0.3.4 ‹ip:10.1.3.4›"
    )


def test_own_patterns_are_found_before_the_built_in_kinds(mark: Mark) -> None:
    patterns = [{"name": "employee", "regex": r"\bE-\d{6}\b", "max_length": 9}]
    assert mark("E-123456, E-1234567, e-mail E-654321@example.com", patterns=patterns) == (
        "‹employee:E-123456›, E-1234567, e-mail ‹employee:E-654321›@example.com"
    )


def test_own_patterns_and_built_in_kinds_are_found_in_one_text(mark: Mark) -> None:
    patterns = [{"name": name, "regex": rf"\b{name}\d+", "max_length": 9} for name in "ab"]
    assert mark("b1 bob@example.com a2 8.8.8.8 b3", patterns=patterns) == (
        "‹b:b1› ‹email:bob@example.com› ‹a:a2› ‹ip:8.8.8.8› ‹b:b3›"
    )


@pytest.mark.parametrize(
    ("address", "is_one"), [("dead:beef::cafe", False), ("dead:beef::1", True), ("1234:5678", False)]
)
def test_an_address_of_the_sixth_version_has_a_digit_and_all_its_parts(address: str, is_one: bool) -> None:
    assert _measure_ipv6(address, 0, len(address)) == (len(address) if is_one else 0)


@pytest.mark.parametrize(
    "value",
    [
        "8.8.8.8",
        "4111111111111111",
        "110101199003070054",
        "078-05-1120",
        "415-555-0123",
        "+14155550123",
        "010-12345678",
    ],
)
@pytest.mark.parametrize("after", ["x", "_", "7x"])
def test_a_number_in_which_a_word_goes_on_is_left_alone(mark: Mark, value: str, after: str) -> None:
    assert mark(f"{value}{after} or") == f"{value}{after} or"


def test_a_text_without_values_is_the_same_object() -> None:
    text = "".join(["no ", "value"])
    finder = Finder(RedactionConfig())
    assert replace_in(text, finder, lambda *_: "x") is text
    assert replace_in(f"{text} bob@example.com", finder, lambda *_: "x") == f"{text} x"


@pytest.mark.parametrize("digits", range(1, 20))
def test_a_telephone_number_has_9_to_15_digits(digits: int) -> None:
    assert _phone_length("1" * digits) == (digits if 9 <= digits <= 15 else 0)
    assert _phone_length("00" + "1" * digits) == (2 + digits if 9 <= digits <= 15 else 0)
    assert _phone_length(f"123456789 {'1' * digits}") == (10 + digits if 9 + digits <= 15 else 9)
