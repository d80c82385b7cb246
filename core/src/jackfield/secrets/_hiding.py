"""Replace secrets with placeholders, and restore secrets from placeholders."""

from __future__ import annotations

import json
import logging
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from jackfield.secrets._forms import Form, forms_of, probe_of
from jackfield.secrets._sources import SecretSearch, environment_secrets, learned, secrets_in_address
from jackfield.secrets._values import Secret
from jackfield.secrets._weakness import weakness_of

_log = logging.getLogger("jackfield")
_T = TypeVar("_T")
_FORMATTER = logging.Formatter()
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>\\]+")
_NAME_CHARACTERS = re.compile(r"[^\w.-]+", re.ASCII)
_PLACEHOLDER = re.compile(r"\[secret(?::[\w.#-]+(?::[\w-]+)?(?::\d+)?)?\]", re.ASCII)
# Keys for local servers that require a key but ignore it.
_NO_KEYS = frozenset({"", "-", "empty", "none", "null", "dummy", "local", "ollama", "test", "no-key", "not-needed"})
HIDDEN_PARTS = "[secret]"
"""The placeholder for several overlapping secrets, which cannot be restored."""
SEAL = "sealed"
"""Key for an object's digest, computed before its secrets were hidden."""

# Fields of messages, events and record entries that are never changed.
STRUCTURE = frozenset({
    "event", "role", "name", "function_id", "call_id", "call_ids", "in_doubt", "approvals", "run_id", "agent", "agents",
    "by", "to", "kind", "stop_reason", "asked", "below", "place", "key", "id", "response_id", "format", "version",
    "session", "parent", "state", "model", "backend", "type", "case", "scorer", "digest", "digests", "since", "mode",
})  # fmt: skip
_FREE = frozenset({"metadata", "data", "extra", "extra_content"})  # may have secrets under any key
_warned: set[str] = set()


class KnowsSecrets(Protocol):
    """Settings that contain keys and tokens by name."""

    def named_secrets(self) -> Mapping[str, str]: ...


