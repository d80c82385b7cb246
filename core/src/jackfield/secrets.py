"""Hide secrets in everything that is written or printed: the one component that does it, for every writer.

It works on values before they become text: strings in messages, arguments and results. Names of fields, roles, ids and
other structure are never touched. A secret becomes `[secret:NAME]`, so that a run that is resumed where the secret is
known can put it back (`seal` and `unseal`).

Components state their secrets through `secret_sources`. Secrets that appear later, such as OAuth tokens, are announced
with `learn_secret`.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import threading
import weakref
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

__all__ = [
    "SEAL",
    "STRUCTURE",
    "HasSecrets",
    "HideInLogs",
    "Secret",
    "Secrets",
    "StatesSecrets",
    "digest_of",
    "environment_secrets",
    "has_digest",
    "hide_in_address",
    "is_secret",
    "learn_secret",
    "looks_random",
    "lower_each",
    "placeholders_in",
    "secrets_in",
    "secrets_of",
    "shows_no_user",
    "weakness_of",
]

_log = logging.getLogger("jackfield")
_T = TypeVar("_T")
_FORMATTER = logging.Formatter()

SHORTEST = 8
"""The least characters of a secret. NIST SP 800-63B asks for as many of a password that a person chooses."""
LEAST_BITS = 42.0
"""The least information of words and numbers that count as a secret, such as a passphrase: a letter of English words
has 2.62 bits (Shannon, Bell System Technical Journal, 1951), a digit 3.32. The longest word of our own format,
`reasoning_content`, has 41.9."""
_BITS_OF_LETTER, _BITS_OF_DIGIT = 2.62, 3.32
FEWEST_CHARACTERS = 5
"""The least different characters of a secret: `xxxxxxxx` is a placeholder."""

_NAMED_LIKE_SECRETS = re.compile(
    r"(^|[_-])(key|token|secret|password|passwd|credentials?|authorization|cookie|headers|dsn)$", re.IGNORECASE
)
_IN_ENVIRONMENT = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:$|_)", re.IGNORECASE)
_MAY_ALL_BE_SECRET = re.compile(r"(^|_)(headers|cookies|env|environment)$", re.IGNORECASE)
# What the large providers' keys begin with; what follows is not random in examples and tests only.
_PREFIX_OF_KEYS = re.compile(r"(?:sk|pk|rk|gsk|hf|tvly|xai|pplx|r8|gh[pousr]|github_pat|glpat|xox[abprs])[-_]\S{9,}$")
_SEPARATORS = re.compile(r"[\s\-_./:,@!?']+")
_WORD_OR_NUMBER = re.compile(r"\d+|[^\W\d_]+")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+")
_NUMBERED_WORD = re.compile(r"[^\W\d_]*\d{0,4}[^\W\d_]?")
_MIXED_PIECE = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}")
_PATH_OR_ADDRESS = re.compile(r"~?/|\.{1,2}/|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://")
_PLAIN_RUN = re.compile(r"[A-Za-z0-9]{3,}")
_NAME_CHARACTERS = re.compile(r"[^\w.-]+", re.ASCII)
_PLACEHOLDER = re.compile(r"\[secret(?::[\w.#-]+(?::[\w-]+)?(?::\d+)?)?\]", re.ASCII)
_NOT_SECRET_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
_NO_SOURCES = (type(None), bool, int, float, bytes, type)
# Keys that local servers want to have, whatever they are.
_NO_KEYS = frozenset({"", "-", "empty", "none", "null", "dummy", "local", "ollama", "test", "no-key", "not-needed"})
_SCHEMAS = frozenset({"parameters", "schema", "schemas", "functions", "host"})  # no secrets, and much to look at
_LEAST_OF_BASE64 = 20
HIDDEN_PARTS = "[secret]"
"""Stands where several secrets overlap; it cannot be put back."""
SEAL = "sealed"
"""The key under which an object has the digest of what it was before secrets were hidden."""

# What is never touched in a message, an event or an entry of a record.
STRUCTURE = frozenset({
    "event", "role", "name", "function_id", "call_id", "call_ids", "in_doubt", "approvals", "run_id", "agent", "agents",
    "by", "to", "kind", "stop_reason", "asked", "below", "place", "key", "id", "response_id", "format", "version",
    "session", "parent", "state", "model", "backend", "type", "case", "scorer", "digest", "digests", "since", "mode",
})  # fmt: skip
_FREE = frozenset({"metadata", "data", "extra", "extra_content"})  # the caller's own: anything may be in any place


class KnowsSecrets(Protocol):
    """Settings with keys and tokens by their names."""

    def named_secrets(self) -> Mapping[str, str]: ...


@runtime_checkable
class HasSecrets(Protocol):
    """A component that states its secrets."""

    def secret_sources(self) -> Iterable[object]:
        """Yield everything that may hold secrets: settings, `Secret`s, and other components."""


class StatesSecrets:
    """States every attribute as a source of secrets: settings, keys, and the components that it uses."""

    def secret_sources(self) -> Iterable[object]:
        """Yield everything that may hold secrets: settings, `Secret`s, and other components.

        Override it to add sources that no attribute holds: `yield from super().secret_sources()`.
        """
        yield getattr(self, "__dict__", {})


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that must not be written.

    Attributes:
        name: The setting or variable that it comes from, for placeholders and warnings.
        value: The secret itself.
        is_named: A setting declares it to be a secret; see `weakness_of`.
        warns: Its owner is warned if it is too weak to be hidden.
    """

    name: str
    value: str = field(repr=False)
    is_named: bool = True
    warns: bool = True


