"""The encodings in which a secret may be written: JSON, URL and base64."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

from jackfield.secrets._weakness import FEWEST_CHARACTERS, SHORTEST, is_common

_LEAST_OF_BASE64 = 20
_PLAIN_RUN = re.compile(r"[A-Za-z0-9]{3,}")


@dataclass(frozen=True, slots=True)
class Form:
    """A secret in one encoding.

    Attributes:
        text: The encoded secret.
        least: The shortest prefix of `text` that is also hidden.
        placeholder: The replacement for `text`. For a prefix, the prefix length is inserted before the last character.
    """

    text: str = field(repr=False)
    least: str = field(repr=False)
    placeholder: str


def forms_of(value: str, name: str) -> Iterator[Form]:
    """Yield a secret in plain text, as encoded in JSON, `repr` and URLs, and in base64 at each of the three offsets."""
    written = {
        "": value,
        "json": json.dumps(value, ensure_ascii=False)[1:-1],
        "json-ascii": json.dumps(value)[1:-1],
        "json-json": json.dumps(json.dumps(value, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1],
        "repr": repr(value)[1:-1],
        "url": quote(value, safe="", errors="replace"),
        "url-path": quote(value, errors="replace"),
        "url-form": quote_plus(value, errors="replace"),
        **dict(_in_base64(value)),
    }
    known: set[str] = set()
    for form, text in written.items():
        if text in known or len(text) < SHORTEST:
            continue
        known.add(text)
        # Searching for a longer prefix is faster, and base64 is rarely truncated.
        least = text[:_LEAST_OF_BASE64] if form.startswith("base64") else _least_of(text)
        yield Form(text, least, f"[secret:{name}:{form}]" if form else f"[secret:{name}]")


def _in_base64(value: str) -> Iterator[tuple[str, str]]:
    raw = value.encode("utf-8", "surrogatepass")
    for encode, name in ((b64encode, "base64"), (urlsafe_b64encode, "base64url")):
        for before in range(3):
            # Characters at the ends depend on the neighbouring bytes.
            text = encode(bytes(before) + raw).decode()
            cut = (before + 1) if before else 0
            yield f"{name}-{before}", text[cut : len(text) if (before + len(raw)) % 3 == 0 else -4]


def _least_of(text: str) -> str:
    """Return the shortest prefix that is not common text. For example, `sk-proj-` is common text."""
    for size in range(SHORTEST, min(len(text), 64)):
        if len(set(text[:size])) >= FEWEST_CHARACTERS and not is_common(text[:size]):
            return text[:size]
    return text


def probe_of(form: Form) -> str:
    """Return a part of the encoded secret that every JSON encoding leaves unchanged, or ''."""
    return max(_PLAIN_RUN.findall(form.least), key=len, default="")
