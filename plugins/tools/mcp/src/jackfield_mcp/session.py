"""One server, reached at first use, and again when it has ended; from any event loop.

The SDK's client must be closed in the task that opened it. So each server has one task of its own, on the core's
background loop, where all that is asked of it runs as well; what comes from another loop is handed over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from jackfield import sync
from jackfield.errors import JackfieldError, ToolServiceError, ToolTimeoutError
from jackfield.plugins import PluginHost
from jackfield_mcp.asking import Ask, Asked
from jackfield_mcp.bridge import on_loop
from jackfield_mcp.listing import Definition, Keeper, Listing, listed
from jackfield_mcp.sampling import Sampler
from jackfield_mcp.servers import ServerConfig

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
_log = logging.getLogger(__name__)

_ALIVE_S = 5.0  # for a server that has not answered in time to show that it is still there
_LOST = ("Connection closed", "Session terminated")  # what the SDK says of a connection, and of a forgotten session
_MOST_NOTE = 20_000  # characters
_FALL_BACK = (400, 404, 405, 406, 415)  # how an address of SSE refuses streamable HTTP


class ServerEndedError(ToolServiceError):
    """A server ended, or could not be reached; the next call tries again."""


@dataclass(slots=True)
class Opened:
    """A server that is spoken to.

    Attributes:
        client: Speaks to it.
        way: A `ServerProcess` or a `RemoteServer`.
        is_over: Set when it is to be closed.
        listing: What it offers; None until it was asked, and again when it says that this has changed.
        callable: The names of tools that are in this listing, and approved.
    """

    client: Client
    way: Any
    is_over: asyncio.Event
    listing: Listing | None = None
    callable: set[str] = field(default_factory=set)


class Session:
    """A server, whoever uses it. `aclose` ends it; it can be used again afterwards.

    Args:
        name: What it is called in texts.
        server: How it is reached.
        keeper: Where it is kept what it offers.
        host: Where the model is looked up that the server may ask, if its configuration names one.
    """

    def __init__(self, name: str, server: ServerConfig, keeper: Keeper, host: PluginHost) -> None:
        self.name = name
        self.server = server
        self._keeper = keeper
        self._host = host
        self._lock = threading.Lock()
        self._task: sync.Stream[None] | None = None
        self._process = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        # On the loop only:
        self._wanted = asyncio.Event()
        self._opened: asyncio.Future[Opened] | None = None
        self._probing: asyncio.Task[None] | None = None
        self._asked = Asked(name)

    async def do(
        self,
        work: Callable[[Opened], Awaitable[T]],
        *,
        what: str,
        timeout_s: float | None = None,
        again: bool = False,
        ask: Ask | None = None,
    ) -> T:
        """Have something done with the client, which is opened if need be.

        Args:
            work: What to do.
            what: What it is, for texts: "the call of 'add'".
            timeout_s: How long it may take, without opening the client.
            again: It does no harm if it is done twice, so it is when the server ends meanwhile.
            ask: Answers what the server asks meanwhile, on this loop.

        Raises:
            ServerEndedError: The server cannot be reached, or ended meanwhile.
            ToolTimeoutError: It took too long.
            ToolServiceError: The server refused.
        """
        if self._loop is None or self._process != os.getpid() or self._loop.is_closed():
            await sync.in_worker(self._begin)
        assert self._loop is not None  # noqa: S101 - set by `_begin`
        here = asyncio.get_running_loop()
        return await on_loop(self._loop, self._doing(work, what, timeout_s, again, (ask, here) if ask else None))

    async def listing(self) -> Listing:
        """What the server offers.

        Raises:
            ToolServiceError: As `do`; or it offers too much.
        """
        return await self.do(self.listing_of, what="the listing of its tools", again=True)

    async def listing_of(self, one: Opened) -> Listing:
        """What the server offers, asked once for each time it is reached, and when it says that it has changed."""
        if one.listing is None:
            limit = self.server.list_timeout_s
            try:
                async with asyncio.timeout(limit):
                    found = await listed(one.client, self.name, self.server)
            except TimeoutError:
                one.is_over.set()
                raise ToolServiceError(f"MCP server {self.name!r} did not list its tools in {limit:g} s") from None
            one.listing = await self._kept(found)
        return one.listing

    async def approve(self, one: Opened, tool: Definition) -> None:
        """Keep that somebody approved a tool as it is now."""
        one.listing = (await self.listing_of(one)).approving(tool)
        await sync.in_worker(self._keeper.save, self.server.identity(), one.listing)

    async def _kept(self, found: Listing) -> Listing:
        identity = self.server.identity()
        earlier = await sync.in_worker(self._keeper.load, identity)
        listing = found.following(earlier)
        if listing != earlier:
            await sync.in_worker(self._keeper.save, identity, listing)
        return listing

    async def aclose(self) -> None:
        """End the server, and wait until it has ended."""
        with self._lock:
            task, self._task, self._loop = self._task, None, None
        if task is not None:
            await sync.in_worker(task.close)

    def _begin(self) -> None:
        with self._lock:
            if self._task is None or self._process != os.getpid() or (self._loop and self._loop.is_closed()):
                self._process = os.getpid()
                self._task = sync.iterate(self._own())
                next(self._task)

    # --- on the loop ---

    async def _own(self) -> AsyncIterator[None]:
        """The one task that opens and closes the client."""
        self._loop, self._wanted, self._opened = asyncio.get_running_loop(), asyncio.Event(), None
        yield None
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._serve()
            except Exception:  # noqa: BLE001 - what a broken connection raises while it is closed is what broke it
                _log.debug("MCP server %r: closing failed", self.name, exc_info=True)

    async def _serve(self) -> None:
        opened = self._opened
        assert opened is not None  # noqa: S101 - whoever wants one has put it there
        async with AsyncExitStack() as stack:
            try:
                one = await self._open(stack)
            except Exception as error:  # noqa: BLE001 - whoever waits for it has it
                self._opened = None
                if not opened.done():
                    opened.set_exception(error)
                    opened.exception()  # nobody may wait any more
                return
            if not opened.done():
                opened.set_result(one)
            try:
                await _any_of(one.is_over, one.way.ended)
            finally:
                self._opened = None
                one.is_over.set()
            _log.info("MCP server %r %s", self.name, one.way.problem or "is closed")

    async def _open(self, stack: AsyncExitStack) -> Opened:
        """The client, once the server has answered.

        Raises:
            ServerEndedError: It did not.
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
                await inner.aclose()
                if not isinstance(error, Exception):
                    raise
                failure = error
                if getattr(way, "status", 0) in _FALL_BACK:
                    continue  # an older server, perhaps
                break
            stack.push_async_exit(inner)
            return Opened(client, way, asyncio.Event())
        assert failure is not None  # noqa: S101 - there is at least one way
        raise self._why_not(failure, way) from failure

    def _client(self, streams: Any) -> Client:
        from mcp import Client

        sampling = self.server.sampling
        return Client(
            streams,
            elicitation_callback=self._asked.elicit,
            # Without a callback it is refused.
            sampling_callback=None if sampling is None else Sampler(self.name, sampling, self._host),
            message_handler=self._noticed,
            cache=None,
        )

    async def _listen(self, client: Client, stack: AsyncExitStack) -> None:
        """Ask to be notified of changed tools, which servers of the newer protocol do only then."""
        from mcp import MCPError
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        tools = client.server_capabilities.tools
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools and tools.list_changed:
            try:
                await stack.enter_async_context(client.listen(tools_list_changed=True))  # it goes to `_noticed`
            except MCPError:
                _log.debug("MCP server %r sends no notifications", self.name, exc_info=True)

    async def _noticed(self, message: object) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification) and self._opened is not None and self._opened.done():
            one = self._opened.result()
            one.listing = None
            one.callable.clear()

    def _why_not(self, error: BaseException, way: Any) -> ToolServiceError:
        told = way.told()
        _log.warning(
            "MCP server %r cannot be used%s", self.name, f"; it printed:\n{told}" if told else "", exc_info=error
        )
        first = _first(error)
        if isinstance(first, TimeoutError):
            limit = self.server.connect_timeout_s
            text = f"MCP server {self.name!r} did not answer in {limit:g} s; it cannot be used now"
        elif isinstance(first, JackfieldError):
            text = str(first)
        else:
            reason = f"it {way.problem}" if way.problem else self.text_of(first)
            text = f"MCP server {self.name!r} cannot be used: {reason}"
        return _with_note(ServerEndedError(text, code="server_ended"), told)

    def text_of(self, error: BaseException) -> str:
        """The text of an error, the first of a group, without secrets."""
        error = _first(error)
        text = " ".join(str(error).split())
        named = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return self.server.without_secrets(named)[:500]

    async def _connected(self) -> Opened:
        opened = self._opened
        if opened is not None and opened.done() and not (one := opened.result()).is_over.is_set():
            return one
        if opened is None or opened.done():
            opened = self._opened = asyncio.get_running_loop().create_future()
            self._wanted.set()
        return await asyncio.shield(opened)

    async def _doing(
        self,
        work: Callable[[Opened], Awaitable[T]],
        what: str,
        timeout_s: float | None,
        again: bool,
        asking: tuple[Ask, asyncio.AbstractEventLoop] | None,
    ) -> T:
        one = await self._connected()
        call = self._asked.begin(*asking) if asking else None
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                return await work(one)
        except asyncio.CancelledError:
            self._probe(one)
            raise
        except Exception as error:
            if timeout_s is not None and limit.expired():
                self._probe(one)
                raise ToolTimeoutError(
                    f"MCP server {self.name!r} did not finish {what} in {timeout_s:g} s; ask it for less at once"
                ) from error
            lost = self._is_lost(error, one)
            if lost:
                one.is_over.set()
            if not (lost and again):
                raise self._as_tool_error(error, one, what, lost=lost) from error
        finally:
            if call is not None:
                self._asked.end(call)
        return await self._doing(work, what, timeout_s, False, asking)

    def _is_lost(self, error: Exception, one: Opened) -> bool:
        import anyio
        from mcp import MCPError

        if isinstance(error, MCPError):  # its codes are also those of servers
            return one.way.ended.is_set() or error.message in _LOST
        return isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError | OSError)

    def _as_tool_error(self, error: Exception, one: Opened, what: str, *, lost: bool) -> Exception:
        from mcp import MCPError

        if isinstance(error, JackfieldError):
            return error
        if lost:
            told = one.way.told()
            _log.warning("MCP server %r %s%s", self.name, one.way.problem, f"; it printed:\n{told}" if told else "")
            ended = ServerEndedError(
                f"MCP server {self.name!r} {one.way.problem or 'closed the connection'} during {what}, which may or "
                f"may not have been done; the next call reaches it again",
                code="server_ended",
            )
            return _with_note(ended, told)
        if isinstance(error, MCPError):
            return ToolServiceError(
                f"MCP server {self.name!r} refused {what}: {self.server.without_secrets(error.message)[:2000]}",
                code=str(error.code),
            )
        _log.warning("MCP server %r: %s failed", self.name, what, exc_info=error)
        wrong = ToolServiceError(f"MCP server {self.name!r} answered {what} wrongly: {self.text_of(error)}")
        return _with_note(wrong, self.server.without_secrets(str(error))[:_MOST_NOTE])

    def _probe(self, one: Opened) -> None:
        """See whether a server that was too slow is still there; one that is not is reached again by the next call."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.get_running_loop().create_task(self._ask_for_a_sign(one))

    async def _ask_for_a_sign(self, one: Opened) -> None:
        try:
            async with asyncio.timeout(_ALIVE_S):
                await _sign_of(one.client)
        except Exception:  # noqa: BLE001 - whatever it is, it is not an answer
            _log.warning("MCP server %r no longer answers: the next call reaches it again", self.name)
            one.is_over.set()


async def _sign_of(client: Client) -> None:
    import warnings

    from mcp import MCPError
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    with contextlib.suppress(MCPError), warnings.catch_warnings():  # an error is an answer
        warnings.simplefilter("ignore")
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await client.session.send_discover(client.protocol_version)
        else:
            await client.send_ping()


def _with_note(error: ToolServiceError, told: str) -> ToolServiceError:
    """An error for the model with what people want to know; that is in the event of the call."""
    if told:
        error.add_note(told)
    return error


def _first(error: BaseException) -> BaseException:
    """An error, or the first one of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _any_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