def is_secret(name: object, value: object) -> bool:
    """Return True if a setting is named like a secret, or if its value is an address with a user in it."""
    if isinstance(value, str) and "://" in value:
        return not shows_no_user(value)
    return value is not None and bool(_NAMED_LIKE_SECRETS.search(str(name)))


def shows_no_user(address: str) -> bool:
    """Return True if an address has neither a user name nor a password."""
    authority, _, path = address.partition("://")[2].partition("/")
    _, colon, port = authority.rpartition(":")
    # A password may contain a slash: the part before it is then no port.
    return "@" not in authority and not ("@" in path and colon and not port.isdigit())


def weakness_of(value: str, *, is_named: bool = True) -> str:
    """Return why a value is too short or too common to be hidden, or "".

    A text that appears in ordinary conversations cannot be hidden without changing them.

    Args:
        value: A key, password or token.
        is_named: A setting declares the value to be a secret. The values of environments and headers that only may be
            secret must look more like one.
    """
    if len(value) < SHORTEST:
        return f"it has fewer than {SHORTEST} characters"
    if len(set(value)) < FEWEST_CHARACTERS:
        return f"it has fewer than {FEWEST_CHARACTERS} different characters"
    if _PREFIX_OF_KEYS.match(value):
        return ""
    if _is_common(value, _is_word_or_number if is_named else _is_numbered_word):
        return "it consists of words and numbers"
    if not is_named and _PATH_OR_ADDRESS.match(value):
        return "it is a path or an address"
    return ""


def _is_common(value: str, is_common_token: Callable[[str], bool]) -> bool:
    """Return True for few words and numbers with separators between them."""
    tokens = [*filter(None, _SEPARATORS.split(value))]
    digits = sum(map(str.isdigit, value))
    bits = _BITS_OF_DIGIT * digits + _BITS_OF_LETTER * (sum(map(len, tokens)) - digits)
    return bits < LEAST_BITS and all(map(is_common_token, tokens))


def _is_word_or_number(token: str) -> bool:
    if not _WORD_OR_NUMBER.fullmatch(token):
        return False
    humps = _HUMPS.findall(token)  # a random mixture of cases has many
    return token.isdigit() or len(token) >= 3 * len(humps) or len(humps) == 1


def _is_numbered_word(token: str) -> bool:
    return _is_word_or_number(token) or bool(_NUMBERED_WORD.fullmatch(token))


