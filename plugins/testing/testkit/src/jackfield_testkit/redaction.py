"""Take secrets, and what differs from machine to machine, out of what is written down."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

SECRET = "[secret]"  # noqa: S105 - it stands in the place of one
_NAMED_LIKE_SECRETS = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:$|_)")
_SHORTEST = 8  # shorter values of the environment are words such as `true`, which stand in any text
# What the large providers' keys look like. After `Bearer` and `api_key=`, anything is one.
_LIKE_KEYS = re.compile(
    r"\b(?:sk|pk|rk|ak|gsk|hf|tvly|xai|pplx|r8)[-_][A-Za-z0-9_\-]{16,}"
    r"|\bAIza[A-Za-z0-9_\-]{30,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\b(?:gh[pousr]|github_pat|glpat|xox[abprs])[-_][A-Za-z0-9_\-]{16,}"
    r"|\beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}"
    r"|(?<=Bearer )[A-Za-z0-9._~+/\-]{12,}=*"
    r"|(?i:(?<=api_key=)|(?<=api-key=)|(?<=apikey=))[A-Za-z0-9._~+/\-]{12,}"
)


class Redaction:
    """Which texts are replaced, and by what.

    Args:
        secrets: Values that never appear; they are replaced for good.
        names: Values that differ from run to run (a temporary folder), each with the name that stands for it.
            `restored` puts the values back.
    """

    def __init__(self, secrets: Iterable[str] = (), names: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        named = [*dict.fromkeys(secrets, SECRET).items(), *self._names.items()]
        self._replacements = {form: name for value, name in named if value for form in _forms(value)}
        # The longest first: one secret may be the beginning of another.
        known = sorted(self._replacements, key=len, reverse=True)
        self._known = re.compile("|".join(map(self._pattern_of, known)) or r"(?!)")

    def with_secrets(self, secrets: Iterable[str]) -> Redaction:
        """The same, and these."""
        old = [form for form, name in self._replacements.items() if name == SECRET]
        return Redaction([*old, *secrets], self._names)

    def text(self, text: str) -> str:
        """The text without them."""
        return "".join(self.pieces([text]))

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """The pieces of one text without them, also without those that were cut in two."""
        whole = "".join(pieces)
        found = self._found_in(whole)
        if not found:
            return list(pieces)
        redacted, start = [], 0
        for piece in pieces:
            redacted.append(_between(whole, start, start + len(piece), found))
            start += len(piece)
        return redacted

    def value(self, value: object) -> Any:
        """A JSON value without them, in keys and in values."""
        return with_texts(value, self.text, keys=self.text)

    def restored(self, value: object) -> Any:
        """A JSON value with the values that its names stand for."""
        return with_texts(value, self._restored)

    def _restored(self, text: str) -> str:
        for real, name in self._names.items():
            text = text.replace(name, real)
        return text

    def _pattern_of(self, form: str) -> str:
        # Secrets in any case: servers repeat them so.
        return f"(?i:{re.escape(form)})" if self._replacements[form] == SECRET else re.escape(form)

    def _found_in(self, text: str) -> list[tuple[int, int, str]]:
        """Where they stand: start, end and replacement, none overlapping another."""
        known = [
            (match.start(), match.end(), self._replacements.get(match[0], SECRET))
            for match in self._known.finditer(text)
        ]
        alike = [(match.start(), match.end(), SECRET) for match in _LIKE_KEYS.finditer(text)]
        merged: list[tuple[int, int, str]] = []
        for start, end, replacement in sorted(known + alike):
            if merged and start < merged[-1][1]:
                # Where two overlap, nothing of either may stay.
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]), SECRET)
            else:
                merged.append((start, end, replacement))
        return merged


def with_texts(value: object, change: Callable[[str], str], *, keys: Callable[[str], str] = str) -> Any:
    """A JSON value, out of read-only mappings and tuples, too, with each of its texts changed."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {keys(str(name)): with_texts(entry, change, keys=keys) for name, entry in value.items()}
        case list() | tuple():
            return [with_texts(entry, change, keys=keys) for entry in value]
    return value


def secrets_of_the_environment() -> list[str]:
    """The values of the variables that are named like keys, tokens and passwords."""
    return [
        value
        for name, value in os.environ.items()
        if _NAMED_LIKE_SECRETS.search(name.upper()) and len(value) >= _SHORTEST
    ]


def _forms(value: str) -> set[str]:
    """How a value is written in a text, in JSON, and in a URL."""
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")}


def _between(whole: str, start: int, end: int, found: Sequence[tuple[int, int, str]]) -> str:
    """A part of the whole without what was found; a replacement stands where what it replaces begins."""
    kept, position = [], start
    for first, last, replacement in found:
        if last <= start or first >= end:
            continue
        kept.append(whole[position : max(first, position)])
        if first >= start:
            kept.append(replacement)
        position = min(last, end)
    kept.append(whole[position:end])
    return "".join(kept)
