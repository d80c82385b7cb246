"""Build the ASGI application that serves agents through faces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield.errors import ConfigError
from jackfield.plugins import Plugins, default_host
from jackfield.servers import (
    OWNER,
    ASGIApp,
    HttpServer,
    Receive,
    Refusal,
    RequestRefusedError,
    Scope,
    Send,
    load_server,
    plain_refusal,
    refusal_of,
)
from jackfield_serve.checks import Checks
from jackfield_serve.metrics import MEDIA_TYPE, OBSERVER, MetricsPage
from jackfield_serve.tokens import Tokens
from jackfield_serve.tracing import join_trace

if TYPE_CHECKING:
    from jackfield.agents import Agent
    from jackfield.stores import Store
    from jackfield_serving import Serving

DEFAULT_FACES = ("openai",)
MAX_BODY_BYTES = 32 << 20
_NOTHING_HERE = Refusal(status=404, code="not_found", message="nothing is served at this path: check the URL")
_log = logging.getLogger("jackfield_serve")


def serving_app(
    agents: Mapping[str, Agent | Path | str],
    *,
    faces: Iterable[object] = DEFAULT_FACES,
    store: str | Mapping[str, object] | Store | None = None,
    limits: Any = None,
    tokens: Tokens | None = None,
    owner: Callable[[Scope], str | None] | None = None,
    hosts: Iterable[str] = (),
    max_body_bytes: int = MAX_BODY_BYTES,
    host: Plugins | None = None,
) -> ServingApp:
    """Return an ASGI application that serves agents. Run it with uvicorn, or mount it in FastAPI or Starlette.

    Args:
        agents: The agents by name. Each is an agent, an agent file, or `module:agent`.
        faces: The faces: names of installed ones, dicts with `name` and settings, or servers.
        store: The store for runs; see `jackfield_serving.Serving`.
        limits: The limits for all runs together; see `jackfield_serving.Serving`.
        tokens: The tokens of clients. If None, clients need no token.
        owner: Returns the owner of a request, or None to refuse it. Replaces `tokens`.
        hosts: The host names by which clients reach the application. If empty, any name is allowed when requests are
            authenticated; otherwise only local names are, to prevent DNS rebinding.
        max_body_bytes: The maximum size of a request body.
        host: The plugin host that looks up names. Defaults to the default host.

    Raises:
        ConfigError: A setting is invalid, or two faces have the same path.
        PluginError: A face is not installed or cannot be loaded.
    """
    from jackfield_serving import Serving

    plugins = default_host() if host is None else host
    servers = [load_server(face, plugins) for face in faces]
    serving = Serving(agents, store=store, host=host, **({} if limits is None else {"limits": limits}))
    checks = Checks(tokens=tokens, owner=owner, hosts=frozenset(hosts), max_body_bytes=max_body_bytes)
    return ServingApp(serving, servers, checks, MetricsPage(plugins, is_counted=OBSERVER in serving.observers))


class ServingApp:
    """ASGI application that serves faces on top of one `Serving`.

    The application starts with the server's lifespan, or at the first request if the server does not support lifespans.

    Args:
        serving: The agents and their runs, opened and closed by the application.
        faces: The faces, each an `HttpServer`.
        checks: The checks for each request.
        metrics: The page `/metrics`, or None for no such page.

    Raises:
        ConfigError: A face does not support HTTP, or two faces have the same path.
    """

    def __init__(
        self, serving: Serving, faces: Sequence[object], checks: Checks, metrics: MetricsPage | None = None
    ) -> None:
        self.serving = serving
        self.checks = checks
        self._metrics = metrics
        self.paths: dict[str, HttpServer] = {}
        for face in faces:
            if not isinstance(face, HttpServer):
                name = getattr(face, "name", type(face).__name__)
                raise ConfigError(
                    f"face {name!r} does not support HTTP. To use it, run: jackfield serve --stdio {name}"
                )
            for path in face.paths:
                clean = "/" + path.strip("/")
                if clean in self.paths:
                    other = self.paths[clean].name
                    raise ConfigError(f"faces {other!r} and {face.name!r} both serve {clean!r}: remove one of them")
                self.paths[clean] = face
        self.faces = list(dict.fromkeys(self.paths.values()))
        self._apps: dict[int, ASGIApp] = {}
        self._host: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._lifespan(receive, send)
            case "http" | "websocket" as kind:
                path = _path_below(scope)
                if kind == "http" and path in ("/healthz", "/readyz"):
                    await self._tell_health(path, send)
                elif kind == "http" and path == "/metrics" and self._metrics is not None and path not in self.paths:
                    await self._show_metrics(self._metrics, scope, send)
                else:
                    await self._serve(scope, receive, send, self._face_of(path))

    def drain(self, seconds: float) -> None:
        """Stop starting runs, and report this in `/readyz`. Closing then waits up to `seconds` for active runs.

        This method may be called from a signal handler.
        """
        self.is_draining = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin_drain, seconds)

    def _begin_drain(self, seconds: float) -> None:
        if self._drain is None:
            if self.serving.active:
                _log.warning(
                    "Waiting up to %g s for active runs; press Ctrl-C again to stop them immediately.", seconds
                )
            self._drain = asyncio.create_task(self.serving.drain(seconds), name="jackfield-serve-drain")

    async def start(self) -> None:
        """Open the agents and the faces, unless they are already open.

        Raises:
            JackfieldError: An agent or a face cannot be opened.
        """
        if self._host is None:
            self._loop = asyncio.get_running_loop()
            self._ready = self._loop.create_future()
            self._stop.clear()
            self._host = asyncio.create_task(self._hold_open(self._ready), name="jackfield-serve")
        assert self._ready is not None  # noqa: S101 - set with the task
        await asyncio.shield(self._ready)

    async def aclose(self) -> None:
        """Close the agents and the faces. Active runs end as described in `Serving`."""
        if self._host is None:
            return
        if self._drain is not None:
            await self._drain
        self._stop.set()
        host, self._host = self._host, None
        await host

    async def _hold_open(self, ready: asyncio.Future[None]) -> None:
        # A single task opens and closes, because anyio contexts must be exited by the task that entered them.
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self.serving)
                for face in self.faces:
                    stack.push_async_callback(face.aclose)
                    self._apps[id(face)] = face.app(self.serving)
                    await stack.enter_async_context(face.running())
                ready.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            if ready.done():
                raise
            self._host = None
            ready.set_exception(error)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _tell_health(self, path: str, send: Send) -> None:
        ready = path == "/healthz" or not self.is_draining
        await _respond(send, 200 if ready else 503, "text/plain", b"ok\n" if ready else b"draining\n")

    async def _show_metrics(self, metrics: MetricsPage, scope: Scope, send: Send) -> None:
        try:
            self.checks.admit(scope)  # agent and tool names are not public
            body = await metrics.read(queued=self.serving.queued)
        except RequestRefusedError as error:
            refusal = error.refusal
            media_type, text = plain_refusal(refusal)
            await _respond(send, refusal.status, media_type, text, _headers_of(refusal))
        else:
            await _respond(send, 200, MEDIA_TYPE, body)

    def _face_of(self, path: str) -> HttpServer | None:
        while path:
            if face := self.paths.get(path):
                return face
            path = path.rpartition("/")[0]
        return self.paths.get("/")

    async def _serve(self, scope: Scope, receive: Receive, send: Send, face: HttpServer | None) -> None:
        began = is_gone = False

        def watch(message: MutableMapping[str, Any]) -> Awaitable[None]:
            nonlocal began
            began = True
            return send(message)

        async def listen() -> MutableMapping[str, Any]:
            nonlocal is_gone
            message = await receive()
            is_gone = is_gone or message["type"] in ("http.disconnect", "websocket.disconnect")
            return message

        try:
            owner = self.checks.admit(scope, needs_owner=not _is_open(face, scope))
            if face is None:
                refusal = _NOTHING_HERE
            else:
                await self.start()
                # With an "app", Starlette's routers raise their errors instead of sending their own error pages.
                inner = {"app": self, **scope, OWNER: owner}
                with join_trace(scope["headers"]):
                    await self._apps[id(face)](inner, self.checks.limit_body(listen), watch)
                return
        except Exception as error:
            if is_gone:
                return
            refusal = refusal_of(error)
            if refusal.status >= 500 and isinstance(error, RequestRefusedError):  # deliberate, so no traceback
                _log.warning("face %s responded with %d: %s", face.name if face else "", refusal.status, error)
            elif refusal.status >= 500:
                _log.exception("face %s failed", face.name if face else "")
            if began:
                raise  # the server closes the connection, so the client sees a broken response
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        media_type, body = face.refusal(refusal) if face else plain_refusal(refusal)
        await _respond(send, refusal.status, media_type, body, _headers_of(refusal))


def _is_open(face: HttpServer | None, scope: Scope) -> bool:
    """Return True if the face answers the request without a token."""
    if face is None or scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    path = _path_below(scope)
    return any(path == one or (one.endswith("/*") and path.startswith(one[:-1])) for one in face.open_paths)


def _path_below(scope: Scope) -> str:
    """Return a request's path relative to the application's mount point."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _headers_of(refusal: Refusal) -> list[tuple[bytes, bytes]]:
    headers = []
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(refusal.retry_after_s))).encode()))
    if refusal.status in (408, 413, 431):
        headers.append((b"connection", b"close"))  # the rest of the request is not read
    return headers


async def _respond(
    send: Send, status: int, media_type: str, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    fixed = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})
