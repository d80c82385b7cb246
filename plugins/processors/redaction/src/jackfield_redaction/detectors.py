"""Detect the built-in kinds of values.

Text is streamed, so every detector has two parts. Its `reach` is a pattern that matches, from the start of a possible
value, all text that the detector may look at. The pattern decides each character based only on the preceding ones.
While the reach extends to the end of the available text, the detector waits; afterwards, no later text can change the
result. Then `measure` looks for the value itself within the reach and the one character that follows. This makes the
result independent of how the text is split.

All patterns are bounded and never nest repeats over the same characters, so they run in linear time. Only ASCII counts
as letters and digits, because in Chinese text a number may directly follow a word.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from jackfield_redaction.checksums import iban_length, is_card, is_cn_id, is_iban
from jackfield_redaction.config import Kind

LOOKBEHIND = 16
"""The number of characters before a value that a detector may look at."""

Measure = Callable[[str, int, int], int]
"""Takes a text, the start of a possible value, and the end of its reach. Returns the value's end, or 0 for none."""

_DIGITS = "0123456789"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALNUM = _DIGITS + _UPPER + _UPPER.lower()

# A value starts where no word continues. In JSON pasted as text, the n in a preceding \n is not part of a word.
_START = r"(?:(?<![A-Za-z0-9_])(?!(?<=\\)(?:[nrt]|u[0-9A-Fa-f]{4}))|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4}))"
_END = r"(?![A-Za-z0-9_])"
_SPACE = " \u00a0\u2009\u202f"
_HYPHEN = "\u2010\u2011\u2012\u2013-"  # the plain one last, because these are used in character classes
_NUMBER = rf"0-9{_SPACE}.()/{_HYPHEN}"


@dataclass(frozen=True, slots=True)
class Detector:
    """Finds one form of one kind of value.

    Attributes:
        kind: The kind of value that the detector finds.
        first: The characters with which a value can start.
        reach: The text to look at; see the module docstring. The pattern matches only where a value can start.
        measure: Finds the value; see the module docstring.
        ends: For long values, a pattern that ends the reach once it exceeds 64 characters.
        longest: The longest reach when `ends` is set, in characters.
    """

    kind: Kind
    first: frozenset[str]
    reach: re.Pattern[str]
    measure: Measure
    ends: re.Pattern[str] | None = None
    longest: int = 0


def _detector(
    kind: Kind, first: str, reach: str, measure: Measure, *, ends: str | None = None, longest: int = 0
) -> Detector:
    return Detector(kind, frozenset(first), re.compile(reach), measure, re.compile(ends) if ends else None, longest)


def _begun(literal: str, rest: str) -> str:
    """Return a pattern that matches a literal with its continuation, or a prefix of it at the end of the text."""
    begun = "|".join(rf"{re.escape(literal[:length])}\Z" for length in range(1, len(literal)))
    return rf"(?:{re.escape(literal)}{rest}|{begun})"


# Text without any of these contains no value or start of one, except in its last word. This is only an optimisation.
TRIGGER = re.compile(r"@|0|1|2|3|4|5|6|7|8|9|-----|_|k-|xox|xapp-|A[KSI][IZ]|glpat-|pypi-|eyJ")
CANDIDATE_REACH = 66
"""The maximum distance of a trigger from the start of its value, in characters."""

_GAPS = rf"[{_SPACE}.()/{_HYPHEN}]{{0,5}}+"
_WORD_BEGINS = (
    r"[A-Za-z](?:[A-Za-z._%+:-]{0,63}+(?:[@0-9]|\Z)"
    r"|(?<=s)k-|(?<=[sr])k_|(?<=g)(?:h[a-z]_|ithub_pat_|lpat-)|(?<=x)(?:ox|app-)|(?<=A)(?:[KS]IA|Iza)|(?<=h)f_"
    r"|(?<=n)pm_|(?<=p)ypi-|(?<=e)yJ)"
)
_NUMBER_BEGINS = (
    rf"[0-9](?:(?:{_GAPS}[0-9]){{8}}|(?:{_GAPS}[0-9]){{0,7}}{_GAPS}\Z"  # nine digits
    r"|[0-9]{0,2}+\.[0-9]{1,3}+\.[0-9]|[A-Za-z0-9._%+-]{0,63}+(?:@|\Z)|[0-9A-Fa-f]{0,3}+(?::|\Z))"
)
CANDIDATE = re.compile(
    rf"{_START}(?:{_WORD_BEGINS}|{_NUMBER_BEGINS}|[+(](?=[0-9(]|\Z))|(?<!-)-(?:----(?:B|\Z)|-{{0,3}}\Z)"
)
"""Possible starts of values: a superset of the actual ones."""


