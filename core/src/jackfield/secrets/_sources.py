"""Find secrets in settings, components, addresses and the environment, and register secrets that appear at run time."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jackfield._secretsources import HasSecrets
from jackfield.secrets._values import NAMED_LIKE_SECRETS, Secret, is_secret
from jackfield.secrets._weakness import looks_random

_IN_ENVIRONMENT = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:$|_)", re.IGNORECASE)
_MAY_ALL_BE_SECRET = re.compile(r"(^|_)(headers|cookies|env|environment)$", re.IGNORECASE)
_NOT_SECRET_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
_NO_SOURCES = (type(None), bool, int, float, bytes, type)
_SCHEMAS = frozenset({"parameters", "schema", "schemas", "functions", "host"})  # large values without secrets


def secrets_in(value: object, name: str = "") -> Iterator[Secret]:
    """Yield the secrets in a value and in everything that it uses.

    The following count as secrets: `SecretStr`s, settings with names typical of secrets (`is_secret`), header values,
    and passwords, keys and random parts of addresses. Components are searched using `secret_sources`. Other objects are
    not searched.

    Args:
        value: Settings, a component, or any collection of these.
        name: The value's name, used in the names of the secrets.
    """
    yield from SecretSearch().search(value, name)


class SecretSearch:
    """A search for secrets that visits each value only once.

    Attributes:
        components: The components visited, in search order.
    """

    def __init__(self) -> None:
        self.components: list[object] = []
        self._entered: set[int] = set()

    def search(self, value: Any, name: str = "") -> Iterator[Secret]:
        """Yield the secrets in a value; see `secrets_in`."""
        if isinstance(value, str):
            yield from secrets_in_address(value, name)
        elif isinstance(value, Secret):
            yield value
        elif hasattr(value, "get_secret_value"):  # pydantic's SecretStr, or any class like it
            yield from _secrets_in_setting(str(value.get_secret_value()), name)
        elif id(value) not in self._entered and not isinstance(value, _NO_SOURCES):
            self._entered.add(id(value))
            yield from self._search_parts(value, name)

    def _search_parts(self, value: Any, name: str) -> Iterator[Secret]:
        if isinstance(value, Mapping):
            yield from self._search_settings(value, name)
        elif isinstance(value, list | tuple | set | frozenset):
            for entry in tuple(value):
                yield from self.search(entry, name)
        elif isinstance(value, HasSecrets):
            self.components.append(value)
            label = getattr(value, "name", None)
            for source in value.secret_sources():
                yield from self.search(source, label if isinstance(label, str) and label else name)
        elif hasattr(type(value), "model_fields"):
            yield from self._search_settings({**value.__dict__, **(value.__pydantic_extra__ or {})}, name)
        elif is_dataclass(value):
            attributes = {field.name: getattr(value, field.name, None) for field in fields(value)}
            yield from self._search_settings(attributes, name)

    def _search_settings(self, settings: Mapping[Any, Any], name: str) -> Iterator[Secret]:
        # A copy, because these may be the attributes of a component to which another thread adds.
        for key, value in dict(settings).items():
            text = str(key)
            if text in _SCHEMAS:
                continue
            label = _joined_name(name, text)
            if _MAY_ALL_BE_SECRET.search(text) and isinstance(value, Mapping):
                yield from secrets_in_headers(value, label)
            elif isinstance(value, str) and (NAMED_LIKE_SECRETS.search(text) or is_secret(text, value)):
                yield from _secrets_in_setting(value, label)
            elif NAMED_LIKE_SECRETS.search(text) and isinstance(value, list | tuple):
                for entry in value:
                    if isinstance(entry, str):
                        yield from _secrets_in_setting(entry, label)
            else:
                yield from self.search(value, label)


def _joined_name(name: str, key: str) -> str:
    """Name a setting after its component and key, leaving out the levels in between, which would not help a reader."""
    if key.strip("_") in ("config", "cfg", "generate_cfg", "given", "settings"):
        return name
    component = name.rpartition(".")[2]
    return f"{component}.{key.strip('_')}" if component else key.strip("_")


def _secrets_in_setting(value: str, name: str) -> Iterator[Secret]:
    yield Secret(name, value)
    yield from secrets_in_address(value, name)


def secrets_in_address(address: str, name: str) -> Iterator[Secret]:
    """Yield an address's password, the keys in its query, and random parts of its path and query."""
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
        if NAMED_LIKE_SECRETS.search(key) or key.lower() in ("sig", "signature", "auth", "code", "apikey"):
            yield Secret(f"{name}.{key}", value)
        elif looks_random(value):
            yield Secret(f"{name}.{key}", value, is_named=False)
    for piece in (*parts.path.split("/"), parts.fragment):
        if looks_random(unquote(piece)):
            yield Secret(f"{name}.path", unquote(piece), is_named=False)


def secrets_in_headers(headers: Mapping[Any, Any], name: str = "headers") -> Iterator[Secret]:
    """Yield the values of headers or environment variables, and the words in them.

    For `Bearer KEY`, this includes the key.
    """
    for key, value in dict(headers).items():
        shown = value.get_secret_value() if hasattr(value, "get_secret_value") else value
        if not isinstance(shown, str) or str(key).lower() in _NOT_SECRET_HEADERS:
            continue
        if shown.startswith("${") and shown.endswith("}"):
            continue  # the value only names a variable
        label = _joined_name(name, str(key))
        is_named = bool(NAMED_LIKE_SECRETS.search(str(key)))
        words = shown.split()
        yield Secret(label, shown, is_named=is_named and len(words) < 2)
        if len(words) > 1:
            yield from (Secret(label, word, is_named=False) for word in words)
        yield from secrets_in_address(shown, label)


def environment_secrets() -> Iterator[Secret]:
    """Yield environment variables with names typical of secrets, and passwords and keys in addresses."""
    for name, value in os.environ.items():
        if _IN_ENVIRONMENT.search(name) or is_secret(name, value):
            yield Secret(name, value, warns=False)  # the variable may belong to another program
        yield from secrets_in_address(value, name)


class _LearnedSecrets:
    """Secrets registered in this process. A token is hidden everywhere, regardless of which agent received it."""

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


learned = _LearnedSecrets()


def learn_secret(name: str, value: str | None) -> None:
    """Register a secret that appears at run time, such as an access token.

    From then on, the secret is hidden in everything that the process writes. Only the last thousand secrets are kept.

    Args:
        name: The setting or server that the secret belongs to.
        value: The secret. None and "" are ignored.
    """
    if value:
        learned.add(Secret(name, value))
