"""Remove secrets and machine-specific values from recordings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from jackfield.secrets import STRUCTURE, Secret, Secrets

SECRET = "[secret]"  # noqa: S105 - it stands in the place of one
# Patterns of the large providers' keys. After `Bearer` and `api_key=`, anything is a key.
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
    """Strings to replace, with their replacements.

    Args:
        secrets: Values that must never appear, however weak. They cannot be restored.
        names: Values that differ between runs, such as a temporary directory, with the names that replace them.
            `restored` reverses this.
        known: Secrets of models and agents. Those too weak to hide are left in place.
    """

    def __init__(
        self, secrets: Iterable[str] = (), names: Mapping[str, str] | None = None, known: Iterable[Secret] = ()
    ) -> None:
        self._names = dict(names or {})
        secrets = tuple(secrets)
        self._secrets = Secrets(known)
        self._never_keys = [value for value in secrets if not value.replace("_", "").isalpha()]
        named = [*dict.fromkeys(secrets, SECRET).items(), *self._names.items()]
        self._replacements = {form: name for value, name in named if value for form in _forms(value)}
        # The longest first, because one secret may be a prefix of another.
        known_forms = sorted(self._replacements, key=len, reverse=True)
        self._known = re.compile("|".join(map(self._pattern_of, known_forms)) or r"(?!)")

    def add(self, known: Iterable[Secret]) -> None:
        """Hide more secrets."""
        self._secrets.add(known)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return "".join(self.pieces([text]))

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """Remove secrets from a text that is split into pieces, including secrets that span pieces."""
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
        """Return a JSON value without secrets. Roles, names, ids, and keys that contain no secret stay unchanged."""
        return with_texts(value, self.text, keys=self._key, unchanged=STRUCTURE)

    def _key(self, key: str) -> str:
        has_secret = self._secrets.find(key) or any(value in key for value in self._never_keys)
        return self.text(key) if has_secret else key

    def restored(self, value: object) -> Any:
        """Return a JSON value in which names are replaced by their original values."""
        return with_texts(value, self._restored)

    def _restored(self, text: str) -> str:
        for real, name in self._names.items():
            text = text.replace(name, real)
        return text

    def _pattern_of(self, form: str) -> str:
        # Secrets match case-insensitively, because servers may change their case.
        return f"(?i:{re.escape(form)})" if self._replacements[form] == SECRET else re.escape(form)

    def _found_in(self, text: str) -> list[tuple[int, int, str]]:
        """Return the matches as start, end and replacement, without overlaps."""
        known = [
            (match.start(), match.end(), self._replacements.get(match[0], SECRET))
            for match in self._known.finditer(text)
        ]
        alike = [(match.start(), match.end(), SECRET) for match in _LIKE_KEYS.finditer(text)]
        of_models = [(start, end, SECRET) for start, end, _ in self._secrets.find(text, any_case=True)]
        merged: list[tuple[int, int, str]] = []
        for start, end, replacement in sorted(known + alike + of_models):
            if merged and start < merged[-1][1]:
                # If two matches overlap, no part of either may stay.
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]), SECRET)
            else:
                merged.append((start, end, replacement))
        return merged


def with_texts(
    value: object,
    change: Callable[[str], str],
    *,
    keys: Callable[[str], str] = str,
    unchanged: Collection[str] = (),
) -> Any:
    """Apply a function to every string in a JSON value, except under some keys.

    Mappings and tuples are converted to plain JSON.
    """
    match value:
        case str():
            return change(value)
        case Mapping():
            return {
                keys(str(name)): entry
                if name in unchanged and isinstance(entry, str)
                else with_texts(entry, change, keys=keys, unchanged=unchanged)
                for name, entry in value.items()
            }
        case list() | tuple():
            return [with_texts(entry, change, keys=keys, unchanged=unchanged) for entry in value]
    return value


def _forms(value: str) -> set[str]:
    """Return the forms a value may take: as plain text, in JSON, and in a URL."""
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")}


def _between(whole: str, start: int, end: int, found: Sequence[tuple[int, int, str]]) -> str:
    """Return part of a text with the matches replaced. A replacement is inserted where its match starts."""
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