# --- keys -------------------------------------------------------------------------------------------------------------

_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]{0,400}+(?:-{1,4}+[^-]{1,200}+){0,8}[^-]*+-----END [A-Z0-9 ]{0,40}+-----"
    r"|(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{16,}+)+)"  # cut off before its end
)
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/=]{16}")
_PEM_BODY = r"[A-Za-z0-9+/=\s\\:,.()]"
_PEM_REACH = _begun(
    "-----BEGIN ",
    rf"[A-Z0-9 ]{{0,40}}+-{{0,5}}+{_PEM_BODY}{{0,400}}+(?:-{{1,4}}+{_PEM_BODY}{{1,200}}+){{0,8}}{_PEM_BODY}{{0,16384}}+"
    r"-{0,5}+(?:E(?:N(?:D(?: [A-Z0-9 ]{0,40}+-{0,5}+)?)?)?)?",
)


def _measure_private_key(text: str, start: int, end: int) -> int:
    found = _PEM.match(text, start, end)
    if not found or not _BASE64_RUN.search(text, start, found.end()):
        return 0
    return found.end()


_KEY = re.compile(
    r"(?:(?P<loose>sk-)[A-Za-z0-9_-]{20,}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{36,}"
    r"|github_pat_[A-Za-z0-9_]{22,}"
    r"|glpat-[A-Za-z0-9_-]{20,}"
    r"|xox[abceoprs]-[A-Za-z0-9-]{10,}"
    r"|xapp-[A-Za-z0-9-]{20,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9_-])"
    r"|AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"
    r"|hf_[A-Za-z0-9]{30,}"
    r"|npm_[A-Za-z0-9]{36,}"
    r"|pypi-[A-Za-z0-9_-]{50,})"
)


def _measure_api_key(text: str, start: int, end: int) -> int:
    found = _KEY.match(text, start, end)
    # Names of packages and CSS classes start like some keys, but do not look random.
    if not found or (found["loose"] and not _looks_random(found[0][3:])):
        return 0
    return found.end()


def _looks_random(text: str) -> bool:
    return sum(map(str.isdigit, text)) >= 2 or sum(map(str.isupper, text)) >= 3


_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)?")


def _measure_jwt(text: str, start: int, end: int) -> int:
    found = _JWT.match(text, start, end)
    if not found:
        return 0
    head = found[0].partition(".")[0]
    try:
        header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return 0
    return found.end() if isinstance(header, dict) and ("alg" in header or "typ" in header) else 0


# --- addresses --------------------------------------------------------------------------------------------------------

_EMAIL = re.compile(
    r"(?P<local>[A-Za-z0-9._%+-]++)@(?![1-9]x\.)"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+(?P<top>[A-Za-z]{2,24})(?![A-Za-z0-9])"
)
_FILE_ENDINGS = frozenset(
    {"css", "gif", "html", "jpeg", "jpg", "json", "jsx", "png", "svg", "tgz", "tsx", "txt", "webp"}
)


def _measure_email(text: str, start: int, end: int) -> int:
    found = _EMAIL.match(text, start, end)
    # git@host:path is a repository address, in which the user name is always git.
    if not found or found["local"] == "git" or found["top"].lower() in _FILE_ENDINGS:
        return 0
    return found.end()


_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?:{_OCTET}\.){{3}}{_OCTET}(?![A-Za-z0-9_]|\.[0-9])")
_VERSION_BEFORE = re.compile(r"(?:\bv|\bver|version|release|build)[.:= ]{0,2}$", re.IGNORECASE)


def _measure_ipv4(text: str, start: int, end: int) -> int:
    found = _IPV4.match(text, start, min(len(text), end + 1))
    if not found or _VERSION_BEFORE.search(text[max(0, start - LOOKBEHIND) : start]):
        return 0
    return found.end() if _is_somebodys(found[0]) else 0


