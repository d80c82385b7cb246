"""A session with a server: connects on first use, reconnects when needed, and is usable from any event loop.

The SDK requires a client to be closed in the task that opened it. Each connection therefore has its own task on the
core's background loop, and calls from other loops are forwarded there.

No caller can wait forever: a connection's future belongs to the task that opens the connection, and is settled however
that task ends. Closing a connection ends the calls that are still waiting on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jackfield import sync
from jackfield.errors import JackfieldError, ToolServiceError, ToolTimeoutError
from jackfield.plugins import Plugins
from jackfield.tools import ToolContext
from jackfield_mcp.asking import Asked
from jackfield_mcp.bridge import on_loop
from jackfield_mcp.listing import Definition, Keeper, Listing, list_server
from jackfield_mcp.sampling import Sampler
from jackfield_mcp.servers import ServerConfig

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
_log = logging.getLogger(__name__)

_ALIVE_S = 5.0  # for a server that missed a deadline to show that it is still there
_LAST_WORD_S = 1.0  # for a call to use an answer that arrived just before its connection was closed
_LOST = ("Connection closed", "Session terminated")  # the SDK's messages for a lost connection and a lost session
# The SDK's message for an answer that never arrived or was unreadable; the server may have done the call.
_NO_ANSWER = ("SSE stream", "Failed to parse", "Server returned an error", "server answered", "Unexpected content")
_MOST_NOTE = 20_000  # characters
_REFRESH_AFTER_S = 1.0
_FALL_BACK = (400, 404, 405, 406, 415)  # statuses with which an SSE URL refuses streamable HTTP


class ServerEndedError(ToolServiceError):
    """The server ended or could not be reached. The next call reconnects."""


class Watcher(Protocol):
    """Follows changes to a server's listing. Called on the background loop."""

    def reported(self) -> None:
        """Handle a change reported by the server that has not been listed yet."""

    def listed(self, listing: Listing) -> None:
        """Handle the current listing."""


@dataclass(slots=True, eq=False)
class OpenServer:
    """A connected server.

    Attributes:
        client: The SDK client.
        way: The underlying `ServerProcess` or `RemoteServer`.
        is_over: Set when the connection should close.
        listing: What the server offers. None before the first listing and after a reported change.
        changes: The number of changes that the server has reported.
        callable: Names of tools that are in the listing and approved.
    """

    client: Client
    way: Any
    is_over: asyncio.Event
    listing: Listing | None = None
    changes: int = 0
    callable: set[str] = field(default_factory=set)
    _deadlines: set[asyncio.Timeout] = field(default_factory=set)
    _is_closed: bool = False

    async def do(self, work: Callable[[OpenServer], Awaitable[T]], deadline: asyncio.Timeout) -> T:
        """Run work with the client until the deadline, which moves closer when the connection closes."""
        async with deadline:
            self._deadlines.add(deadline)
            try:
                if self._is_closed:
                    self._bring_forward(deadline)
                return await work(self)
            finally:
                self._deadlines.discard(deadline)

    def say_closed(self) -> None:
        """Mark the connection as closed, and end waiting calls soon, because no more answers can arrive."""
        self._is_closed = True
        self.is_over.set()
        for deadline in self._deadlines:
            self._bring_forward(deadline)

    def has_ended(self) -> bool:
        """Return True if calls can no longer be answered."""
        return self._is_closed or self.way.ended.is_set()

    def _bring_forward(self, deadline: asyncio.Timeout) -> None:
        soon = asyncio.get_running_loop().time() + _LAST_WORD_S
        if not deadline.expired():
            when = deadline.when()
            deadline.reschedule(soon if when is None else min(when, soon))


class _Connection:
    """An attempt to open a server: the task that opens and closes it, and a future for its callers."""

    def __init__(self, task: asyncio.Task[None], opened: asyncio.Future[OpenServer], name: str) -> None:
        self.task = task
        self.opened = opened
        self._name = name
        task.add_done_callback(self._settle)

    def is_usable(self) -> bool:
        """Return True if the connection is open or opening."""
        if self.task.done():
            return False
        if not self.opened.done():
            return True
        return not self.opened.cancelled() and not self.opened.exception() and not self.opened.result().is_over.is_set()

    def _settle(self, _: asyncio.Task[None]) -> None:
        if not self.opened.done():
            text = f"MCP server {self._name!r} was closed before the connection was established; nothing was done"
            self.opened.set_exception(ServerEndedError(text, code="server_ended"))
        if not self.opened.cancelled():
            self.opened.exception()  # marks the error as retrieved, even without a caller


