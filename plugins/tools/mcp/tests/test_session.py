"""A session handles failures, lists and changes. No server is started."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types.version import LATEST_MODERN_VERSION

from jackfield.errors import JackfieldError, ToolServiceError, ToolTimeoutError
from jackfield.plugins import default_host
from jackfield_mcp import listing as listing_module
from jackfield_mcp import opening
from jackfield_mcp import session as session_module
from jackfield_mcp.listing import Definition, Keeper, Listing
from jackfield_mcp.servers import ServerConfig
from jackfield_mcp.session import OpenServer, ServerEndedError, Session
from jackfield_mcp.tools import ChangedError, MCPTool

from .conftest import PATIENCE_S, until

SECRET = "very-secret"
URL = "https://mcp.acme.example/mcp"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session("s", ServerConfig(command="c", env={"KEY": SECRET}), Keeper(tmp_path / "kept"), default_host())


def peer_of(*, has_ended: bool = False, problem: str = "", output: str = "") -> Any:
    way = SimpleNamespace(problem=problem, output=lambda: output)
    return SimpleNamespace(has_ended=lambda: has_ended, way=way, is_over=asyncio.Event())


@pytest.mark.parametrize(
    ("error", "has_ended", "is_expired", "is_lost"),
    [
        (ToolServiceError("refused"), True, False, False),
        (MCPError(-1, "Connection closed"), False, False, True),
        (MCPError(-1, "Session terminated"), False, False, True),
        (MCPError(-1, "out of order"), False, False, False),
        (MCPError(-1, "out of order"), True, False, True),
        (RuntimeError("closed"), True, False, True),
        (RuntimeError("wrong"), False, False, False),
        (anyio.ClosedResourceError(), False, False, True),
        (anyio.BrokenResourceError(), False, False, True),
        (OSError("reset"), False, False, True),
        (ValueError("wrong"), True, False, False),
        (TimeoutError(), False, True, False),
        (TimeoutError(), True, True, True),
    ],
    ids=repr,
)
def test_a_connection_is_lost_if_no_answer_can_come_any_more(
    session: Session, error: Exception, has_ended: bool, is_expired: bool, is_lost: bool
) -> None:
    deadline: Any = SimpleNamespace(expired=lambda: is_expired)
    assert session._is_lost(error, peer_of(has_ended=has_ended), deadline) is is_lost


@pytest.mark.parametrize(
    ("error", "lost", "kind", "text", "code", "may_be_done"),
    [
        (OSError("x"), True, ServerEndedError, "'s' closed the connection during the call to 'a', which may or may not",
         "server_ended", True),
        (MCPError(-7, f"no {SECRET}"), False, ToolServiceError, "'s' rejected the call to 'a': no …", "-7", False),
        (MCPError(-7, "SSE stream ended"), False, ServerEndedError, "'s' sent no response to the call to 'a', which",
         "no_answer", True),
        (ValueError(SECRET), False, ToolServiceError, "'s' sent an invalid response to the call to 'a': ValueError: …",
         None, False),
    ],
    ids=["lost", "refused", "no answer", "wrong"],
)  # fmt: skip
def test_each_failure_is_told_with_what_is_known_of_the_call(
    session: Session, error: Exception, lost: bool, kind: type, text: str, code: str | None, may_be_done: bool
) -> None:
    made: Any = session._as_tool_error(error, peer_of(), "the call to 'a'", lost=lost)
    assert type(made) is kind
    assert str(made).startswith(f"MCP server {text}")
    assert SECRET not in str(made) + str(getattr(made, "__notes__", ""))
    assert (made.code, bool(made.may_be_done)) == (code, may_be_done)


def test_an_error_of_ours_stays_what_it_is_and_a_lost_one_names_the_reason(session: Session) -> None:
    own = JackfieldError("x")
    assert session._as_tool_error(own, peer_of(), "x", lost=False) is own
    peer = peer_of(problem="exited with code 3", output="Traceback")
    made = session._as_tool_error(OSError(), peer, "the call to 'a'", lost=True)
    assert "'s' exited with code 3 during the call to 'a'" in str(made)
    assert made.__notes__ == ["Traceback"]


def test_the_text_of_an_error_is_that_of_the_first_of_a_group_without_secrets(session: Session) -> None:
    group = ExceptionGroup("many", [ExceptionGroup("more", [ValueError(f"a\n  {SECRET}")]), OSError("b")])
    assert session.text_of(group) == "ValueError: a …"
    assert session.text_of(ValueError()) == "ValueError"
    assert len(session.text_of(ValueError("x" * 600))) == 500


def test_a_call_that_waits_for_a_connection_ends_with_it(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    is_opening = threading.Event()

    async def open_for_ever(_: object) -> OpenServer:
        is_opening.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> None:
        monkeypatch.setattr(session, "_open", open_for_ever)
        waiting = asyncio.ensure_future(session.do(session.listing_of, what="the call to 'a'"))
        await until(is_opening.is_set)
        await session.aclose()
        with pytest.raises(
            ServerEndedError, match="closed before the connection was established; nothing was done"
        ) as caught:
            async with asyncio.timeout(PATIENCE_S):
                await waiting
        assert not caught.value.may_be_done

    asyncio.run(run())


@pytest.mark.parametrize("closes", ["before", "during"])
@pytest.mark.parametrize(("limit_s", "ends_at_s"), [(None, 1), (60, 1), (0.01, 0.01)])
def test_a_call_on_a_closed_connection_ends_soon_whatever_its_limit(
    closes: str, limit_s: float | None, ends_at_s: float
) -> None:
    peer = OpenServer(SimpleNamespace(), SimpleNamespace(), asyncio.Event())  # type: ignore[arg-type]

    async def run() -> float:
        began = asyncio.get_running_loop().time()
        deadline = asyncio.timeout(limit_s)

        async def work(_: OpenServer) -> float:
            if closes == "during":
                peer.say_closed()
            when = deadline.when()
            assert when is not None
            return when - began

        if closes == "before":
            peer.say_closed()
        return await peer.do(work, deadline)

    assert asyncio.run(run()) == pytest.approx(ends_at_s, abs=0.9)
    assert peer.has_ended()


@pytest.mark.parametrize(
    ("status", "falls_back"),
    [
        *((status, True) for status in (400, 404, 405, 406, 415)),
        *((status, False) for status in (0, 401, 403, 429, 500, 503)),
    ],
)
def test_an_address_is_tried_as_an_older_server_only_if_it_refuses_as_one(
    session: Session, status: int, falls_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Client:
        protocol_version = "2025-06-18"
        server_capabilities = SimpleNamespace(tools=None, prompts=None, resources=None)

        def __init__(self, streams: str) -> None:
            self.streams = streams

        async def __aenter__(self) -> Client:
            if self.streams == "http":
                raise OSError("refused")
            return self

        async def __aexit__(self, *_: object) -> None: ...

    entries = SimpleNamespace(version="")
    newer, older = (
        SimpleNamespace(status=status, problem="", output=lambda: "", entries=entries) for status in (status, 0)
    )

    async def ways(*_: object) -> list[Any]:
        return [(newer, "http"), (older, "sse")]

    monkeypatch.setattr(opening, "ways", ways)
    monkeypatch.setattr(session, "_client", Client)

    async def run() -> Any:
        async with AsyncExitStack() as stack:
            return (await session._open(stack)).way

    if falls_back:
        assert asyncio.run(run()) is older
        assert entries.version == "2025-06-18"
    else:
        with pytest.raises(ServerEndedError, match="'s' cannot be used: OSError: refused"):
            asyncio.run(run())


@pytest.mark.parametrize(
    ("oauth", "limit"),
    [
        (None, "0.02"),
        ({"timeout_s": 0.03}, "0.05"),
        (
            {"timeout_s": 0.03, "grant": "client_credentials", "client_id": "i", "client_secret": "s", "issuer": URL},
            "0.02",
        ),
    ],
    ids=["no login", "a person logs in", "no person logs in"],
)
def test_a_login_by_a_person_has_its_time_beside_that_of_the_connection(
    oauth: dict[str, Any] | None, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield

    async def ways(*_: object) -> list[Any]:
        return [(SimpleNamespace(problem="", output=lambda: ""), "http")]

    config = ServerConfig.model_validate({"url": URL, "oauth": oauth, "connect_timeout_s": 0.02})
    session = Session("s", config, Keeper(tmp_path / "kept"), default_host())
    monkeypatch.setattr(opening, "ways", ways)
    monkeypatch.setattr(session, "_client", connect)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await session._open(stack)

    with pytest.raises(ServerEndedError, match=f"did not respond within {limit} s"):
        asyncio.run(run())


def test_a_session_that_is_closed_while_it_subscribes_closes_its_client(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_listening = threading.Event()
    steps: list[str] = []

    class Client:
        protocol_version = LATEST_MODERN_VERSION
        server_capabilities = SimpleNamespace(tools=SimpleNamespace(list_changed=True), prompts=None, resources=None)

        def __init__(self, _: object) -> None: ...

        async def __aenter__(self) -> Client:
            steps.append("opened")
            return self

        async def __aexit__(self, *_: object) -> None:
            steps.append("closed")

        @asynccontextmanager
        async def listen(self, **_: object) -> AsyncIterator[None]:
            is_listening.set()
            await asyncio.Event().wait()
            yield

    async def ways(*_: object) -> list[Any]:
        return [(SimpleNamespace(problem="", output=lambda: ""), "stdio")]

    monkeypatch.setattr(opening, "ways", ways)
    monkeypatch.setattr(session, "_client", Client)

    async def run() -> None:
        waiting = asyncio.ensure_future(session.listing())
        await until(is_listening.is_set)
        await session.aclose()
        with pytest.raises(ServerEndedError, match="closed before the connection was established"):
            await waiting

    asyncio.run(run())
    assert steps == ["opened", "closed"]


@pytest.mark.parametrize("accepted", ["", "earlier", "present"])
def test_a_tool_is_called_only_in_the_form_that_a_person_approved(
    session: Session, accepted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = Definition("a", "changed", {"type": "object"})
    listing = Listing((present,)).following(Listing((TOOL,)).following(None))

    async def listing_of(_: OpenServer) -> Listing:
        return listing

    monkeypatch.setattr(session, "listing_of", listing_of)
    made = MCPTool("s-a", TOOL, SimpleNamespace(name="s", server=session.server), is_approved=False)  # type: ignore[arg-type]
    peer = OpenServer(SimpleNamespace(), SimpleNamespace(), asyncio.Event(), listing)  # type: ignore[arg-type]
    digest = {"": "", "earlier": TOOL.digest(), "present": present.digest()}[accepted]
    if accepted == "present":
        asyncio.run(made._check(session, peer, digest))
        assert peer.listing is not None
        assert peer.listing.is_approved(present)
    else:
        with pytest.raises(ChangedError):
            asyncio.run(made._check(session, peer, digest))
    assert peer.callable == ({"a"} if accepted == "present" else set())


@pytest.fixture
def peers(session: Session, monkeypatch: pytest.MonkeyPatch) -> list[OpenServer]:
    """The connections that the session makes: each call gets a new one."""
    made: list[OpenServer] = []

    async def connected(_: object) -> OpenServer:
        way: Any = SimpleNamespace(ended=asyncio.Event(), problem="", output=lambda: "")
        made.append(OpenServer(SimpleNamespace(), way, asyncio.Event()))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(session, "_connected", connected)
    return made


@pytest.mark.parametrize(("again", "times"), [(True, 2), (False, 1)])
def test_only_what_may_be_done_twice_is_repeated_and_only_once(
    session: Session, peers: list[OpenServer], again: bool, times: int
) -> None:
    async def work(_: OpenServer) -> None:
        raise OSError("reset")

    async def run() -> None:
        with pytest.raises(ServerEndedError, match="may or may not have taken effect"):
            await session.do(work, what="the call to 'a'", again=again)
        await session.aclose()

    asyncio.run(run())
    assert [peer.is_over.is_set() for peer in peers] == [True] * times


@pytest.mark.parametrize("how", ["too slow, once", "too slow, again", "cancelled"])
def test_a_server_that_does_not_answer_in_time_is_probed(
    session: Session, peers: list[OpenServer], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed: list[object] = []
    is_waiting = threading.Event()
    monkeypatch.setattr(session, "_probe", lambda _, peer: probed.append(peer))

    async def work(_: OpenServer) -> None:
        is_waiting.set()
        await asyncio.Event().wait()

    async def run() -> None:
        limit_s = None if how == "cancelled" else 0.01
        again = how == "too slow, again"
        call = asyncio.ensure_future(session.do(work, what="the call to 'a'", timeout_s=limit_s, again=again))
        if how == "cancelled":
            await until(is_waiting.is_set)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: probed != [])
        else:
            with pytest.raises(ToolTimeoutError, match=r"did not finish the call to 'a' within 0.01 s") as caught:
                await call
            assert caught.value.may_be_done is not again
            assert ("may or may not have taken effect" in str(caught.value)) is not again
        await session.aclose()

    asyncio.run(run())
    assert probed == peers
    assert len(peers) == 1


# --- lists ---


class Watcher:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def reported(self) -> None:
        self.heard.append("reported")

    def listed(self, listing: Listing) -> None:
        self.heard.append(listing)


TOOL = Definition("a", "d", {"type": "object"})


def test_a_list_is_kept_with_the_approvals_of_the_earlier_one_and_watchers_hear_of_it(session: Session) -> None:
    watcher, keeper, identity = Watcher(), session._keeper, session.server.identity()
    session.watch(watcher)
    first = asyncio.run(session._kept(Listing((TOOL,))))
    assert first.is_approved(TOOL)
    changed = Definition("a", "changed", {"type": "object"})
    second = asyncio.run(session._kept(Listing((changed,))))
    assert not second.is_approved(changed)
    assert watcher.heard == [first, second]
    assert keeper.load(identity) == second


def test_an_approval_is_kept_and_heard_of(session: Session) -> None:
    watcher = Watcher()
    session.watch(watcher)
    peer = OpenServer(SimpleNamespace(), SimpleNamespace(), asyncio.Event(), Listing((TOOL,)))  # type: ignore[arg-type]
    asyncio.run(session.approve(peer, TOOL))
    assert peer.listing is not None
    assert peer.listing.is_approved(TOOL)
    assert watcher.heard == [peer.listing]
    assert session._keeper.load(session.server.identity()) == peer.listing


def test_a_refused_list_is_empty_and_one_whose_connection_closed_is_not() -> None:
    assert not listing_module._refused(MCPError(-32601, "not found"))
    with pytest.raises(MCPError, match="Connection closed"):
        listing_module._refused(MCPError(-1, "Connection closed"))


def test_a_server_that_reports_changes_without_end_is_listed_once_a_second() -> None:
    assert session_module._REFRESH_AFTER_S == 1


@pytest.mark.parametrize("error", [ToolServiceError("too many"), MCPError(-1, "no"), OSError("reset"), TimeoutError()])
def test_a_change_that_cannot_be_listed_is_logged_and_ends_nothing(
    session: Session, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> Listing:
        raise error

    monkeypatch.setattr(session_module, "list_server", fail)
    monkeypatch.setattr(session_module, "_REFRESH_AFTER_S", 0)
    peer: Any = OpenServer(SimpleNamespace(), SimpleNamespace(entries=None), asyncio.Event())  # type: ignore[arg-type]
    asyncio.run(session._refresh(peer))
    assert peer.listing is None
    assert "MCP server 's' reported a change, but its tools could not be listed" in caplog.text
