"""Turn network failures and HTTP status codes into Jackfield's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from jackfield.errors import (
    ContentFilterError,
    ContextLengthError,
    JackfieldError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
    RateLimitedError,
)
from jackfield.quoting import HIDDEN, SentSecrets, quote_text
from jackfield_http.headers import request_id_of, retry_after_s
from jackfield_http.keys import FoundKey
from jackfield_http.sse import NoEventError, StreamTooLongError

ErrorClass: TypeAlias = type[ModelServiceError]

_STATUSES: dict[int, ErrorClass] = {
    401: ModelAuthError,
    402: ModelAuthError,
    403: ModelAuthError,
    404: ModelNotFoundError,
    408: ModelOverloadedError,  # the server's own time-out; 409 and 425 also invite a retry
    409: ModelOverloadedError,
    413: ContextLengthError,
    425: ModelOverloadedError,
    429: RateLimitedError,
}
_ADVICE: Mapping[ErrorClass, str] = {
    ContextLengthError: "shorten the history, or set max_input_tokens",
    ContentFilterError: "the provider's filter rejected the content: change the content",
    ModelAuthError: "check the API key ({key}), its permissions, and the account's quota and balance",
    ModelNotFoundError: "check the model's name, and base_url",
    RateLimitedError: "wait, or send fewer requests at once",
    ModelOverloadedError: "the server failed: try again",
}
_NO_SECRETS = SentSecrets()


def class_of_status(status: int) -> ErrorClass:
    """Return the error class for an HTTP status, for servers without more specific codes.

    Args:
        status: The status, from 300 to 599. A redirect means that the address is wrong.
    """
    return _STATUSES.get(status) or (ModelOverloadedError if status >= 500 else ModelRequestError)


@dataclass(frozen=True, slots=True)
class Failures:
    """Builds one request's errors, which never show a secret that was sent, even if the server echoes it.

    Attributes:
        backend: The backend's name.
        secrets: The secrets that were sent.
        headers: The response headers, with lowercase names.
        key: The API key that was used, or the reason why there is none, for the advice.
        now: The time against which a date in `Retry-After` is measured. Defaults to the current time.
    """

    backend: str
    secrets: SentSecrets = _NO_SECRETS
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: FoundKey = field(default_factory=FoundKey)
    now: datetime | None = None

    @property
    def request_id(self) -> str | None:
        """The server's id for the request, for its operators."""
        return self._shown(request_id_of(self.headers))

    def refused(
        self,
        error_class: ErrorClass,
        reason: str,
        *,
        status: int,
        code: str | None = None,
        advice: str | None = None,
        request_id: str | None = None,
    ) -> ModelServiceError:
        """Return the error for a response that refuses the request.

        Args:
            error_class: The error's class.
            reason: The server's message.
            status: The HTTP status, not 2xx.
            code: The server's own error code.
            advice: Advice for this type of server, in place of the general advice.
            request_id: The server's id for the request, in case the headers lack it.
        """
        what = self._what(reason, code)
        if 300 <= status < 400:
            what, advice = "the server redirects", "set base_url to its current location"
        elif self.key.withheld and error_class is ModelAuthError:
            advice = self.key.withheld
        return error_class(
            f"{self.backend}: HTTP {status}: {what} ({advice or self._advice(error_class)})",
            backend=self.backend,
            code=self._shown(code),
            status=status,
            retry_after_s=retry_after_s(self.headers, self.now or datetime.now(UTC)),
            request_id=self._shown(request_id) or self.request_id,
        )

    def in_answer(
        self,
        error_class: ErrorClass,
        reason: str,
        *,
        status: int | None = None,
        code: str | None = None,
        advice: str | None = None,
        request_id: str | None = None,
    ) -> ModelServiceError:
        """Return the error for a response with status 200 that contains an error, in place of an answer or its rest.

        Args:
            error_class, reason, code, advice, request_id: See `refused`.
            status: The status stated by the error in the response.
        """
        return error_class(
            f"{self.backend}: error in the response: "
            f"{self._what(reason, code)} ({advice or self._advice(error_class)})",
            backend=self.backend,
            code=self._shown(code),
            status=status,
            request_id=self._shown(request_id) or self.request_id,
        )

    def unreadable(self, data: bytes, *, advice: str) -> ModelResponseError:
        """Return the error for data that does not belong to an answer."""
        sent = quote_text(data[:1000].decode("utf-8", "replace"), self.secrets, 80)
        return self.wrong(f"the server sent something that is not part of a response: {sent!r}; {advice}")

    def wrong(self, text: str, *, request_id: str | None = None) -> ModelResponseError:
        """Return the error for an answer that breaks off or violates the protocol.

        Args:
            text: The problem, and the next step for the user.
            request_id: See `refused`.
        """
        return ModelResponseError(
            f"{self.backend}: {text}", backend=self.backend, request_id=self._shown(request_id) or self.request_id
        )

    def _what(self, reason: str, code: str | None) -> str:
        return quote_text(reason, self.secrets) or self._shown(code) or "no reason given"

    def _advice(self, error_class: ErrorClass) -> str:
        key = f"api_key, {self.key.variable}" if self.key.variable else "api_key"
        return _ADVICE.get(error_class, "change the request").format(key=key)

    def _shown(self, text: str | None) -> str | None:
        return quote_text(text, self.secrets) if text else None