class Secrets:
    """A set of known secrets that can be hidden in values and restored.

    Args:
        known: The secrets to hide. Weak secrets are not hidden; instead, a warning is logged once per name.
    """

    def __init__(self, known: Iterable[Secret] = ()) -> None:
        self._by_value: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._forms: tuple[Form, ...] = ()
        self._probes: tuple[str, ...] = ()
        self._filled: dict[str, str] = {}
        self._included: weakref.WeakSet[Any] = weakref.WeakSet()
        self._revision = 0
        self.add(known)

    def __repr__(self) -> str:
        return f"<{len(self._by_value)} secrets>"

    def __reduce__(self) -> tuple[type[Secrets], tuple[()]]:
        return Secrets, ()  # other processes collect their own

    def __bool__(self) -> bool:
        return bool(self._by_value)

    def add(self, known: Iterable[Secret]) -> bool:
        """Add secrets to hide, and return True if any of them is new."""
        before = len(self._by_value)
        for secret in known:
            for value in dict.fromkeys((secret.value, secret.value.strip())):
                if value and value not in self._by_value:
                    self._add(secret, value)
        if len(self._by_value) == before:
            return False
        forms: dict[str, Form] = {}
        for value, name in self._by_value.items():
            for form in forms_of(value, name):
                forms.setdefault(form.text, form)
        self._forms = tuple(forms.values())
        self._probes = tuple(dict.fromkeys(probe_of(form) for form in self._forms))
        self._filled = {form.placeholder: form.text for form in self._forms}
        return True

    def include(self, component: object) -> None:
        """Also hide the secrets of a component, such as an agent that joins a run.

        Repeated calls have no effect.
        """
        with suppress(TypeError):  # dicts and None support no hash or weak reference
            if component in self._included:
                return
        search = SecretSearch()
        self.add(list(search.search(component)))
        # Subagents are included again when they run, and their tree may be deep.
        for included in (component, *search.components):
            with suppress(TypeError):
                self._included.add(included)

    def _current_probes(self) -> tuple[str, ...]:
        if self._revision != learned.revision:
            self._revision = learned.revision
            self.add(learned.all())
        return self._probes

    def _add(self, secret: Secret, value: str) -> None:
        if reason := weakness_of(value, is_named=secret.is_named):
            if secret.is_named and secret.warns and value.lower() not in _NO_KEYS and secret.name not in _warned:
                _warned.add(secret.name)
                _log.warning(
                    "%s is not hidden in records and logs, because %s: use a longer, random value",
                    secret.name or "a secret",
                    reason,
                )
            return
        base = _NAME_CHARACTERS.sub("_", secret.name).strip("_.-") or "unnamed"
        name, number = base, 1
        while name in self._names:
            number += 1
            name = f"{base}#{number}"
        self._names[name] = value
        self._by_value[value] = name

    # --- texts and values ---

    def are_in(self, text: str) -> bool:
        """Return True if the text contains a secret or the start of a secret, in any encoding."""
        return self.hide(text) != text

    def may_be_in(self, json_text: str) -> bool:
        """Quickly check a JSON text. Return False if no value contains a secret, or True if a value might."""
        for probe in self._current_probes():
            if probe in json_text:
                return True
        # Arguments are JSON inside JSON, where any character may be escaped.
        return bool(self._probes) and "\\\\u" in json_text

    def hide(self, text: str) -> str:
        """Replace secrets in text with placeholders.

        If the text is JSON, such as a call's arguments, it remains valid JSON.
        """
        for probe in self._current_probes():
            if probe in text:
                break
        else:
            # Probes are ASCII letters and digits, which no JSON escape but \u can spell.
            if not self._probes or "\\u" not in text:
                return text
        if text.lstrip()[:1] in ("{", "["):
            return self._hide_in_json(text)
        return self._replace(text)

    def hide_pieces(self, pieces: Sequence[str]) -> list[str]:
        """Replace secrets with placeholders in text that is split into pieces. A secret may span several pieces."""
        whole = "".join(pieces)
        spans = self._spans(whole) if any(probe in whole for probe in self._current_probes()) else []
        if not spans:
            return list(pieces)
        hidden, start = [], 0
        for piece in pieces:
            hidden.append(_part_of(whole, start, start + len(piece), spans))
            start += len(piece)
        return hidden

    def hide_value(self, value: Any) -> Any:
        """Replace secrets in a value's strings with placeholders. Keys are unchanged."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {key: self.hide_value(entry) for key, entry in value.items()}
        return [self.hide_value(entry) for entry in value] if isinstance(value, list | tuple) else value

    def hide_fields(self, value: _T) -> _T:
        """Convert messages, events or entries to plain values, with placeholders for secrets.

        Names, roles and ids are unchanged.
        """
        hidden: Any = self._hide_fields(value)
        result: _T = hidden
        return result

    def _hide_fields(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {key: self._hide_field(key, entry) for key, entry in value.items()}
        return [self._hide_fields(entry) for entry in value] if isinstance(value, list | tuple) else value

    def _hide_field(self, key: object, value: Any) -> Any:
        if key in _FREE:
            return self.hide_value(value)
        return value if key in STRUCTURE else self._hide_fields(value)

    def pending_in(self, text: str) -> int:
        """Return the number of characters at the end of the text that may be the start of a secret."""
        most = 0
        for form in self._forms:
            for size in range(min(len(form.text) - 1, len(text)), most, -1):
                if text.endswith(form.text[:size]):
                    most = size
                    break
        return most

    def _hide_in_json(self, text: str) -> str:
        """Hide secrets in a JSON text's strings, regardless of escaping. The layout is preserved if possible."""
        replaced = self._replace(text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return replaced
        hidden = self.hide_value(value)
        try:
            if _any_placeholder(json.loads(replaced)) == _any_placeholder(hidden):
                return replaced
        except ValueError:  # a secret that looks like JSON was found across the structure
            pass
        if hidden != value:
            text = json.dumps(hidden, ensure_ascii=False)
        return self._replace(text)  # hides such a secret nevertheless

    def _replace(self, text: str) -> str:
        spans = self._spans(text)
        return _part_of(text, 0, len(text), spans) if spans else text

    def find(self, text: str, *, any_case: bool = False) -> list[tuple[int, int, str]]:
        """Return the positions of secrets in the text with their placeholders, in order and without overlaps.

        Args:
            text: Any text.
            any_case: True to ignore case. Servers may change the case of a secret.
        """
        self._current_probes()
        lowered = lower_each(text) if any_case else ""
        if lowered:
            return self._merge((*self._spans_in(text), *self._spans_in(lowered, lower_each)))
        return self._spans(text)

    def _spans(self, text: str) -> list[tuple[int, int, str]]:
        return self._merge(self._spans_in(text))

    @staticmethod
    def _merge(candidates: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
        spans: list[tuple[int, int, str]] = []
        for start, end, placeholder in sorted(candidates, key=lambda span: (span[0], -span[1])):
            if not spans or start >= spans[-1][1]:
                spans.append((start, end, placeholder))
            elif end > spans[-1][1]:
                spans[-1] = (spans[-1][0], end, HIDDEN_PARTS)
        return spans

    def _spans_in(self, text: str, change: Callable[[str], str] = str) -> Iterator[tuple[int, int, str]]:
        for form in self._forms:
            whole, least = change(form.text), change(form.least)
            at = text.find(least)
            while at >= 0:
                if text.startswith(whole, at):
                    end = at + len(whole)
                    yield at, end, form.placeholder
                else:
                    size = _common_length(whole, text[at : at + len(whole)])
                    end = at + size
                    yield at, end, f"{form.placeholder[:-1]}:{size}]"
                at = text.find(least, end)

    # --- restoring ---

    def fill(self, value: Any) -> Any:
        """Replace placeholders in a value with the known secrets.

        Only use this method for values that provably contained the secrets (see `unseal`), because models can write
        placeholders, too.
        """
        if isinstance(value, str):
            return _PLACEHOLDER.sub(self._fill_one, value) if "[secret:" in value else value
        if isinstance(value, Mapping):
            return {key: self.fill(entry) for key, entry in value.items()}
        return [self.fill(entry) for entry in value] if isinstance(value, list | tuple) else value

    def _fill_one(self, match: re.Match[str]) -> str:
        whole = self._filled.get(match[0])
        if whole is not None:
            return whole
        stem, _, size = match[0][:-1].rpartition(":")
        known = self._filled.get(f"{stem}]", "")
        return known[: int(size)] if known and size.isdigit() else match[0]

    def seal(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Hide the secrets in an object as `hide_fields` does. If anything changed, add a digest of the original.

        Computing the digest takes tens of milliseconds, which slows down attempts to guess a weak secret from it. In an
        event loop, call this method in a worker thread.
        """
        hidden = self.hide_fields(dict(value))
        if hidden == value:
            return hidden
        return {**hidden, SEAL: digest_of(value, is_secret=True)}

    def unseal(self, value: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Restore a sealed object.

        Return (original, True), or (sealed form, False) if a secret is missing or has changed.

        Objects without a digest are returned unchanged, even if their text contains apparent placeholders.
        """
        rest = dict(value)
        seal = rest.pop(SEAL, None)
        if seal is None:
            return rest, True
        filled = self.fill(rest)
        return (filled, True) if has_digest(filled, str(seal)) else (rest, False)

    def as_restored(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the same object as sealing and unsealing would, without computing a digest."""
        hidden = self.hide_fields(dict(value))
        filled: dict[str, Any] = self.fill(hidden)
        return filled if filled == value else hidden


def lower_each(text: str) -> str:
    """Convert text to lower case.

    Characters whose lower case is longer are left alone, so the length stays the same.
    """
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


class HideInLogs(logging.Filter):
    """Logging filter that hides secrets in records and tracebacks: `handler.addFilter(HideInLogs(secrets))`."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Hide secrets in the record, for this handler and all later handlers. Records are never dropped."""
        text = record.getMessage()
        trace = record.exc_text or (_FORMATTER.formatException(record.exc_info) if record.exc_info else "")
        hidden, hidden_trace = self._secrets.hide(text), self._secrets.hide(trace)
        if (hidden, hidden_trace) != (text, trace):
            record.msg, record.args = hidden, ()
            record.exc_info, record.exc_text = None, hidden_trace or None
        return True


def secrets_of(*components: object, settings: KnowsSecrets | None = None) -> Secrets:
    """Collect the secrets in the environment, the user's settings and components, including everything they use.

    Args:
        components: The components. For an agent, the model, tools, subagents and store are included.
        settings: The user's settings.
    """
    named = settings.named_secrets() if settings else {}
    secrets = Secrets([*environment_secrets(), *(Secret(name, value) for name, value in named.items())])
    for component in components:
        secrets.include(component)
    return secrets


def _any_placeholder(value: Any) -> Any:
    """Return a value with all placeholders made equal, regardless of the encodings of their secrets."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(HIDDEN_PARTS, value)
    if isinstance(value, dict):
        return {key: _any_placeholder(entry) for key, entry in value.items()}
    return [_any_placeholder(entry) for entry in value] if isinstance(value, list) else value


def placeholders_in(text: str) -> list[str]:
    """Return the placeholders in a text, without duplicates."""
    return [*dict.fromkeys(match[0] for match in _PLACEHOLDER.finditer(text))]


def digest_of(value: object, *, is_secret: bool) -> str:
    """Return a digest that identifies a plain value.

    Args:
        value: A JSON-compatible value.
        is_secret: True if the value contains a secret. Computing the digest then takes at least 13 ms, which slows down
            guessing.
    """
    return _digest(value, os.urandom(16).hex() if is_secret else "")


def has_digest(value: object, digest: str) -> bool:
    """Return True if `digest` is the value's digest, as computed by `digest_of`."""
    return _digest(value, digest.rpartition(":")[0]) == digest


def _digest(value: object, salt: str) -> str:
    import hashlib  # rarely needed

    text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    if not salt:
        return hashlib.sha256(text).hexdigest()
    return f"{salt}:{hashlib.scrypt(text, salt=salt.encode(), n=2**13, r=8, p=1, dklen=16).hex()}"


def _common_length(first: str, second: str) -> int:
    for at, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return at
    return min(len(first), len(second))


def _part_of(whole: str, start: int, end: int, spans: Sequence[tuple[int, int, str]]) -> str:
    """Return a slice of text in which a placeholder is at the start of each secret."""
    kept, position = [], start
    for first, last, placeholder in spans:
        if last <= start or first >= end:
            continue
        kept.append(whole[position : max(first, position)])
        if first >= start:
            kept.append(placeholder)
        position = min(last, end)
    kept.append(whole[position:end])
    return "".join(kept)


def hide_in_addresses(text: str) -> str:
    """Apply `hide_in_address` to each address in the text."""
    return _URL.sub(lambda match: hide_in_address(match[0]), text) if "://" in text else text


def hide_in_address(address: str) -> str:
    """Replace the password, the keys in the query, and random parts of the path of an address with placeholders."""
    return Secrets(replace(secret, warns=False) for secret in secrets_in_address(address, "address")).hide(address)
