"""Servers, called faces. Each face exposes agent runs to clients over one protocol."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Protocol, TypeAlias

from jackfield.config import Configured
from jackfield.errors import (
    ConfigError,
    InvalidMessageError,
    JackfieldError,
    LimitReachedError,
    ModelOverloadedError,
    ModelRequestError,
    RateLimitedError,
    RunBusyError,
    RunNotFoundError,
    StoreUnavailableError,
)
from jackfield.events import RunEvent, RunFailed
from jackfield.jsontext import MAX_DEPTH
from jackfield.messages import Messages
from jackfield.plugins import Plugins

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI 3.0 application, as in Starlette, FastAPI and uvicorn."""

OWNER = "jackfield.owner"
"""The key of the request's owner in an ASGI scope."""


def owner_of(scope: Mapping[str, Any]) -> str:
    """Return the owner of a request's token, who only sees their own runs, or '' if no token is needed."""
    return str(scope.get(OWNER, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The response to a rejected request.

    Attributes:
        status: The HTTP status.
        code: The cause, as one word for programs: `unauthorized`, `not_found`, `too_large`, `busy`, `internal`, …
        message: The cause and the next step, for people, without any secrets from the request.
        retry_after_s: The number of seconds after which the same request may succeed, or None if waiting does not help.
    """

    status: int
    code: str
    message: str
    retry_after_s: float | None = None


class RequestRefusedError(JackfieldError):
    """The request is rejected. The error text is sent to the client.

    Args:
        message: The cause and the next step.
        status, code, retry_after_s: See `Refusal`. Subclasses may set them for all their errors.
    """

    status: int = 400
    code: str = "invalid_request"
    retry_after_s: float | None = None

    def __init__(
        self, message: str, *, status: int | None = None, code: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status or self.status
        self.code = code or self.code
        self.retry_after_s = retry_after_s or self.retry_after_s

    @property
    def refusal(self) -> Refusal:
        """The response to send to the client."""
        return Refusal(status=self.status, code=self.code, message=str(self), retry_after_s=self.retry_after_s)


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal for a request that failed with an error. Faces send it in their protocol's format.

    Errors that a client can correct keep their text. All other errors become `internal`, because their text belongs in
    the logs only.
    """
    retry_after_s = getattr(error, "retry_after_s", None)
    match error:
        case RequestRefusedError():
            return error.refusal
        case RunNotFoundError():
            return Refusal(status=404, code="not_found", message=str(error))
        case RunBusyError():
            return Refusal(status=409, code="conflict", message=str(error))
        case StoreUnavailableError():
            return Refusal(
                status=503,
                code="unavailable",
                message="the run store is unavailable: try again later",
                retry_after_s=retry_after_s or 5,
            )
        case LimitReachedError():
            return Refusal(status=429, code="busy", message=str(error), retry_after_s=retry_after_s or 1)
        case InvalidMessageError() | ModelRequestError():
            return Refusal(status=400, code="invalid_request", message=str(error))
        case RateLimitedError() | ModelOverloadedError():
            return Refusal(
                status=429, code="busy", message="the model is busy: try again later", retry_after_s=retry_after_s or 1
            )
    status = getattr(error, "status_code", None)  # an HTTPException of an ASGI framework
    if isinstance(status, int) and 400 <= status < 500 and hasattr(error, "detail"):
        return Refusal(status=status, code=_CODES.get(status, "invalid_request"), message=_message_of(status, error))
    return Refusal(
        status=500, code="internal", message="the server could not handle this request: see its log for the cause"
    )


_CODES = {404: "not_found", 405: "method_not_allowed"}


def _message_of(status: int, error: Exception) -> str:
    match status:
        case 404:
            return "nothing is served at this path: check the URL"
        case 405:
            return "method not allowed at this path"
    return str(getattr(error, "detail", ""))


_OF_THE_REQUEST: Mapping[str, str] = {
    "ContextLengthError": "context_length_exceeded",
    "ContentFilterError": "content_filter",
    "UnsupportedInputError": "unsupported_input",
    "MissingFileError": "unsupported_input",
    "InvalidMessageError": "invalid_request",
}
_BUSY = frozenset({"RateLimitedError", "ModelOverloadedError"})
_RETRY_AFTER_S = 5.0


def failure_of(failed: RunFailed) -> RequestRefusedError:
    """Convert a failed run's error to a form that clients may see.

    Only errors about the request keep their text, because other errors may reveal the server's addresses and names.
    """
    code = _OF_THE_REQUEST.get(failed.kind)
    if code is not None:
        return RequestRefusedError(failed.error, code=code)
    if failed.kind in _BUSY:
        return RequestRefusedError(
            "the agent's model is busy: try again later",
            status=429,
            code="rate_limit_exceeded",
            retry_after_s=_RETRY_AFTER_S,
        )
    return RequestRefusedError(
        f"the run failed ({failed.kind}): see the server log for the cause", status=500, code="server_error"
    )


def plain_refusal(refusal: Refusal) -> tuple[str, bytes]:
    """Return a refusal's media type and body, for protocols that do not define an error format."""
    return "application/json", write_json({"error": {"code": refusal.code, "message": refusal.message}})


def read_object(body: bytes) -> dict[str, Any]:
    """Parse a request body as a JSON object.

    Raises:
        RequestRefusedError: The body is not a single object in strict JSON. For example, a key is repeated, a number is
            not finite, or the nesting is deeper than a hundred levels.
    """
    try:
        value = _DECODER.decode(body.decode())
        if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
            _check_depth(value)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        message = f"the request body is not valid UTF-8 JSON: {reason}"
        raise RequestRefusedError(message, code="invalid_json") from None
    if not isinstance(value, dict):
        message = f"the request body must be a JSON object, got {type(value).__name__}"
        raise RequestRefusedError(message, code="invalid_json")
    return value


def write_json(value: object) -> bytes:
    """Serialise a value as one line of UTF-8 encoded JSON. Lone surrogates, which UTF-8 cannot encode, are escaped.

    Raises:
        ValueError: A number is not finite.
    """
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _read_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"duplicate key {twice[:50]!r}")
    return table


def _read_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a valid JSON number")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(object_pairs_hook=_read_pairs, parse_float=_read_number, parse_constant=_refuse_constant)


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        nested = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [part for parts in nested for part in parts]
        if not level:
            return
    raise RecursionError


class ServingLike(Protocol):
    """Protocol through which faces use agents and their runs.

    `jackfield_serving.Serving` implements this protocol and has additional methods. A face that needs these methods
    depends on that library. A run continues even if nobody is watching. Owners see only their own runs, as if other
    owners' runs did not exist.
    """

    @property
    def agents(self) -> Mapping[str, Any]:
        """The agents, by name."""

    async def start(
        self,
        agent: str,
        messages: Messages,
        *,
        owner: str = "",
        session: str = "",
        run_id: str | None = None,
        config: Mapping[str, Any] | None = None,
        client_tools: Sequence[Any] = (),
        output: Mapping[str, object] | None = None,
        continues: str = "",
        deps: Any = None,
    ) -> str:
        """Start a run and return its id."""

    def attach(self, run_id: str, *, after: int = 0, owner: str = "") -> AsyncIterator[tuple[int, RunEvent]]:
        """Yield a run's numbered events that follow number `after`: first the recorded events, then live events."""

    async def answer(self, run_id: str, answers: Mapping[str, Any], *, owner: str = "") -> None:
        """Answer a waiting run's questions. `answers` is keyed by call id."""

    async def cancel(self, run_id: str, *, owner: str = "") -> None:
        """Stop a run."""


class Server(Configured, ABC):
    """Base class for faces. A face exposes agent runs to clients over one protocol and does nothing else.

    Extend `HttpServer`, `StdioServer` or both. A face only uses agents through `ServingLike`. Faces translate requests
    to calls and events to responses, and do not store run state themselves.

    Attributes:
        name: The face's name, as in its descriptor.
    """

    name: ClassVar[str] = ""

    async def aclose(self) -> None:
        """Close all open resources."""


class HttpServer(Server):
    """A face over HTTP.

    The surrounding server first checks a request's token, host and size, and adds the owner to the scope; see
    `owner_of`. The server calls `refusal` for requests that it rejects and for errors that `app` raises.

    Attributes:
        paths: The paths that the face handles, including everything below them, such as `("/v1",)`. `("/",)` covers all
            paths that no other face handles.
        one_process: If the face stores state in its process, the setting that makes it possible to run several
            processes, otherwise ''.
        open_paths: The paths that are served without a token, such as a web page. `/` covers only that path,
            and `/static/*` covers everything below it. Open paths must not reveal anything about agents and runs.
    """

    paths: tuple[str, ...] = ("/",)
    one_process: str = ""
    open_paths: tuple[str, ...] = ()

    @abstractmethod
    def app(self, serving: ServingLike) -> ASGIApp:
        """Return the application. Scopes contain full paths, such as `/v1/models` for a face with the path `/v1`.

        The application receives `http` and `websocket` requests. An exception that is raised before the response starts
        becomes a `refusal`. A later exception closes the connection.
        """

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager for the application's lifetime.

        Use the context for resources that need their own task.
        """
        return nullcontext()

    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        """Return a refusal's media type and body, in the protocol's error format."""
        return plain_refusal(refusal)


class StdioServer(Server):
    """A face over standard input and output that serves a single client, which started the program."""

    @abstractmethod
    async def talk(self, serving: ServingLike, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one client until the client closes its end. Only protocol messages may be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaceCommand:
    """A command that uses `jackfield serve` to serve agents through one face to users of this machine.

    Attributes:
        name: The command as users type it, such as `jackfield web`.
        face: The face's name.
        description, examples: The command's help texts.
        agents: A function that returns the agents by name, used if the command line names no agents.
    """

    name: str
    face: str
    description: str
    examples: str
    agents: Callable[[], Mapping[str, Any]]


class ServeCommand(Protocol):
    """The `serve` command, as called by other commands: `host.load_row(host.find("command", "serve"))`."""

    def __call__(self, arguments: Sequence[str], command: FaceCommand | None = None) -> int:
        """Serve agents until a signal arrives, and return the exit code.

        `command` describes the command that the user typed.
        """


def load_server(entry: object, host: Plugins) -> Server:
    """Resolve an entry to a face. The entry is a face object, a name, or a dict with `name` and settings.

    Raises:
        ConfigError: The entry is not in one of these forms, or a setting is not valid.
        PluginError: The face is not installed or cannot be loaded.
    """
    if isinstance(entry, Server):
        return entry
    settings = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        raise ConfigError("a face must be a server, a server's name, or a dict with `name` and settings")
    row = host.find("server", settings["name"])
    overrides = {key: value for key, value in settings.items() if key != "name"}
    server: Server = host.make(row, {**host.settings.options_of(row.kind, row.address), **overrides}, Server)
    return server
