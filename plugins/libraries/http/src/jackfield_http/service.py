"""Call services for tools: one request, one JSON value, and errors that a model can read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

from pydantic import Field, SecretStr

from jackfield.config import Config
from jackfield.errors import (
    ConfigError,
    ModelAuthError,
    ModelRequestError,
    ModelServiceError,
    RateLimitedError,
    ToolServiceError,
)
from jackfield.models import retry_request
from jackfield.secrets import ForgetLocals
from jackfield.settings import Settings
from jackfield_http.client import Reply
from jackfield_http.failures import Failures, class_of_status
from jackfield_http.jsonbytes import json_bytes, json_value
from jackfield_http.keys import KeyRule, find_key
from jackfield_http.server import Access, Post, Server, configured_url

T = TypeVar("T")

MAX_BYTES = 5_000_000
"""The maximum size of a service's response. Tools request no more than a few pages of text."""

_LONGEST_WAIT_S = 5.0  # between two attempts, because an agent waits for the tool
_CHECK_URL = "check the setting url"
_REASONS = ("message", "error", "detail", "info")
_MARKUP = re.compile(r"\s*(?:\ufeff\s*)?<")


class ServiceConfig(Config):
    """A service's address, API key, timeout and retries."""

    url: str | None = Field(default=None, description="URL of the service, if it is not the provider's own")
    api_key: SecretStr | None = Field(default=None, description="API key; better stored with the secrets")
    request_timeout: float = Field(default=20.0, gt=0, description="Time limit of one request in seconds")
    max_retries: int = Field(
        default=2, ge=0, le=100, description="Maximum retries of a failed request, if a retry can help"
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A provider's service: its address and credentials.

    Attributes:
        url: The provider's own address, or '' if each user has a different one.
        key: The sources of the API key, and the hosts that may receive it.
        header: The header that carries the key, or '' for none.
        parameter: The query parameter that carries the key, or '' for none.
        open: True if the service requires no key.
        refusing: The advice if the service denies access (401, 403) for a reason other than the key.
    """

    url: str = ""
    key: KeyRule = field(default_factory=lambda: KeyRule(""))
    header: str = ""
    parameter: str = ""
    open: bool = False
    refusing: str = ""


class RefusalInAnswerError(Exception):
    """A refusal in a response with status 200, in the service's own words."""


class JSONService:
    """A client for one service. An instance handles concurrent calls from any event loop, and reuses its connections.

    The address comes from the user, not from a model, so it may be on this machine or in a private network. Redirects
    are not followed.

    Args:
        name: The tool and the provider, for errors.
        place: The provider's address and credentials.
        config: The user's settings.
        settings: Returns the settings that supply the API key if the configuration has none. Called on the first
            request.

    Raises:
        ConfigError: An API key is set, but the service takes none.
    """

    def __init__(self, name: str, place: Place, config: ServiceConfig, *, settings: Callable[[], Settings]) -> None:
        if config.api_key and not (place.header or place.parameter):
            raise ConfigError(f"{name} accepts no API key: remove api_key")
        self._name = name
        self._place = place
        self._config = config
        self._settings = settings
        self._access = Access(self._found, backend=name)

    async def ask(
        self, read: Callable[[Any], T], *, path: str = "", query: Mapping[str, str] | None = None, body: object = None
    ) -> T:
        """Send one request, with retries if they may help.

        Args:
            read: Converts the response to a value. Python's errors about missing or mistyped parts mean that the
                response has another format, and `RefusalInAnswerError` means a refusal.
            path: Appended to the address.
            query: The query parameters.
            body: The JSON body, sent by POST. None sends a GET request.

        Raises:
            ToolServiceError: There is no usable response. `code` is the HTTP status, if any.
            ConfigError: The address or the API key is missing or unusable.
        """
        ask = partial(self._asked, read, path, query or {}, None if body is None else json_bytes(body))
        try:
            return await retry_request(ask, max_retries=self._config.max_retries, max_delay_s=_LONGEST_WAIT_S)
        except ModelServiceError as error:
            code = error.code or (str(error.status) if error.status else None)
            raise ToolServiceError(error.message, code=code) from error

    async def aclose(self) -> None:
        """Close the idle connections. The next request looks up the address and the key again."""
        await self._access.aclose()

    async def _asked(self, read: Callable[[Any], T], path: str, query: Mapping[str, str], body: bytes | None) -> T:
        with ForgetLocals():  # they include the key
            opened = await self._access.open()
            post = self._post(opened.server, path, query, body)
            seconds = self._config.request_timeout
            try:
                # A limit for the whole response, because a server that sends a byte now and then is never silent.
                async with asyncio.timeout(seconds):
                    reply = await opened.exchange(post, extra={}, timeout_s=2 * seconds, max_bytes=MAX_BYTES)
            except TimeoutError:
                raise ToolServiceError(
                    f"{self._name}: no complete response within {seconds:g} s: try again later"
                ) from None
            return self._read(read, reply, opened.failures(self._name, reply.headers, extra={}))

    def _post(self, server: Server, path: str, query: Mapping[str, str], body: bytes | None) -> Post:
        key = {self._place.parameter: server.key.value} if self._place.parameter and server.key.value else {}
        parameters = urlencode({**query, **key}, errors="replace")
        url = server.url + path + (f"?{parameters}" if parameters else "")
        return Post(body or b"", url, method="GET" if body is None else "POST")

    def _read(self, read: Callable[[Any], T], reply: Reply, failures: Failures) -> T:
        if reply.status != 200:
            raise self._refusal(reply, failures)
        try:
            return read(json_value(reply.body))
        except RefusalInAnswerError as error:
            raise failures.in_answer(ModelRequestError, str(error)) from None
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            sent = "an HTML page" if _is_markup(reply.body) else "something"
            raise _final(failures, f"the server sent {sent} that is not this service's JSON: {_CHECK_URL}") from error

    def _refusal(self, reply: Reply, failures: Failures) -> ModelServiceError:
        if reply.status < 400:
            what = "the server redirects" if reply.status >= 300 else "the server sent no response"
            return _final(failures, f"HTTP {reply.status}: {what}: {_CHECK_URL}")
        error_class = class_of_status(reply.status)
        refused = partial(failures.refused, error_class, _reason(reply.body), status=reply.status)
        error = refused()
        if isinstance(error, RateLimitedError) and error.retry_after_s is not None:
            return refused(advice=f"try again in {error.retry_after_s:g} s")
        if isinstance(error, ModelAuthError) and self._place.refusing:
            return refused(advice=self._place.refusing)
        return refused(advice=_CHECK_URL) if reply.status == 404 else error

    def _found(self) -> Server:
        place, config = self._place, self._config
        url = configured_url(config.url, place.key, setting="url") or place.url
        if not url:
            raise ToolServiceError(f"{self._name} needs a URL: set url")
        key = find_key(url, place.key, configured=config.api_key, settings=self._settings())
        if not place.open:
            key.or_missing(needed_by=self._name)
        header = {place.header: key.value} if place.header and key.value else {}
        return Server(url, {"accept": "application/json", **header}, key)


def _final(failures: Failures, text: str) -> ModelServiceError:
    """Return an error that a retry cannot fix."""
    error = failures.wrong(text)
    return ModelRequestError(error.message, backend=error.backend, request_id=error.request_id)


def _is_markup(body: bytes) -> bool:
    return _MARKUP.match(body[:100].decode(errors="replace")) is not None


def _reason(body: bytes) -> str:
    """Return the server's reason for a refusal, in its own words, or '' if it sent an HTML page."""
    text = body[:20_000].decode(errors="replace")
    try:
        answer = json_value(body)
    except ValueError:
        return "" if _is_markup(body) else text
    match answer:
        case {"error": {**inner}} | {**inner}:
            return next((said for name in _REASONS if isinstance(said := inner.get(name), str)), text)
    return text