@dataclass(slots=True, eq=False)
class _Link:
    """The part of a session that lives on the background loop, from the first call until the session is closed."""

    loop: asyncio.AbstractEventLoop
    process: int
    context: contextvars.Context
    connection: _Connection | None = None
    probing: asyncio.Task[None] | None = None
    refreshing: asyncio.Task[None] | None = None
    is_closed: bool = False

    def is_usable(self) -> bool:
        """Return True if the link accepts calls. Thread-safe."""
        return not self.is_closed and self.process == os.getpid() and not self.loop.is_closed()

    async def close(self) -> None:
        """Close the connection, and wait until it is closed, at most for about `close_timeout_s`."""
        self.is_closed = True
        tasks = [task for task in (self.probing, self.refreshing) if task is not None]
        if self.connection is not None:
            tasks.append(self.connection.task)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class Session:
    """A session with a server, shared by any number of callers. It can be used again after `aclose`.

    Args:
        name: The server's name in messages.
        server: The server's configuration.
        keeper: Caches the server's listing between starts.
        host: The plugin host that provides the model for sampling, if the configuration names one.
    """

    def __init__(self, name: str, server: ServerConfig, keeper: Keeper, host: Plugins) -> None:
        self.name = name
        self.server = server
        self._keeper = keeper
        self._host = host
        self._lock = threading.Lock()
        self._task: sync.Stream[_Link] | None = None
        self._link: _Link | None = None
        self._asked = Asked(name)
        self._watchers: set[Watcher] = set()

    def watch(self, watcher: Watcher) -> None:
        """Notify a watcher of changes to the listing from now on."""
        self._watchers.add(watcher)

    def is_connected(self) -> bool:
        """Return True if the server is connected, so a call would not have to start it."""
        link = self._link
        connection = link.connection if link is not None and link.is_usable() else None
        return connection is not None and connection.opened.done() and connection.is_usable()

    async def do(
        self,
        work: Callable[[OpenServer], Awaitable[T]],
        *,
        what: str,
        timeout_s: float | None = None,
        again: bool = False,
        asker: ToolContext | None = None,
    ) -> T:
        """Run work with the client, connecting first if necessary.

        Args:
            work: The work.
            what: A description of the work for messages, such as "the call of 'add'".
            timeout_s: The time limit for the work, not counting the time to connect.
            again: True if the work is safe to repeat. It is then retried once if the server ends before answering.
            asker: The context of the tool call. Its user answers the server's questions, on the current event loop.

        Raises:
            ServerEndedError: The server cannot be reached, or ended in the meantime.
            ToolTimeoutError: The work timed out.
            ToolServiceError: The server rejected the request.
        """
        link = self._link
        if link is None or not link.is_usable():
            link = await sync.in_worker(self._begin)
        asking = (asker, asyncio.get_running_loop()) if asker else None
        return await on_loop(link.loop, self._doing(link, work, what, timeout_s, again=again, asking=asking))

    async def listing(self) -> Listing:
        """List the server's tools, and check for resources and prompts.

        Raises:
            ToolServiceError: The listing failed as described in `do`, or the server offers too many tools.
        """
        return await self.do(self.listing_of, what="the request to list its tools", again=True)

    async def listing_of(self, peer: OpenServer) -> Listing:
        """Return the connection's listing, fetching it on first use and after each change the server reports."""
        if peer.listing is not None:
            return peer.listing
        limit = self.server.list_timeout_s
        try:
            return await self._list(peer)
        except TimeoutError:
            peer.is_over.set()
            late = ToolServiceError(f"MCP server {self.name!r} did not list its tools within {limit:g} s")
            raise _with_note(late, peer.way.output()) from None

    async def _list(self, peer: OpenServer) -> Listing:
        """List what the server offers, and cache the list unless the server reports a change meanwhile.

        Raises:
            TimeoutError: The listing timed out.
        """
        changes = peer.changes
        async with asyncio.timeout(self.server.list_timeout_s):
            found = await list_server(peer.client, self.name, self.server, peer.way.entries)
        listing = await self._kept(found)
        if peer.changes == changes:
            peer.listing = listing
        return listing

    async def approve(self, peer: OpenServer, tool: Definition) -> None:
        """Record the approval of a tool as it is now."""
        listing = (await self.listing_of(peer)).approving(tool)
        if peer.listing is not None:
            peer.listing = listing
        await sync.in_worker(self._keeper.save, self.server.identity(), listing)
        self._tell(listing)

    def _tell(self, listing: Listing) -> None:
        for watcher in tuple(self._watchers):
            watcher.listed(listing)

    async def _kept(self, found: Listing) -> Listing:
        identity = self.server.identity()
        earlier = await sync.in_worker(self._keeper.load, identity)
        listing = found.following(earlier)
        if listing != earlier:
            await sync.in_worker(self._keeper.save, identity, listing)
        self._tell(listing)
        return listing

    async def aclose(self) -> None:
        """End the connection, and wait until the server has ended."""
        with self._lock:
            task, self._task, self._link = self._task, None, None
        if task is not None:
            await sync.in_worker(task.close)

    def _begin(self) -> _Link:
        with self._lock:
            if self._link is None or not self._link.is_usable():
                self._task = sync.iterate(self._own())
                self._link = next(self._task)
            return self._link

    # --- on the loop ---

    async def _own(self) -> AsyncIterator[_Link]:
        """Own a link until the session is closed."""
        link = _Link(asyncio.get_running_loop(), os.getpid(), contextvars.copy_context())
        try:
            yield link
            await asyncio.Event().wait()
        finally:
            await link.close()

    async def _connected(self, link: _Link) -> OpenServer:
        connection = link.connection
        if link.is_closed:
            raise ServerEndedError(
                f"MCP server {self.name!r} was closed before the request was sent; nothing was done",
                code="server_ended",
            )
        if connection is None or not connection.is_usable():
            opened: asyncio.Future[OpenServer] = link.loop.create_future()
            serving = self._serve(opened, connection)
            # Runs in the context of the session rather than of the first call.
            connection = _Connection(link.loop.create_task(serving, context=link.context), opened, self.name)
            link.connection = connection
        return await asyncio.shield(connection.opened)

    async def _serve(self, opened: asyncio.Future[OpenServer], earlier: _Connection | None) -> None:
        """Open the client, and close it when the connection is over. Both must happen in this task."""
        if earlier is not None:
            await asyncio.wait([earlier.task])  # the server may hold a port or a lock until it has ended
        loop = asyncio.get_running_loop()
        peer: OpenServer | None = None
        try:
            async with asyncio.timeout(None) as closing, AsyncExitStack() as stack:
                try:
                    peer = await self._open(stack)
                    if not opened.done():
                        opened.set_result(peer)
                    await _any_of(peer.is_over, peer.way.ended)
                finally:
                    if peer is not None:
                        peer.is_over.set()
                    closing.reschedule(loop.time() + self.server.close_timeout_s)
        except Exception as error:  # noqa: BLE001 - callers get the reason; a failure to close was caused by the same
            if not opened.done():
                opened.set_exception(error)
            _log.debug("MCP server %r: closing failed", self.name, exc_info=True)
        finally:
            if peer is not None:
                peer.say_closed()
                _log.info("MCP server %r %s", self.name, peer.way.problem or "was closed")

    async def _open(self, stack: AsyncExitStack) -> OpenServer:
        """Open the client, and wait until the server responds.

        Raises:
            ServerEndedError: The server did not respond.
        """
        from jackfield_mcp.opening import ways

        limit = self.server.connect_timeout_s
        if self.server.oauth is not None and self.server.oauth.grant == "authorization_code":
            limit += self.server.oauth.timeout_s  # a person may have to log in
        failure: Exception | None = None
        for way, streams in await ways(self.name, self.server):
            inner = AsyncExitStack()
            try:
                async with asyncio.timeout(limit):
                    client = await inner.enter_async_context(self._client(streams))
                    await self._listen(client, inner)
            except BaseException as error:
                with contextlib.suppress(Exception):  # the first failure is the one to report
                    async with asyncio.timeout(self.server.close_timeout_s):
                        await inner.aclose()
                if not isinstance(error, Exception):
                    raise
                failure = error
                if getattr(way, "status", 0) in _FALL_BACK:
                    continue  # an older server, perhaps
                break
            stack.push_async_exit(inner)
            way.entries.version = client.protocol_version
            return OpenServer(client, way, asyncio.Event())
        assert failure is not None  # noqa: S101 - there is at least one way
        raise self._why_not(failure, way, limit) from failure

    def _client(self, streams: Any) -> Client:
        from mcp import Client

        sampling = self.server.sampling
        return Client(
            streams,
            elicitation_callback=self._asked.elicit,
            # Without a callback, sampling is refused.
            sampling_callback=None if sampling is None else Sampler(self.name, sampling, self._host),
            message_handler=self._noticed,
            cache=None,
        )

    async def _listen(self, client: Client, stack: AsyncExitStack) -> None:
        """Subscribe to list changes, which servers with the newer protocol require."""
        from mcp import MCPError
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        offered = client.server_capabilities
        tools, prompts, resources = (
            bool(capability and capability.list_changed)
            for capability in (offered.tools, offered.prompts, offered.resources)
        )
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and (tools or prompts or resources):
            notifications = client.listen(
                tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
            )
            try:
                await stack.enter_async_context(notifications)  # they go to `_noticed`
            except MCPError:
                _log.debug("MCP server %r does not support notifications", self.name, exc_info=True)

    async def _noticed(self, message: object) -> None:
        import mcp_types

        changes = (
            mcp_types.ToolListChangedNotification,
            mcp_types.PromptListChangedNotification,
            mcp_types.ResourceListChangedNotification,
        )
        link = self._link
        if not isinstance(message, changes) or link is None or link.connection is None or link.is_closed:
            return
        opened = link.connection.opened
        if opened.done() and link.connection.is_usable():
            peer = opened.result()
            peer.changes += 1
            peer.listing = None
            peer.callable.clear()
            for watcher in tuple(self._watchers):
                watcher.reported()
            if link.refreshing is None or link.refreshing.done():
                link.refreshing = link.loop.create_task(self._refresh(peer))

    async def _refresh(self, peer: OpenServer) -> None:
        """List changed tools again, so the next agent gets the new list even if the current run has no further turn."""
        try:
            while True:  # a server that keeps reporting changes is listed only once in a while
                await asyncio.sleep(_REFRESH_AFTER_S)
                if peer.listing is not None or peer.is_over.is_set():
                    return
                await self._list(peer)
        except Exception:  # noqa: BLE001 - the next call lists again, and reports what is wrong
            _log.warning("MCP server %r reported a change, but its tools could not be listed", self.name, exc_info=True)

    def _why_not(self, error: BaseException, way: Any, limit_s: float) -> ToolServiceError:
        output = way.output()
        _log.warning("MCP server %r cannot be used%s", self.name, f"; it printed:\n{output}" if output else "")
        # The error names the cause; a hundred lines of the SDK's task groups would hide it.
        _log.debug("MCP server %r: connecting failed", self.name, exc_info=error)
        first = _first(error)
        if isinstance(first, TimeoutError):
            text = f"MCP server {self.name!r} did not respond within {limit_s:g} s; it is currently unavailable"
        elif isinstance(first, JackfieldError):
            text = str(first)
        else:
            reason = f"it {way.problem}" if way.problem else self.text_of(first)
            if self.server.url and type(first).__name__ == "ConnectError":  # of httpx2, imported for URLs only
                reason = f"could not connect ({reason}): check 'url', and that the server is running"
            text = f"MCP server {self.name!r} cannot be used: {reason}"
        return _with_note(ServerEndedError(text, code="server_ended"), output)

    def text_of(self, error: BaseException) -> str:
        """Return an error's message without secrets. For a group, the first error counts."""
        error = _first(error)
        text = " ".join(str(error).split())
        named = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return self.server.without_secrets(named)[:500]

    async def _doing(
        self,
        link: _Link,
        work: Callable[[OpenServer], Awaitable[T]],
        what: str,
        timeout_s: float | None,
        *,
        again: bool,
        asking: tuple[ToolContext, asyncio.AbstractEventLoop] | None,
    ) -> T:
        peer = await self._connected(link)
        call = self._asked.begin(*asking) if asking else None
        deadline = asyncio.timeout(timeout_s)
        try:
            return await peer.do(work, deadline)
        except asyncio.CancelledError:
            self._probe(link, peer)
            raise
        except Exception as error:
            lost = self._is_lost(error, peer, deadline)
            if deadline.expired() and not lost:
                self._probe(link, peer)
                unknown = "" if again else "; the operation may or may not have taken effect"
                raise ToolTimeoutError(
                    f"MCP server {self.name!r} did not finish {what} within {timeout_s:g} s{unknown}. Try a smaller "
                    "request",
                    may_be_done=not again,
                ) from error
            if lost:
                peer.is_over.set()
            if not (lost and again):
                raise self._as_tool_error(error, peer, what, lost=lost) from error
        finally:
            if call is not None:
                self._asked.end(call)
        return await self._doing(link, work, what, timeout_s, again=False, asking=asking)

    def _is_lost(self, error: Exception, peer: OpenServer, deadline: asyncio.Timeout) -> bool:
        import anyio
        from mcp import MCPError

        if isinstance(error, JackfieldError):
            return False
        if isinstance(error, MCPError):  # servers use the same codes
            return peer.has_ended() or error.message in _LOST
        if deadline.expired() or isinstance(error, RuntimeError):  # from a client that was closed before the call
            return peer.has_ended()
        return isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError | OSError)

    def _as_tool_error(self, error: Exception, peer: OpenServer, what: str, *, lost: bool) -> Exception:
        from mcp import MCPError

        if isinstance(error, JackfieldError):
            return error
        if lost:
            output = peer.way.output()
            _log.warning(
                "MCP server %r %s%s", self.name, peer.way.problem, f"; it printed:\n{output}" if output else ""
            )
            ended = ServerEndedError(
                f"MCP server {self.name!r} {peer.way.problem or 'closed the connection'} during {what}, which may or "
                f"may not have taken effect; the next call reconnects",
                code="server_ended",
                may_be_done=True,
            )
            return _with_note(ended, output)
        if isinstance(error, MCPError) and error.message.startswith(_NO_ANSWER):
            return ServerEndedError(
                f"MCP server {self.name!r} sent no response to {what}, which may or may not have taken effect: "
                f"{peer.way.problem or self.text_of(error)}",
                code="no_answer",
                may_be_done=True,
            )
        if isinstance(error, MCPError):
            return ToolServiceError(
                f"MCP server {self.name!r} rejected {what}: {self.server.without_secrets(error.message)[:2000]}",
                code=str(error.code),
            )
        _log.warning("MCP server %r: %s failed", self.name, what, exc_info=error)
        wrong = ToolServiceError(f"MCP server {self.name!r} sent an invalid response to {what}: {self.text_of(error)}")
        return _with_note(wrong, self.server.without_secrets(str(error))[:_MOST_NOTE])

    def _probe(self, link: _Link, peer: OpenServer) -> None:
        """Check in the background that a slow server still responds. If not, the next call reconnects."""
        if not link.is_closed and (link.probing is None or link.probing.done()):
            link.probing = link.loop.create_task(self._ask_for_a_sign(peer))

    async def _ask_for_a_sign(self, peer: OpenServer) -> None:
        try:
            async with asyncio.timeout(_ALIVE_S):
                await _sign_of(peer.client)
        except Exception:  # noqa: BLE001 - whatever it is, it is not an answer
            _log.warning("MCP server %r no longer responds; the next call reconnects", self.name)
            peer.is_over.set()


async def _sign_of(client: Client) -> None:
    import warnings

    from mcp import MCPError
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    with contextlib.suppress(MCPError), warnings.catch_warnings():  # an error is an answer as well
        warnings.simplefilter("ignore")
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await client.session.send_discover(client.protocol_version)
        else:
            await client.send_ping()


def _with_note(error: ToolServiceError, output: str) -> ToolServiceError:
    """Attach a note to an error. The model sees only the error; the note appears in the call's event."""
    if output:
        error.add_note(output)
    return error


def _first(error: BaseException) -> BaseException:
    """Return the first error of a group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _any_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
