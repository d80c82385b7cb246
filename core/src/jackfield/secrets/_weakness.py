"""Determine which values are too weak to hide."""

from __future__ import annotations

import re

SHORTEST = 8
"""The minimum length of a secret. NIST SP 800-63B requires the same for passwords chosen by people."""
LEAST_BITS = 42.0
"""The minimum information in words and numbers that count as a secret, such as a passphrase. A letter of English words
has 2.62 bits (Shannon, Bell System Technical Journal, 1951), a digit 3.32. The longest word of our own format,
`reasoning_content`, has 41.9."""
_BITS_OF_LETTER, _BITS_OF_DIGIT = 2.62, 3.32
FEWEST_CHARACTERS = 5
"""The minimum number of different characters in a secret, because `xxxxxxxx` is a placeholder."""

# Prefixes of large providers' keys. The rest of such a key is predictable only in examples and tests.
_PREFIX_OF_KEYS = re.compile(r"(?:sk|pk|rk|gsk|hf|tvly|xai|pplx|r8|gh[pousr]|github_pat|glpat|xox[abprs])[-_]\S{9,}$")
_SEPARATORS = re.compile(r"[\s\-_./:,@!?']+")
_WORD_OR_NUMBER = re.compile(r"\d+|[^\W\d_]+")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+")
_NUMBERED_WORD = re.compile(r"[^\W\d_]*\d{0,4}[^\W\d_]?")
_MIXED_PIECE = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}")
_PATH_OR_ADDRESS = re.compile(r"~?/|\.{1,2}/|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://")


def weakness_of(value: str, *, is_named: bool = True) -> str:
    """Return the reason why a value is too short or too common to hide, or '' if it can be hidden.

    Text that occurs in ordinary conversations cannot be hidden without garbling the conversations.

    Args:
        value: A key, password or token.
        is_named: True if a setting declares the value to be a secret. Values of environment variables and headers that
            may not be secret must look more like a secret.
    """
    if len(value) < SHORTEST:
        return f"it has fewer than {SHORTEST} characters"
    if len(set(value)) < FEWEST_CHARACTERS:
        return f"it has fewer than {FEWEST_CHARACTERS} different characters"
    if _PREFIX_OF_KEYS.match(value):
        return ""
    if is_common(value, numbered_words=not is_named):
        return "it consists of words and numbers"
    if not is_named and _PATH_OR_ADDRESS.match(value):
        return "it is a path or URL"
    return ""


def is_common(value: str, *, numbered_words: bool = False) -> bool:
    """Return True if a text consists of a few words and numbers, with separators.

    Args:
        value: Any text.
        numbered_words: True if a word with an attached number, such as `node12`, counts as a word.
    """
    tokens = [token for token in _SEPARATORS.split(value) if token]
    digits = sum(char.isdigit() for char in value)
    bits = _BITS_OF_DIGIT * digits + _BITS_OF_LETTER * (sum(len(token) for token in tokens) - digits)
    return bits < LEAST_BITS and all(
        _is_word_or_number(token) or (numbered_words and _NUMBERED_WORD.fullmatch(token)) for token in tokens
    )


def _is_word_or_number(token: str) -> bool:
    if not _WORD_OR_NUMBER.fullmatch(token):
        return False
    humps = _HUMPS.findall(token)  # random mixed case has many
    return token.isdigit() or len(token) >= 3 * len(humps) or len(humps) == 1


def looks_random(value: str) -> bool:
    """Return True if a value contains a mix of at least twelve consecutive letters and digits, like tokens in paths."""
    return bool(_MIXED_PIECE.search(value))
