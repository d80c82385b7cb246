"""Run the application, either in uvicorn or over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import os
import selectors
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, TextIO

import uvicorn

from jackfield import sync
from jackfield.agents import Agent, unset_secrets
from jackfield.cli import escape_line
from jackfield.errors import ConfigError
from jackfield.plugins import default_host
from jackfield.servers import StdioServer, load_server
from jackfield.stores import Store, load_store
from jackfield_serve.app import ServingApp
from jackfield_serve.options import ServeOptions, load_agents, make_app

_HEADER_BYTES = 64 << 10
_ALL_ADDRESSES = ("0.0.0.0", "::", "[::]")  # noqa: S104 - compared, not bound
_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
_VARIABLE = "JACKFIELD_SERVE_ARGUMENTS"
# Hundreds of runs hold many objects, few of them in cycles. With Python's default of 700, garbage collection takes a
# sixth of a busy server's time.
_OBJECTS_PER_COLLECTION = 20_000


class DrainingServer(uvicorn.Server):
    """Uvicorn server that drains its application when stopped by a signal."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start draining. A second signal stops the server without waiting for requests."""
        app = self.config.loaded_app
        if isinstance(app, ServingApp):
            app.drain(self.config.timeout_graceful_shutdown or 0)
        super().handle_exit(sig, frame)


def run_http(options: ServeOptions) -> int:
    """Serve over HTTP until stopped by a signal.

    Raises:
        ConfigError: The address cannot be used, or an agent cannot be created.
        StoreError: The store cannot be read or written.
    """
    agents = load_agents(options)
    # Even with several workers, so that a mistake is reported once, before they start.
    app = make_app(options, agents)
    _require_store(options)
    host = f"[{options.host.strip('[]')}]" if ":" in options.host else options.host
    with _listen(options) as listener:
        port = listener.getsockname()[1]
        paths = [(face.name, path) for path, face in app.paths.items()]
        _describe(options, f"http://{host}:{port}", list(options.agents), paths)
        warn_of_missing_keys(agents)
        if options.browser:
            _open_browser(f"http://{'localhost' if options.host in _ALL_ADDRESSES else host}:{port}")
        if options.workers > 1:
            return _run_workers(options, listener)
        server = DrainingServer(_configure(app, options))
        _tune_collector()
        _run_until_stopped(server, listener)
        return 0 if server.started else 1


def _require_store(options: ServeOptions) -> None:
    """Try reading and writing the store, which would otherwise fail only at the first question.

    Raises:
        StoreError: The store cannot be read or written.
    """
    if options.store is not None:
        sync.run(_try_store(load_store(options.store, default_host())))


async def _try_store(store: Store) -> None:
    try:
        await store.runs(limit=1)
        if type(store).send is not Store.send:
            await store.send("")  # the only write that leaves no record
    finally:
        await store.aclose()


def _run_until_stopped(server: DrainingServer, listener: socket.socket) -> None:
    """Run the server until a signal arrives; inside a running event loop, as in a notebook, use a thread."""
    if not _has_running_loop():
        with contextlib.suppress(KeyboardInterrupt):  # re-raised by uvicorn after it has stopped
            server.run([listener])
        return
    sys.stdout.write("  Interrupt the cell to stop the server.\n")
    thread = threading.Thread(target=server.run, args=([listener],), name="jackfield-serve")
    with _interrupts(server.handle_exit):
        thread.start()
        thread.join()


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # return outside, or every error of the server would have this one as its context
        return False
    return True