# --- finding ----------------------------------------------------------------------------------------------------------


def secrets_in(value: object, name: str = "") -> Iterator[Secret]:
    """Yield the secrets in a value, and in everything that it uses.

    Secrets are `SecretStr`s, settings named like secrets (`is_secret`), the values of headers, and passwords, keys and
    random parts in addresses. Components are entered through `secret_sources`; other objects are not looked into.

    Args:
        value: Settings, a component, or any collection of these.
        name: Of the value, for the names of the secrets.
    """
    yield from _secrets_in(value, name, set())


class _Seen(set[int]):
    """The ids of values that were looked into, and the components among them."""

    def __init__(self) -> None:
        super().__init__()
        self.components: list[object] = []


def _secrets_in(value: Any, name: str, seen: set[int]) -> Iterator[Secret]:
    if isinstance(value, str):
        yield from _secrets_in_address(value, name)
    elif isinstance(value, Secret):
        yield value
    elif hasattr(value, "get_secret_value"):  # pydantic's SecretStr, or any class like it
        yield from _secrets_in_setting(str(value.get_secret_value()), name)
    elif id(value) not in seen and not isinstance(value, _NO_SOURCES):
        seen.add(id(value))
        yield from _secrets_in_parts(value, name, seen)


def _secrets_in_parts(value: Any, name: str, seen: set[int]) -> Iterator[Secret]:
    if isinstance(value, Mapping):
        yield from _secrets_in_settings(value, name, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for entry in value:
            yield from _secrets_in(entry, name, seen)
    elif isinstance(value, HasSecrets):
        if isinstance(seen, _Seen):
            seen.components.append(value)
        label = getattr(value, "name", None)
        for source in value.secret_sources():
            yield from _secrets_in(source, label if isinstance(label, str) and label else name, seen)
    elif hasattr(type(value), "model_fields"):
        yield from _secrets_in_settings({**value.__dict__, **(value.__pydantic_extra__ or {})}, name, seen)
    elif is_dataclass(value):
        held = {one.name: getattr(value, one.name, None) for one in fields(value)}
        yield from _secrets_in_settings(held, name, seen)


def _secrets_in_settings(settings: Mapping[Any, Any], name: str, seen: set[int]) -> Iterator[Secret]:
    for key, value in settings.items():
        text = str(key)
        if text in _SCHEMAS:
            continue
        inner = _joined_name(name, text)
        if _MAY_ALL_BE_SECRET.search(text) and isinstance(value, Mapping):
            yield from secrets_in_headers(value, inner)
        elif isinstance(value, str) and (_NAMED_LIKE_SECRETS.search(text) or is_secret(text, value)):
            yield from _secrets_in_setting(value, inner)
        elif _NAMED_LIKE_SECRETS.search(text) and isinstance(value, list | tuple):
            for entry in value:
                yield from _secrets_in_setting(entry, inner) if isinstance(entry, str) else ()
        else:
            yield from _secrets_in(value, inner, seen)


def _joined_name(name: str, key: str) -> str:
    """Name a setting by its component and its key: those in between say nothing to a reader."""
    if key.strip("_") in ("config", "cfg", "generate_cfg", "given", "settings"):
        return name
    return ".".join(filter(None, (name.rpartition(".")[2], key.strip("_"))))


def _secrets_in_setting(value: str, name: str) -> Iterator[Secret]:
    yield Secret(name, value)
    yield from _secrets_in_address(value, name)


def _secrets_in_address(address: str, name: str) -> Iterator[Secret]:
    """Yield the password of an address, keys in its query, and random parts of its path and query."""
    if "://" not in address:
        return
    try:
        parts = urlsplit(address)
        password = parts.password
    except ValueError:  # not an address after all
        return
    if password:
        yield Secret(f"{name}.password", password)
        yield Secret(f"{name}.password", unquote(password), is_named=False)
    for key, value in parse_qsl(parts.query):
        if _NAMED_LIKE_SECRETS.search(key) or key.lower() in ("sig", "signature", "auth", "code", "apikey"):
            yield Secret(f"{name}.{key}", value)
        elif looks_random(value):
            yield Secret(f"{name}.{key}", value, is_named=False)
    for written in filter(None, (*parts.path.split("/"), parts.fragment)):
        if looks_random(unquote(written)):
            yield Secret(f"{name}.path", unquote(written), is_named=False)


def hide_in_address(address: str) -> str:
    """Return an address with placeholders for its password, the keys in its query, and random parts of its path."""
    return Secrets(replace(secret, warns=False) for secret in _secrets_in_address(address, "address")).hide(address)


def looks_random(value: str) -> bool:
    """Return True if a value has twelve letters and digits in a row, with both among them, as tokens in paths have."""
    return bool(_MIXED_PIECE.search(value))


def secrets_in_headers(headers: Mapping[Any, Any], name: str = "headers") -> Iterator[Secret]:
    """Yield the values of headers or of an environment, and their words: `Bearer KEY` hides the key."""
    for key, value in headers.items():
        shown = value.get_secret_value() if hasattr(value, "get_secret_value") else value
        if not isinstance(shown, str) or str(key).lower() in _NOT_SECRET_HEADERS:
            continue
        if shown.startswith("${") and shown.endswith("}"):
            continue  # names a variable
        label = _joined_name(name, str(key))
        is_named = bool(_NAMED_LIKE_SECRETS.search(str(key)))
        words = shown.split()
        yield Secret(label, shown, is_named=is_named and len(words) < 2)
        if len(words) > 1:
            yield from (Secret(label, word, is_named=False) for word in words)
        yield from _secrets_in_address(shown, label)


# --- secrets that appear later ----------------------------------------------------------------------------------------


class _Learned:
    """Secrets that were announced in this process. A token is secret to every writer, whichever agent got it."""

    most = 1000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: dict[str, Secret] = {}
        self.revision = 0

    def add(self, secret: Secret) -> None:
        with self._lock:
            if secret.value not in self._secrets:
                self._secrets[secret.value] = secret
                while len(self._secrets) > self.most:
                    del self._secrets[next(iter(self._secrets))]
                self.revision += 1

    def all(self) -> list[Secret]:
        with self._lock:
            return [*self._secrets.values()]


_learned = _Learned()
_warned: set[str] = set()


def learn_secret(name: str, value: str | None) -> None:
    """Announce a secret that appears while the program runs, such as an access token.

    Every writer of the process hides it from now on. The last thousand are known.

    Args:
        name: The setting or server that it belongs to.
        value: The secret; None and "" are ignored.
    """
    if value:
        _learned.add(Secret(name, value))


# --- hiding -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """One way in which a secret may be written.

    Attributes:
        text: The whole of it.
        least: The shortest beginning that is hidden as well.
        placeholder: Stands for the whole; without its last character, for a beginning, with the length behind it.
    """

    text: str = field(repr=False)
    least: str = field(repr=False)
    placeholder: str


class Secrets:
    """Hides known secrets in values, and puts them back.

    Args:
        known: Secrets to hide. Those that are too weak are left as they are, with one warning for each name.
    """

    def __init__(self, known: Iterable[Secret] = ()) -> None:
        self._by_value: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._forms: tuple[_Form, ...] = ()
        self._probes: tuple[str, ...] = ()
        self._filled: dict[str, str] = {}
        self._included: weakref.WeakSet[Any] = weakref.WeakSet()
        self._revision = 0
        self.add(known)

    def __repr__(self) -> str:
        return f"<{len(self._by_value)} secrets>"

    def __reduce__(self) -> tuple[type[Secrets], tuple[()]]:
        return Secrets, ()  # another process has its own

    def __bool__(self) -> bool:
        return bool(self._by_value)

    def add(self, known: Iterable[Secret]) -> bool:
        """Hide these as well; return True if one of them is new."""
        before = len(self._by_value)
        for secret in known:
            for value in dict.fromkeys((secret.value, secret.value.strip())):
                if value and value not in self._by_value:
                    self._add(secret, value)
        if len(self._by_value) == before:
            return False
        forms: dict[str, _Form] = {}
        for value, name in self._by_value.items():
            for form in _forms_of(value, name):
                forms.setdefault(form.text, form)
        self._forms = tuple(forms.values())
        self._probes = tuple(dict.fromkeys(map(_probe_of, self._forms)))
        self._filled = {form.placeholder: form.text for form in self._forms}
        return True

    def include(self, component: object) -> None:
        """Hide the secrets of a component, such as an agent that is asked while a run goes on; twice does nothing."""
        with suppress(TypeError):  # a dict, or None: it cannot be remembered
            if component in self._included:
                return
        seen = _Seen()
        self.add(list(_secrets_in(component, "", seen)))
        # All that it uses, too: the helpers of an agent are included again when they are asked, and a tree is deep.
        for one in (component, *seen.components):
            with suppress(TypeError):
                self._included.add(one)

    def _current_probes(self) -> tuple[str, ...]:
        if self._revision != _learned.revision:
            self._revision = _learned.revision
            self.add(_learned.all())
        return self._probes

    def _add(self, secret: Secret, value: str) -> None:
        if reason := weakness_of(value, is_named=secret.is_named):
            if secret.is_named and secret.warns and value.lower() not in _NO_KEYS and secret.name not in _warned:
                _warned.add(secret.name)
                _log.warning(
                    "%s is not hidden in records and logs, because %s: use a longer, random one",
                    secret.name or "a secret",
                    reason,
                )
            return
        base = _NAME_CHARACTERS.sub("_", secret.name).strip("_.-") or "unnamed"
        names = itertools.chain([base], (f"{base}#{number}" for number in itertools.count(2)))
        name = next(one for one in names if one not in self._names)
        self._names[name] = value
        self._by_value[value] = name

    # --- texts and values ---

    def are_in(self, text: str) -> bool:
        """Return True if a text contains a secret, or a beginning of one, in any form."""
        return self.hide(text) != text

    def may_be_in(self, json_text: str) -> bool:
        """Return False if no value in a JSON text contains a secret. Fast; True means that one may."""
        for probe in self._current_probes():
            if probe in json_text:
                return True
        # Arguments are JSON inside of JSON, where any character may be written as an escape.
        return bool(self._probes) and ("\\\\u" in json_text or "\\\\/" in json_text)

    def hide(self, text: str) -> str:
        """Return a text with placeholders for secrets.

        A text that is JSON itself, such as the arguments of a call, stays JSON.
        """
        for probe in self._current_probes():
            if probe in text:
                break
        else:
            if not self._probes or ("\\u" not in text and "\\/" not in text):
                return text
        if text.lstrip()[:1] in ("{", "["):
            return self._hide_in_json(text)
        return self._replace(text)

    def hide_pieces(self, pieces: Sequence[str]) -> list[str]:
        """Return the pieces of one text with placeholders for secrets, even those cut in two."""
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
        """Return a value with placeholders for the secrets in its strings; keys stay."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {key: self.hide_value(entry) for key, entry in value.items()}
        return [*map(self.hide_value, value)] if isinstance(value, list | tuple) else value

    def hide_fields(self, told: _T) -> _T:
        """Return messages, events or entries, as plain values, with placeholders; names, roles and ids stay."""
        hidden: Any = self._hide_fields(told)
        result: _T = hidden
        return result

    def _hide_fields(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {key: self._hide_field(key, entry) for key, entry in value.items()}
        return [*map(self._hide_fields, value)] if isinstance(value, list | tuple) else value

    def _hide_field(self, key: object, value: Any) -> Any:
        if key in _FREE:
            return self.hide_value(value)
        return value if key in STRUCTURE else self._hide_fields(value)

    def pending_in(self, text: str) -> int:
        """Return how many characters at the end of a text may be the beginning of a secret."""
        most = 0
        for form in self._forms:
            for size in range(min(len(form.text) - 1, len(text)), most, -1):
                if text.endswith(form.text[:size]):
                    most = size
                    break
        return most

    def _hide_in_json(self, text: str) -> str:
        """Hide secrets in the strings of a JSON text, however these are escaped; its layout stays if it can."""
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
        return self._replace(text)  # such a secret is hidden even so

    def _replace(self, text: str) -> str:
        spans = self._spans(text)
        return _part_of(text, 0, len(text), spans) if spans else text

    def find(self, text: str, *, any_case: bool = False) -> list[tuple[int, int, str]]:
        """Return where secrets begin and end in a text, with their placeholders, in order; none overlaps another.

        Args:
            text: Any text.
            any_case: Find them in capitals and in lower case as well, as servers repeat them.
        """
        self._current_probes()
        lowered = lower_each(text) if any_case else ""
        if lowered:
            return self._merged((*self._found_in(text), *self._found_in(lowered, lower_each)))
        return self._spans(text)

    def _spans(self, text: str) -> list[tuple[int, int, str]]:
        return self._merged(self._found_in(text))

    @staticmethod
    def _merged(unordered: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
        found = sorted(unordered, key=lambda span: (span[0], -span[1]))
        spans: list[tuple[int, int, str]] = []
        for start, end, placeholder in found:
            if not spans or start >= spans[-1][1]:
                spans.append((start, end, placeholder))
            elif end > spans[-1][1]:
                spans[-1] = (spans[-1][0], end, HIDDEN_PARTS)
        return spans

    def _found_in(self, text: str, change: Callable[[str], str] = str) -> Iterator[tuple[int, int, str]]:
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

    # --- putting back ---

    def fill(self, value: Any) -> Any:
        """Return a value with the known secrets in place of their placeholders.

        Only for what is proven to have contained them, see `unseal`: a model can write a placeholder, too.
        """
        if isinstance(value, str):
            return _PLACEHOLDER.sub(self._fill_one, value) if "[secret:" in value else value
        if isinstance(value, Mapping):
            return {key: self.fill(entry) for key, entry in value.items()}
        return [*map(self.fill, value)] if isinstance(value, list | tuple) else value

    def _fill_one(self, match: re.Match[str]) -> str:
        whole = self._filled.get(match[0])
        if whole is not None:
            return whole
        stem, _, size = match[0][:-1].rpartition(":")
        known = self._filled.get(f"{stem}]", "")
        return known[: int(size)] if known and size.isdigit() else match[0]

    def seal(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object as `hide_fields` does; if that changes it, with a digest of what it was.

        The digest takes tens of milliseconds to compute, so that guessing a weak secret from it takes long. On an event
        loop, compute it in a worker thread.
        """
        hidden = self.hide_fields(dict(told))
        if hidden == told:
            return hidden
        return {**hidden, SEAL: digest_of(told, is_secret=True)}

    def unseal(self, told: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return what `seal` was given, and True; or the hidden form and False if a secret is missing or has changed.

        An object without a digest is returned as it is, even if it contains what looks like a placeholder.
        """
        rest = dict(told)
        seal = rest.pop(SEAL, None)
        if seal is None:
            return rest, True
        filled = self.fill(rest)
        return (filled, True) if has_digest(filled, str(seal)) else (rest, False)

    def as_restored(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `unseal` gives for what `seal` made of an object, without computing a digest."""
        hidden = self.hide_fields(dict(told))
        filled: dict[str, Any] = self.fill(hidden)
        return filled if filled == told else hidden


def lower_each(text: str) -> str:
    """Return a text in lower case, as long as before: a few characters have a longer lower case."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


class HideInLogs(logging.Filter):
    """Hides secrets in what is logged, tracebacks included: `handler.addFilter(HideInLogs(secrets))`."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Hide secrets in the record, for all handlers that come after; it is always shown."""
        text = record.getMessage()
        trace = record.exc_text or (_FORMATTER.formatException(record.exc_info) if record.exc_info else "")
        hidden, hidden_trace = self._secrets.hide(text), self._secrets.hide(trace)
        if (hidden, hidden_trace) != (text, trace):
            record.msg, record.args = hidden, ()
            record.exc_info, record.exc_text = None, hidden_trace or None
        return True


def environment_secrets() -> Iterator[Secret]:
    """Yield the environment variables named like secrets, and the passwords and keys in addresses."""
    for name, value in os.environ.items():
        if _IN_ENVIRONMENT.search(name) or is_secret(name, value):
            yield Secret(name, value, warns=False)  # it may belong to another program
        yield from _secrets_in_address(value, name)


def secrets_of(*components: object, settings: KnowsSecrets | None = None) -> Secrets:
    """Return the secrets of the environment, of the user's settings, and of components with all that they use.

    Args:
        components: Such as an agent: its model, tools, helpers and store are included.
        settings: The user's.
    """
    named = settings.named_secrets() if settings else {}
    secrets = Secrets([*environment_secrets(), *(Secret(name, value) for name, value in named.items())])
    for component in components:
        secrets.include(component)
    return secrets


def _any_placeholder(value: Any) -> Any:
    """A value in which placeholders of the same secret in different forms are the same."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(HIDDEN_PARTS, value)
    if isinstance(value, dict):
        return {key: _any_placeholder(entry) for key, entry in value.items()}
    return [*map(_any_placeholder, value)] if isinstance(value, list) else value


def placeholders_in(text: str) -> list[str]:
    """Return the placeholders in a text, each once."""
    return [*dict.fromkeys(match[0] for match in _PLACEHOLDER.finditer(text))]


def digest_of(value: object, *, is_secret: bool) -> str:
    """Return a digest by which a plain value is known again.

    Args:
        value: Of plain JSON.
        is_secret: The value contains a secret. Its digest takes 13 ms or more to compute, so that guessing takes long.
    """
    return _digest(value, os.urandom(16).hex() if is_secret else "")


def has_digest(value: object, digest: str) -> bool:
    """Return True if a value has a digest that `digest_of` gave."""
    return _digest(value, digest.rpartition(":")[0]) == digest


def _digest(value: object, salt: str) -> str:
    import hashlib  # rarely needed

    text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    if not salt:
        return hashlib.sha256(text).hexdigest()
    return f"{salt}:{hashlib.scrypt(text, salt=salt.encode(), n=2**13, r=8, p=1, dklen=16).hex()}"


def _common_length(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _part_of(whole: str, start: int, end: int, spans: Sequence[tuple[int, int, str]]) -> str:
    """A part of a text with placeholders; one stands where its secret begins."""
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


def _forms_of(value: str, name: str) -> Iterator[_Form]:
    """Yield a secret as it is, as JSON, `repr` and URLs write it, and in base64 at each of its three places."""
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
        # Searching for a longer beginning is faster, and base64 is seldom cut.
        least = text[:_LEAST_OF_BASE64] if form.startswith("base64") else _least_of(text)
        yield _Form(text, least, f"[secret:{name}:{form}]" if form else f"[secret:{name}]")


def _in_base64(value: str) -> Iterator[tuple[str, str]]:
    raw = value.encode("utf-8", "surrogatepass")
    for encode, name in ((b64encode, "base64"), (urlsafe_b64encode, "base64url")):
        for before in range(3):
            # Characters at the ends depend on the bytes beside the secret.
            text = encode(bytes(before) + raw).decode()
            cut = (before + 1) if before else 0
            yield f"{name}-{before}", text[cut : len(text) if (before + len(raw)) % 3 == 0 else -4]


def _least_of(text: str) -> str:
    """The shortest beginning that is no common text: `sk-proj-` is one that many texts contain."""
    for size in range(SHORTEST, min(len(text), 64)):
        if len(set(text[:size])) >= FEWEST_CHARACTERS and not _is_common(text[:size], _is_word_or_number):
            return text[:size]
    return text


def _probe_of(form: _Form) -> str:
    """A part of the form that is the same in every JSON text; '' if there is none."""
    return max(_PLAIN_RUN.findall(form.least), key=len, default="")