def _goes_on(text: str, end: int) -> bool:
    """Return True if a word continues at this position, like `_END` but for detectors without a pattern."""
    after = text[end : end + 1]
    return after.isascii() and (after.isalnum() or after == "_")


def _measure_ipv6(text: str, start: int, end: int) -> int:
    if _goes_on(text, end):
        return 0
    end = _end_before_the_sentence(text, end)
    address = text[start:end]
    # Without a digit, this is more likely a dotted path of names.
    return end if any(map(str.isdigit, address)) and _is_somebodys(address) else 0


def _end_before_the_sentence(text: str, end: int) -> int:
    """Return the end of an address, excluding a full stop or colon that follows it."""
    while text[end - 1] == "." or (text[end - 1] == ":" and text[end - 2] != ":"):
        end -= 1
    return end


def _is_somebodys(address: str) -> bool:
    """Return True if an IP address identifies a particular machine, unlike 127.0.0.1 and 0.0.0.0."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (parsed.is_loopback or parsed.is_unspecified or address.startswith("0."))


# --- numbers ----------------------------------------------------------------------------------------------------------

_NO_DECIMALS = r"(?!\.[0-9])"
_NO_MORE = rf"{_END}(?![.{_HYPHEN}][0-9])"

_CARDS = (
    re.compile(rf"[0-9]{{4}}([{_SPACE}{_HYPHEN}])[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{1,3}}{_END}"),
    re.compile(rf"[0-9]{{4}}([{_SPACE}{_HYPHEN}])[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}{_END}{_NO_DECIMALS}"),
    re.compile(rf"[0-9]{{4}}([{_SPACE}{_HYPHEN}])[0-9]{{6}}\1[0-9]{{4,5}}{_END}{_NO_DECIMALS}"),
    re.compile(rf"[0-9]{{14,19}}{_END}{_NO_DECIMALS}"),
)


def _measure_card(text: str, start: int, end: int) -> int:
    for form in _CARDS:
        found = form.match(text, start, min(len(text), end + 1))
        if found and is_card("".join(filter(str.isdigit, found[0]))):
            return found.end()
    return 0


def _measure_iban(text: str, start: int, end: int) -> int:
    length = iban_length(text[start : start + 2])
    compact = ""
    for place in range(start, end):
        character = text[place]
        if character in _SPACE or character == "-":
            continue
        compact += character
        if len(compact) == length:
            return place + 1 if not _goes_on(text, place + 1) and is_iban(compact) else 0
    return 0


_CN_ID = re.compile(rf"[0-9]{{17}}[0-9Xx]{_END}")


def _measure_cn_id(text: str, start: int, end: int) -> int:
    found = _CN_ID.match(text, start, min(len(text), end + 1))
    return found.end() if found and is_cn_id(found[0]) else 0


_US_SSN = re.compile(rf"(?!000|666|9)[0-9]{{3}}([{_HYPHEN}])(?!00)[0-9]{{2}}\1(?!0000)[0-9]{{4}}{_NO_MORE}")


def _measure_us_ssn(text: str, start: int, end: int) -> int:
    found = _US_SSN.match(text, start, min(len(text), end + 1))
    return found.end() if found else 0


_GAP = rf"[{_SPACE}./{_HYPHEN}]"
_PHONES = (
    # +49 (0)30 123456, +1-555-123-4567, +33 1 23 45 67 89
    re.compile(
        rf"\+[1-9][0-9]{{0,14}}+(?:{_GAP}{{0,2}}\([0-9]{{1,5}}\){_GAP}{{0,2}}[0-9]+)?(?:{_GAP}{{1,3}}[0-9]+)*{_END}"
    ),
    # 0049 30 123456
    re.compile(rf"00[1-9][0-9]{{0,12}}(?:[{_SPACE}/]\(?[0-9]+\)?)+{_END}"),
    # (555) 123-4567, 1-800-555-0199, 555.123.4567
    re.compile(
        rf"(?:1[{_SPACE}.{_HYPHEN}])?(?:\([2-9][0-9]{{2}}\)[{_SPACE}]?[2-9][0-9]{{2}}[{_SPACE}.{_HYPHEN}]"
        rf"|[2-9][0-9]{{2}}(?P<gap>[{_SPACE}.{_HYPHEN}])[2-9][0-9]{{2}}(?P=gap))[0-9]{{4}}{_NO_MORE}"
    ),
    # 13812345678, 138 1234 5678, 8613812345678
    re.compile(
        rf"(?:(?:00)?86[{_SPACE}{_HYPHEN}]?)?1[3-9][0-9](?P<gap>[{_SPACE}{_HYPHEN}]?)[0-9]{{4}}(?P=gap)[0-9]{{4}}{_NO_MORE}"
    ),
    # 010-12345678, 0571-88888888
    re.compile(rf"0[1-9][0-9]{{1,2}}[{_HYPHEN}][0-9]{{7,8}}{_NO_MORE}"),
)
_DIGIT_GROUP = re.compile("[0-9]+")
_DECIMAL = re.compile(r"\+[0-9]{5,}\.[0-9]+\Z")  # no country code has five digits


def _measure_phone(text: str, start: int, end: int) -> int:
    for form in _PHONES:
        found = form.match(text, start, min(len(text), end + 1))
        if found and not _DECIMAL.match(found[0]) and (length := _phone_length(found[0])):
            return start + length
    return 0


def _phone_length(groups: str) -> int:
    """Return the length of a number written in digit groups.

    E.164 allows at most 15 digits, and numbers with fewer than 9 are too common to count.
    """
    digits = -2 if groups.startswith("00") else 0
    length = 0
    for group in _DIGIT_GROUP.finditer(groups):
        digits += len(group[0])
        if digits > 15:
            break
        length = group.end() if digits >= 9 else 0
    return length


_NUMBER_REACH = rf"[0-9][{_NUMBER}]{{0,40}}+"

DETECTORS = (
    _detector(
        "private_key",
        "-",
        rf"(?<!-){_PEM_REACH}",
        _measure_private_key,
        ends="[^A-Za-z0-9+/=\\s\\\\:,.()]",
        longest=16384,
    ),
    _detector("api_key", "sghxAnrp", rf"{_START}(?<!-)[A-Za-z0-9_-]{{1,512}}+", _measure_api_key),
    _detector(
        "jwt",
        "e",
        rf"{_START}(?<![.-])" + _begun("eyJ", "[A-Za-z0-9_.-]{0,8192}+"),
        _measure_jwt,
        ends="[^A-Za-z0-9_.-]",
        longest=8192,
    ),
    _detector("email", _ALNUM, rf"{_START}[A-Za-z0-9._%+-]{{1,64}}+(?:@[A-Za-z0-9.-]{{0,253}}+)?", _measure_email),
    _detector(
        "iban",
        _UPPER,
        rf"{_START}(?:[A-Z]{{2}}[0-9]{{2}}[A-Z0-9{_SPACE}-]{{0,44}}+|[A-Z]{{2}}[0-9]?\Z|[A-Z]\Z)",
        _measure_iban,
    ),
    _detector("cn_id", "12345689", rf"{_START}(?<![.])[0-9]{{1,18}}+[Xx]?", _measure_cn_id),
    _detector("card", "23456", rf"{_START}(?<![0-9][.,]){_NUMBER_REACH}", _measure_card),
    _detector("us_ssn", _DIGITS, rf"{_START}(?<![A-Za-z0-9][./{_HYPHEN}]){_NUMBER_REACH}", _measure_us_ssn),
    # After a letter and a slash or hyphen, this is a program's version (Chrome/120.0.0.0).
    _detector("ip", _DIGITS, rf"{_START}(?<![0-9]\.)(?<![A-Za-z][/-])[0-9][0-9.]{{0,17}}+", _measure_ipv4),
    _detector(
        "ip",
        _DIGITS + "abcdefABCDEF",
        rf"{_START}(?<!:)(?:[0-9A-Fa-f]{{4}}:[0-9A-Fa-f:.]{{0,42}}+|[0-9A-Fa-f]{{1,4}}\Z)",
        _measure_ipv6,
    ),
    _detector(
        "phone", "+(" + _DIGITS, rf"{_START}(?<![A-Za-z0-9][./{_HYPHEN}])[+(0-9][{_NUMBER}]{{0,40}}+", _measure_phone
    ),
)
"""In the order in which they are tried at the same position."""