@contextlib.contextmanager
def _interrupts(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle Ctrl-C while the block runs, if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _describe(chosen: ServeOptions, url: str, agents: Sequence[str], paths: Sequence[tuple[str, str]]) -> None:
    """Print the URLs, the agents they expose, and who can reach them."""
    table = [(name, f"{url}{path}".rstrip("/") if path == "/" else f"{url}{path}") for name, path in paths]
    width = max(len(name) for name, _ in table)
    lines = [f"Serving {', '.join(agents)}"]
    lines += [f"  {name:{width}}  {address}" for name, address in table]
    if chosen.tokens:
        lines.append(f"  Clients need a token from {chosen.token_file}.")
    else:
        lines.append("  Any program on this machine can connect; pass --token-file to require a token.")
    if chosen.store is None:
        lines.append("  Runs are kept in memory; pass --store sqlite to keep them on disk.")
    sys.stdout.write("\n".join(escape_line(line) for line in lines) + "\n")
    sys.stdout.flush()


def warn_of_missing_keys(agents: Mapping[str, Agent]) -> None:
    """Warn about API keys that agents need but that are not set, before the first question fails."""
    for name, agent in agents.items():
        for text in unset_secrets(agent):
            line = f"! agent {name!r} needs an API key that is not set: {text}. Set the key and restart the server"
            sys.stderr.write(f"{escape_line(line)}\n")


def run_stdio(options: ServeOptions, name: str) -> int:
    """Serve one client over standard input and output until it disconnects.

    Raises:
        ConfigError: The face does not support standard input, or standard input is not a pipe.
        StoreError: The store cannot be read or written.
    """
    face = load_server(name, default_host())
    if not isinstance(face, StdioServer):
        raise ConfigError(f"face {name!r} does not support standard input: use --face {name}")
    agents = load_agents(options)
    _require_store(options)
    warn_of_missing_keys(agents)
    # Output of tools and libraries must not mix with protocol messages.
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        asyncio.run(_talk(face, agents, options, output))
    finally:
        os.close(output)
    return 0


async def _talk(face: StdioServer, agents: Mapping[str, Agent], options: ServeOptions, output: int) -> None:
    from jackfield_serving import Serving, ServingLimits

    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=options.max_body_bytes)
    try:
        _check_can_be_awaited(sys.stdin)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(os.dup(output), "wb")
        )
    except (ValueError, OSError):
        raise ConfigError("standard input and output must be pipes: have the client start this program") from None
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    async with Serving(agents, store=options.store, limits=ServingLimits(runs=options.runs)) as serving:
        try:
            await face.talk(serving, reader, writer)
        finally:
            await face.aclose()
            writer.close()


def _check_can_be_awaited(stream: TextIO | None) -> None:
    """Raise ValueError or OSError if an event loop cannot wait for a stream: it is closed, a file, or `/dev/null`.

    `connect_read_pipe` only logs this error, and the server would wait forever.
    """
    if stream is None:
        raise ValueError("the stream is closed")
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)


@contextlib.contextmanager
def _listen(options: ServeOptions) -> Iterator[socket.socket]:
    host = options.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, options.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(_why_not(error, host, options.port)) from error
    with listener:
        yield listener


def _why_not(error: OSError, host: str, port: int) -> str:
    """Explain why the server cannot listen, and what to do."""
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} is in use: stop the other program, or pass --port 0 to use a free port"
        case errno.EACCES:
            return f"port {port} requires administrator rights: pass --port 1024 or higher"
        case errno.EADDRNOTAVAIL | socket.EAI_NONAME | socket.EAI_AGAIN | socket.EAI_NODATA:
            return f"{host} is not an address of this machine: pass a different --host, such as 127.0.0.1"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"


def _open_browser(url: str) -> None:
    """Open a page in the user's browser, but only on a desktop: a text browser would take over the terminal."""
    if sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in _DESKTOP):
        # In a thread, because some browsers block their caller until they are closed.
        threading.Thread(target=webbrowser.open, args=(url,), name="jackfield-browser", daemon=True).start()


def _configure(app: Any, options: ServeOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=options.workers,
        http="h11",  # limits the size of headers
        h11_max_incomplete_event_size=_HEADER_BYTES,
        ws_max_size=options.max_body_bytes,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=options.drain_s,
        lifespan="on",
    )


# --- several processes ---


def _run_workers(options: ServeOptions, listener: socket.socket) -> int:
    from uvicorn.supervisors import Multiprocess

    # Workers are new processes that get their options from the environment, and tokens from the token file.
    os.environ[_VARIABLE] = json.dumps(options.words)
    Multiprocess(_configure("jackfield_serve.running:make_worker_app", options), [listener]).run()
    return 0


def make_worker_app() -> ServingApp:
    """Return the application for a worker process."""
    from jackfield_serve.options import read_options
    from jackfield_serve.parser import make_parser

    app = make_app(read_options(make_parser().parse_args(json.loads(os.environ[_VARIABLE]))))
    _tune_collector()
    return app


def _tune_collector() -> None:
    """Make garbage collection ignore everything loaded so far, and run less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *gc.get_threshold()[1:])