@contextmanager
def translate_errors(
    backend: str, address: str, *, timeout_s: float, secrets: Callable[[], SentSecrets] = SentSecrets
) -> Iterator[None]:
    """Translate errors from the HTTP stack into Jackfield's, with their cause.

    Args:
        backend: The backend's name.
        address: The server, without user and password, for the message.
        timeout_s: The maximum silence that was allowed, in seconds.
        secrets: Returns the secrets that were sent, because a server that violates the protocol may echo them.
    """
    try:
        yield
    except Exception as error:
        translated = translate_error(error, backend, address, timeout_s=timeout_s, secrets=secrets)
        if translated is None:
            raise
        raise translated  # noqa: B904 - it has its cause, or none that may be shown


def translate_error(
    error: BaseException, backend: str, address: str, *, timeout_s: float, secrets: Callable[[], SentSecrets]
) -> ModelServiceError | None:
    """Translate an error from the HTTP stack into Jackfield's, with its cause. Returns None for any other error.

    Args:
        error: The error.
        backend, address, timeout_s, secrets: See `translate_errors`.
    """
    if isinstance(error, JackfieldError):  # perhaps from loading the HTTP stack, and loading it again would replace it
        return None
    import httpcore2

    cause: BaseException | None = error
    translated: ModelServiceError
    match error:
        case httpcore2.ReadTimeout():
            took = str(error) or f"was silent for {timeout_s:g} s"
            translated = ModelTimeoutError(
                f"{backend}: {address} {took}: raise request_timeout, or try again", backend=backend
            )
        case NoEventError():
            translated = ModelTimeoutError(
                f"{backend}: {address} sent nothing but comments for {error.patience_s:g} s: raise event_timeout, or "
                "try again",
                backend=backend,
            )
        case StreamTooLongError():
            translated = ModelResponseError(
                f"{backend}: {address} sent {error}: request less at once, and check that this is the right server",
                backend=backend,
            )
        case httpcore2.ConnectError() | httpcore2.ConnectTimeout() | httpcore2.ProxyError():
            translated = ModelConnectionError(
                f"{backend}: {address} cannot be reached ({_reason(error, secrets)}): check the URL (base_url), "
                "the network, and that the server is running",
                backend=backend,
            )
        case httpcore2.LocalProtocolError():
            translated = ModelRequestError(
                f"{backend}: a header cannot be sent: check extra_headers, and the settings that become headers",
                backend=backend,
            )
            cause = None  # it shows the header, which may be a key
        case httpcore2.NetworkError() | httpcore2.TimeoutException() | httpcore2.ProtocolError():
            reason = _reason(error, secrets)
            translated = ModelConnectionError(
                f"{backend}: the connection to {address} broke ({reason}): try again", backend=backend
            )
            if HIDDEN in reason:
                cause = None  # the traceback would show the hidden secret
        case _:
            return None
    translated.__cause__ = cause
    return translated


def _reason(error: BaseException, secrets: Callable[[], SentSecrets]) -> str:
    return quote_text(str(error), secrets(), 200) or type(error).__name__
