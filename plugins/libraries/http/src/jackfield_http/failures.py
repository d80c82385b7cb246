"""What the network does, and what a status means, as Jackfield's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jackfield.errors import (
    ContextLengthError,
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
from jackfield_backend.refusals import shown
from jackfield_http.sse import NoEventError, StreamTooLongError

_STATUSES: dict[int, type[ModelServiceError]] = {
    401: ModelAuthError,
    402: ModelAuthError,
    403: ModelAuthError,
    404: ModelNotFoundError,
    408: ModelOverloadedError,  # the server's own time-out; 409 and 425 also ask for another attempt
    409: ModelOverloadedError,
    413: ContextLengthError,
    425: ModelOverloadedError,
    429: RateLimitedError,
}


def class_of_status(status: int) -> type[ModelServiceError]:
    """The error that an HTTP status means where the server's own code says nothing more exact.

    Args:
        status: 300 to 599; a redirect is a request to the wrong address.
    """
    return _STATUSES.get(status) or (ModelOverloadedError if status >= 500 else ModelRequestError)


@contextmanager
def translated(backend: str, address: str, *, timeout_s: float) -> Iterator[None]:
    """Turn what the HTTP stack raises into Jackfield's errors.

    Args:
        backend: Who asks.
        address: The server, for the message; without user and password.
        timeout_s: How long it was allowed to be silent.
    """
    import httpcore2

    try:
        yield
    except httpcore2.ReadTimeout as error:
        took = str(error) or f"was silent for {timeout_s:g} s"
        raise ModelTimeoutError(
            f"{backend}: {address} {took}: raise request_timeout, or try again", backend=backend
        ) from error
    except NoEventError as error:
        raise ModelTimeoutError(
            f"{backend}: {address} sent nothing but comments for {error.patience_s:g} s: raise event_timeout, or try "
            "again",
            backend=backend,
        ) from error
    except StreamTooLongError as error:
        raise ModelResponseError(
            f"{backend}: {address} sent {error}: ask for less at once, and check that it is the right server",
            backend=backend,
        ) from error
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.ProxyError) as error:
        raise ModelConnectionError(
            f"{backend}: {address} cannot be reached ({_reason(error)}): check its address (base_url) and the network, "
            "and that it runs",
            backend=backend,
        ) from error
    except httpcore2.LocalProtocolError:
        # Without the cause: it shows the header, which may hold a key.
        raise ModelRequestError(
            f"{backend}: a header cannot be sent: check extra_headers, and the settings that become headers",
            backend=backend,
        ) from None
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        raise ModelConnectionError(
            f"{backend}: the connection to {address} broke ({_reason(error)}): try again", backend=backend
        ) from error


def _reason(error: Exception) -> str:
    return shown(str(error), "", 200) or type(error).__name__
