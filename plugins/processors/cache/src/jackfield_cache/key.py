"""Cache keys: a hash of everything in a request that can change its answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from jackfield.config import GenerateConfig
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest

FORMAT = 2
"""Incremented when request hashing or the answer format changes, so that older answers are never found."""

# Options that only affect waiting or the caller do not change an answer, and headers contain API keys. Any option that
# a newer core adds is part of the key.
_LEFT_OUT = frozenset(
    {
        "max_retries",
        "max_retry_delay",
        "request_timeout",
        "event_timeout",
        "deadline",
        "extra_headers",
        "max_input_tokens",
        "lang",
        "send_stop",
    }
)


class NotHashable(ValueError):  # noqa: N818 - the name describes the request
    """A request contains a value that is not JSON, so equal requests cannot be recognised."""


def key_of(request: ChatRequest, scope: str = "") -> bytes:
    """Return a 32-byte key that is the same for equal requests. Media files in the request are read.

    The key includes the service: `scope`, or the server named in the request.

    Key order matters, because models read schemas as text: reordering a schema makes a different request.

    Raises:
        NotHashable: A schema or `extra_body` contains a value that is not JSON.
    """
    asked = [
        FORMAT,
        scope or request.server,
        request.model,
        request.lang,
        [_message(message) for message in request.messages],
        request.functions,
        list(_options(request.config)),
    ]
    try:
        text = json.dumps(asked, default=_plain, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise NotHashable(
            f"a request to {request.model} contains a value that is not JSON-serializable: {error}"
        ) from error
    return hashlib.sha256(text.encode("ascii")).digest()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__}")


def _options(config: GenerateConfig) -> Iterable[tuple[str, Any]]:
    """Yield the options that are set, by name, so that adding an option to the core changes no existing key."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if name not in _LEFT_OUT and value is not None and value not in ((), {}):
            yield name, value


def _message(message: Message) -> list[object]:
    call, origin = message.function_call, message.origin
    return [
        message.role,
        _content(message.content),
        None if message.reasoning_content is None else _content(message.reasoning_content),
        message.name,
        None if call is None else [call.name, call.arguments],
        message.function_id,
        None if origin is None else [origin.backend, origin.id, origin.data],
    ]


def _content(content: str | list[ContentItem]) -> str | list[Any]:
    if isinstance(content, str):
        return content
    return [_item(*item.get_type_and_value()) for item in content]


def _item(kind: str, value: object) -> list[object]:
    if kind == "text":
        return [kind, value]
    if kind == "file":  # the model also sees its name
        return [kind, value, _medium(value)]
    return [kind, _medium(value)]


def _medium(value: object) -> object:
    """Return a key for a medium or a nested list of media: a content hash for local files, otherwise the address."""
    if isinstance(value, Mapping):
        return {name: _medium(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_medium(one) for one in value]
    path = _path_of(value) if isinstance(value, str) else None
    if path is None:
        return value
    with path.open("rb") as file:
        return ["content", hashlib.file_digest(file, "sha256").hexdigest()]


def _path_of(address: str) -> Path | None:
    """Return the file that an address refers to, or None if it is not a file."""
    if address.startswith("file:"):
        path = Path(url2pathname(urlsplit(address).path))
    elif _is_no_path(address):
        return None
    else:
        path = Path(address)
    try:
        return path if path.is_file() else None
    except OSError:  # the text is not a valid path
        return None


def _is_no_path(address: str) -> bool:
    return address.startswith("data:") or "://" in address or "\0" in address or len(address) > 4096
