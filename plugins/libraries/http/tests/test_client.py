"""The client over real connections: what it sends, what it keeps open, and what failures become."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import logging
import os
import re
import socket
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

import httpcore2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jackfield import sync
from jackfield.errors import (
    ModelConnectionError,
    ModelRequestError,
    ModelResponseError,
    ModelServiceError,
    ModelTimeoutError,
)
from jackfield.work import Work, surrounded
from jackfield_http import HTTPClient, Reply, header_pairs, transport
from jackfield_testkit.forks import output_of
from jackfield_testkit.server import FakeOpenAI, error, raw, text

Answering = Callable[..., AbstractContextManager[str]]
MakeClient = Callable[..., HTTPClient]
BODY = b'{"stream": true, "messages": []}'
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def exchange(client: HTTPClient, url: str, *, timeout_s: float = 20) -> Reply:
    return await client.exchange("POST", f"{url}/chat/completions", BODY, [], timeout_s=timeout_s)


def ask(client: HTTPClient, url: str, *, timeout_s: float = 20) -> Reply:
    return sync.run(exchange(client, url, timeout_s=timeout_s))


# --- requests and answers ---


def test_a_body_and_headers_arrive_and_an_answer_comes_back_whole(echo: str, make_client: MakeClient) -> None:
    headers = header_pairs({"X-Mine": "1", "Content-Type": "text/plain"}, {"x-mine": "2"})
    reply = sync.run(make_client(echo).exchange("POST", f"{echo}/a", b"hello", headers, timeout_s=20))
    assert (reply.status, reply.headers["x-mine"], reply.body) == (201, "2", b"hello")


def test_headers_are_bounded_for_each_answer_and_not_for_a_connection(echo: str, make_client: MakeClient) -> None:
    client = make_client(echo)

    async def main() -> list[int]:
        replies = [
            await client.exchange("GET", f"{echo}/a", b"", [(b"x-mine", b"a" * 60_000)], timeout_s=20) for _ in range(6)
        ]
        return [len(reply.headers["x-mine"]) for reply in replies]

    assert sync.run(main()) == [60_000] * 6


def test_no_more_of_a_rest_is_read_than_its_limit(
    echo: str, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_REST_BYTES", 1000)
    client = make_client(echo)

    async def rest(size: int) -> int:
        async with client.post(f"{echo}/a", b"x" * size, [], timeout_s=20) as response:
            return len(await response.rest())

    assert sync.run(rest(900)) == 900
    assert 1000 < sync.run(rest(10_000_000)) < 9_000_000


def test_headers_of_answers_are_not_logged(
    echo: str, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        reply = sync.run(make_client(echo).exchange("GET", f"{echo}/a", b"", [(b"x-mine", b"a-key")], timeout_s=20))
    assert reply.headers["x-mine"] == "a-key"
    assert "receive_response_headers.complete" in [record.getMessage() for record in caplog.records]
    assert "a-key" not in caplog.text


class Adds:
    """Observers that add headers to requests."""

    def enter(self, work: Work) -> Callable[[BaseException | None], None]:
        return lambda _: None

    def headers(self) -> dict[str, str]:
        return {"x-mine": "added"}


def test_headers_of_observers_are_added_inside_of_a_run_and_override_none(echo: str, make_client: MakeClient) -> None:
    client = make_client(echo)

    async def echoed(**own: str) -> str:
        reply = await client.exchange("POST", f"{echo}/a", b"hello", header_pairs(own), timeout_s=20)
        return reply.headers["x-mine"]

    async def ask_all() -> list[str]:
        outside = await echoed()
        with surrounded(Work(kind="run", run_id="r"), Adds()):
            return [outside, await echoed(), await echoed(**{"x-mine": "own"}), await echoed()]

    assert sync.run(ask_all()) == ["", "added", "own", "added"]


def test_a_get_has_no_body_and_keeps_its_query(echo: str, make_client: MakeClient) -> None:
    reply = sync.run(make_client(echo).exchange("GET", f"{echo}/a%20b?c=d&e", b"", [], timeout_s=20))
    assert reply.body == b"/a%20b?c=d&e"


def test_one_client_asks_several_paths_over_one_connection(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text("hello")
    client = make_client(server.url)
    for number in range(80):
        sync.run(client.exchange("POST", f"{server.url}/{number}", BODY, [], timeout_s=20))
    assert [request.path for request in server.requests] == [f"/v1/{number}" for number in range(80)]
    assert server.connections == 1


@pytest.mark.parametrize(
    "url",
    ["http://other.invalid:8000", "http://server.invalid:8001", "http://server.invalid", "https://server.invalid:8000"],
)
def test_a_url_at_another_server_is_refused(make_client: MakeClient, url: str) -> None:
    with pytest.raises(ValueError, match="not to"):
        ask(make_client("http://server.invalid:8000"), url)


def test_a_status_is_no_error(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.reply(error(503, "later"))
    assert ask(make_client(server.url), server.url).status == 503


def test_a_body_that_is_too_long_is_an_error_and_not_memory(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.reply(raw(b"x" * 1_000_000, {"Content-Type": "text/plain"}))
    with pytest.raises(ModelResponseError, match="1,000 bytes"):
        sync.run(make_client(server.url).exchange("POST", f"{server.url}/a", BODY, [], timeout_s=20, max_bytes=1000))


def test_a_reply_that_is_no_json_shows_what_it_is(echo: str, make_client: MakeClient) -> None:
    reply = sync.run(make_client(echo).exchange("POST", f"{echo}/a", b"<html>", [], timeout_s=20))
    with pytest.raises(ModelResponseError, match="<html>"):
        reply.json()
    assert Reply("acme", 200, {}, b'{"a": [1]}').json() == {"a": [1]}


@pytest.mark.parametrize(("limit", "fits"), [(999, False), (1000, True)])
def test_a_body_of_exactly_the_longest_size_is_read(
    server: FakeOpenAI, make_client: MakeClient, limit: int, fits: bool
) -> None:
    server.reply(raw(b"x" * 1000, {"Content-Type": "text/plain"}, status=418))
    call = make_client(server.url).exchange("POST", f"{server.url}/a", BODY, [], timeout_s=20, max_bytes=limit)
    if fits:
        assert len(sync.run(call).body) == 1000
    else:
        with pytest.raises(ModelResponseError) as caught:
            sync.run(call)
        assert (caught.value.backend, caught.value.status) == ("acme", 418)
        address = server.url.removesuffix("/v1")
        assert str(caught.value) == f"acme: {address} sent more than 999 bytes: request less at once"


def test_a_reply_that_is_no_json_is_quoted_in_part_and_without_the_key() -> None:
    reply = Reply("acme", 203, {"x": "sk-do-not-show"}, b"sk-do-not-show " + b"x" * 5000)
    with pytest.raises(ModelResponseError) as caught:
        reply.json("sk-do-not-show")
    assert (caught.value.backend, caught.value.status) == ("acme", 203)
    quoted = f"[key] {'x' * 74} …"
    assert str(caught.value) == f"acme: the server sent '{quoted}', which is not valid JSON: check the server's URL"
    assert "sk-do-not-show" not in repr(reply)
    assert "xxx" not in repr(reply)


def test_the_frames_of_an_error_hold_no_key(server: FakeOpenAI, make_client: MakeClient) -> None:
    headers = header_pairs({"authorization": "Bearer sk-do-not-show"})

    async def ask_gone() -> None:
        async with make_client("http://127.0.0.1:1").post("http://127.0.0.1:1/a", BODY, headers, timeout_s=20):
            raise AssertionError("nobody listens there")

    async def fail_inside() -> None:
        async with make_client(server.url).post(f"{server.url}/a", BODY, headers, timeout_s=20) as response:
            await response.read()

    async def fail_on_ones_own() -> None:
        async with make_client(server.url).post(f"{server.url}/a", BODY, headers, timeout_s=20):
            fail("sk-do-not-show")

    server.reply(text(["a", "b"]).reset_after(1), text("a"))
    for call, error_class in [
        (ask_gone, ModelConnectionError),
        (fail_inside, ModelConnectionError),
        (fail_on_ones_own, KeyError),
    ]:
        with pytest.raises(error_class) as caught:
            sync.run(call())
        assert "sk-do-not-show" not in "".join(locals_of(caught.value))


@pytest.mark.parametrize("begun", [False, True], ids=["before the answer", "in the middle of it"])
def test_the_frames_of_a_cancelled_request_hold_no_key(
    server: FakeOpenAI, make_client: MakeClient, begun: bool
) -> None:
    headers = header_pairs({"authorization": "Bearer sk-do-not-show"})
    reading = asyncio.Event()

    async def ask() -> None:
        async with make_client(server.url).post(f"{server.url}/a", BODY, headers, timeout_s=60) as response:
            await anext(response.pieces)
            reading.set()
            await response.read()
            raise AssertionError("the answer takes longer than this test")

    async def cancel() -> BaseException:
        task = asyncio.create_task(ask())
        while not (reading.is_set() if begun else server.requests):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)  # so that it reads on
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    server.reply(text(["a", "b"]).stall_after(1) if begun else text("a").delayed(30))
    error = sync.run(cancel())
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if "httpcore2" in frame.f_code.co_filename]
    assert frames
    assert [frame.f_locals for frame in frames if frame.f_locals] == []  # the request's headers are among them
    assert "sk-do-not-show" not in "".join(locals_of(error))


@pytest.mark.parametrize("inside", [True, False], ids=["later", "sending"])
def test_an_error_that_was_being_handled_keeps_its_local_variables(
    server: FakeOpenAI, make_client: MakeClient, inside: bool
) -> None:
    url = server.url if inside else "http://127.0.0.1:1"
    server.reply(text("a"))
    client = make_client(url)

    async def ask_while_handling() -> None:
        try:
            fail("a note for debugging")
        except KeyError as error:
            async with client.post(f"{url}/a", BODY, header_pairs(), timeout_s=20):
                raise ValueError("another") from error

    async def handled() -> BaseException | None:
        try:
            await ask_while_handling()
        except (ValueError, ModelConnectionError) as error:
            while error.__context__ is not None and not isinstance(error, KeyError):
                error = error.__context__  # type: ignore[assignment]
            return error
        return None

    error = sync.run(handled())
    assert isinstance(error, KeyError)
    assert "a note for debugging" in "".join(locals_of(error))


def fail(secret: str) -> None:
    raise KeyError("own")


def locals_of(error: BaseException) -> Iterator[str]:
    """The local variables of this package's frames, and of `fail`, in an error and its causes."""
    seen: BaseException | None = error
    while seen is not None:
        for frame, _ in traceback.walk_tb(seen.__traceback__):
            if "jackfield_http" in frame.f_code.co_filename or frame.f_code is fail.__code__:
                for value in frame.f_locals.values():
                    yield repr(list(value)) if isinstance(value, list) else repr(value)
        seen = seen.__cause__ or seen.__context__


def test_a_large_answer_arrives_whole_however_slowly_it_is_read(server: FakeOpenAI, make_client: MakeClient) -> None:
    # Several times what is read ahead, so that the socket must be paused and resumed.
    sent = b"".join(b"%06d" % number + b"x" * 994 for number in range(5000))
    server.reply(raw(sent, {"Content-Type": "text/plain"}))
    client = make_client(server.url)

    async def slowly() -> bytes:
        got = b""
        async with client.post(f"{server.url}/a", BODY, [], timeout_s=20) as response:
            async for piece in response.pieces:
                got += piece
                await asyncio.sleep(0.001)
        return got

    assert sync.run(slowly()) == sent


# --- failures ---


def test_silence_is_an_error_that_says_how_long_it_was(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text("hello").delayed(60)
    for timeout_s in (0.2, 0.8, 3.2):
        with pytest.raises((ModelTimeoutError, ModelConnectionError)) as caught:
            ask(make_client(server.url), server.url, timeout_s=timeout_s)
        if isinstance(caught.value, ModelTimeoutError):  # else the machine was too busy to connect
            break
    assert re.search(rf"acme: .* was silent for {timeout_s} s", str(caught.value))


def test_a_reused_connection_waits_as_long_as_the_later_request_allows(
    server: FakeOpenAI, make_client: MakeClient
) -> None:
    # An alarm that was set for the first request would ring after the answer to the second.
    server.reply(text("one"), text("two").delayed(3))
    client = make_client(server.url)
    assert b"one" in ask(client, server.url, timeout_s=60).body
    with pytest.raises(ModelTimeoutError, match=r"0\.2 s"):
        ask(client, server.url, timeout_s=0.2)
    assert server.connections == 1


def test_a_server_that_writes_slowly_is_not_silent(server: FakeOpenAI, make_client: MakeClient) -> None:
    for timeout_s in (0.5, 2.0, 8.0):  # more, if this machine is silent for as long
        server.default = text([str(number) for number in range(8)]).paced(timeout_s / 5)
        with suppress(ModelTimeoutError, ModelConnectionError):
            assert b"7" in ask(make_client(server.url), server.url, timeout_s=timeout_s).body
            return
    pytest.fail("an answer whose pauses are short ends in a time-out")


def test_a_stream_may_take_longer_than_any_other_answer(
    server: FakeOpenAI, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "PATIENCE", 0.05)
    server.reply(text([str(number) for number in range(6)]).paced(0.25))
    assert b"5" in ask(make_client(server.url), server.url, timeout_s=20).body


def test_a_refusal_must_be_whole_in_time_although_it_comes_as_a_stream(
    server: FakeOpenAI, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "PATIENCE", 0.01)
    server.reply(replace(text([str(number) for number in range(40)]).paced(0.25), status=500))
    with pytest.raises(ModelTimeoutError, match=r"did not finish its response in 0\.2 s"):
        ask(make_client(server.url), server.url, timeout_s=20)


def test_a_closed_port_says_which_address_without_what_lets_one_in(make_client: MakeClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://me:pass@127.0.0.1:{port}"
    with pytest.raises(ModelConnectionError, match=f"http://127.0.0.1:{port} ") as caught:
        ask(make_client(url), url)
    assert "pass" not in str(caught.value)


def test_a_header_that_cannot_be_sent_is_an_error_that_does_not_show_it(echo: str, make_client: MakeClient) -> None:
    call = make_client(echo).exchange(
        "POST", f"{echo}/a", BODY, header_pairs({"X-Token": "secret\nvalue"}), timeout_s=20
    )
    with pytest.raises(ModelRequestError) as caught:
        sync.run(call)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("where", ["header", "query"])
def test_a_key_that_a_server_repeats_in_place_of_an_answer_is_not_shown(make_client: MakeClient, where: str) -> None:
    key = "sk-0123456789abcdef"

    def repeat(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(f'"{key}"HTTP/1.1 500 Oops\r\n\r\n'.encode())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=repeat, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        headers = header_pairs({"authorization": f"Bearer {key}"} if where == "header" else {})
        asked = f"{url}/v1?key={key}" if where == "query" else f"{url}/v1"
        with pytest.raises(ModelConnectionError, match=r"illegal status line.*\[key\]") as caught:
            sync.run(make_client(url).exchange("GET", asked, b"", headers, timeout_s=20))
    assert key not in "".join(traceback.format_exception(caught.value))


def test_an_answer_that_breaks_off_is_an_error_of_the_connection(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.reply(text(["a", "b", "c"]).reset_after(1))
    with pytest.raises(ModelServiceError) as caught:
        ask(make_client(server.url), server.url)
    assert isinstance(caught.value, ModelConnectionError)


@pytest.mark.parametrize(("timeout_s", "connect_s"), [(120, 15), (15.5, 15), (4, 4)])
def test_connecting_takes_at_most_15_seconds_and_no_longer_than_any_silence(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, timeout_s: float, connect_s: float
) -> None:
    waited: list[float | None] = []

    async def connect_tcp(self: object, host: str, port: int, timeout: float | None = None, **options: object) -> None:
        waited.append(timeout)
        raise httpcore2.ConnectTimeout

    monkeypatch.setattr(transport._AsyncioBackend, "connect_tcp", connect_tcp)
    with pytest.raises(ModelConnectionError, match="cannot be reached"):
        ask(make_client("http://model.invalid"), "http://model.invalid", timeout_s=timeout_s)
    assert waited == [connect_s]


# --- connections ---


def test_a_connection_is_kept_after_any_answer_that_was_read(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.reply(error(400, "no"), text("yes"), error(500, "no"), text("yes"))
    client = make_client(server.url)
    assert [ask(client, server.url).status for _ in range(4)] == [400, 200, 500, 200]
    assert server.connections == 1


def test_requests_at_once_have_a_connection_each_and_later_ones_take_those(
    server: FakeOpenAI, make_client: MakeClient
) -> None:
    server.default = text("hello").delayed(0.2)
    client = make_client(server.url)

    async def crowd() -> None:
        await asyncio.gather(*(exchange(client, server.url) for _ in range(60)))

    sync.run(crowd())
    assert server.connections == 60
    sync.run(crowd())
    assert server.connections == 60


def test_what_follows_a_complete_answer_is_read_so_that_the_connection_is_kept(
    server: FakeOpenAI, make_client: MakeClient
) -> None:
    server.default = text(["a", "b"])
    client = make_client(server.url)

    async def leave_after_one() -> bytes:
        async with client.post(f"{server.url}/a", BODY, [], timeout_s=20) as response:
            await anext(response.pieces)
            return await response.rest()

    assert sync.run(leave_after_one()).strip().endswith(b"[DONE]")
    ask(client, server.url)
    assert server.connections == 1


def test_a_server_that_never_ends_its_answer_is_left(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text(["a", "b"]).stall_after(1)
    client = make_client(server.url)

    async def leave() -> bytes:
        async with client.post(f"{server.url}/a", BODY, [], timeout_s=20) as response:
            await anext(response.pieces)
            return await response.rest()

    assert sync.run(leave()) == b""
    assert server.wait_until(lambda s: s.open_connections == 0)


@pytest.mark.parametrize("stalls", [True, False], ids=["and the server stalls", "and the rest comes at once"])
def test_leaving_an_answer_closes_its_connection(server: FakeOpenAI, make_client: MakeClient, stalls: bool) -> None:
    server.default = text(["a", "b" * 100_000]).stall_after(1) if stalls else text(["a", "b" * 100_000])
    client = make_client(server.url)

    async def leave() -> None:
        async with client.post(f"{server.url}/a", BODY, [], timeout_s=20) as response:
            await anext(response.pieces)

    sync.run(leave())
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_closed_connection_is_not_kept_until_it_would_have_been_silent_for_too_long(
    server: FakeOpenAI, make_client: MakeClient
) -> None:
    server.default = text("hello")
    client = make_client(server.url)

    async def main() -> None:
        await exchange(client, server.url, timeout_s=600)
        sockets = [
            weakref.ref(one)
            for one in gc.get_objects()
            if isinstance(one, transport._Socket) and one._loop is asyncio.get_running_loop()
        ]
        assert sockets
        await client.aclose()
        while not all(one() is None for one in sockets):
            await asyncio.sleep(0.01)
            gc.collect()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_client_keeps_nothing_of_loops_that_have_ended(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text("hello")
    client = make_client(server.url)
    for _ in range(3):
        asyncio.run(exchange(client, server.url))
    assert len(client._connections) == 1
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_cancelling_closes_the_connection(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text("hello").delayed(30)
    client = make_client(server.url)

    async def cancel() -> None:
        call = asyncio.ensure_future(exchange(client, server.url))
        await asyncio.to_thread(server.wait_until, lambda s: bool(s.open_connections and s.requests))
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call

    sync.run(cancel())
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_client_works_on_one_event_loop_after_the_other_and_leaves_nothing_open(
    server: FakeOpenAI, make_client: MakeClient
) -> None:
    server.default = text("hello")
    client = make_client(server.url)
    gc.collect()  # what earlier tests have left is not this one's
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        for _ in range(3):
            assert asyncio.run(exchange(client, server.url)).status == 200
            assert server.wait_until(lambda s: s.open_connections == 0)
        gc.collect()


def test_a_client_works_on_several_event_loops_at_once(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text("hello")
    client = make_client(server.url)
    statuses: list[int] = []

    async def several() -> list[int]:
        return [reply.status for reply in await asyncio.gather(*(exchange(client, server.url) for _ in range(5)))]

    threads = [threading.Thread(target=lambda: statuses.extend(asyncio.run(several()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 20


def test_first_requests_at_once_share_one_opening(
    server: FakeOpenAI, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.default = text("hello")
    client = make_client(server.url)
    way, opened, all_wait = client._find_route, list[int](), threading.Event()

    def noting() -> object:
        opened.append(1)
        assert all_wait.wait(20)
        return way()

    monkeypatch.setattr(client, "_find_route", noting)

    async def several() -> list[int]:
        asking = [asyncio.create_task(exchange(client, server.url)) for _ in range(30)]
        await asyncio.sleep(0)
        all_wait.set()
        return [reply.status for reply in await asyncio.gather(*asking)]

    assert asyncio.run(several()) == [200] * 30
    assert opened == [1]


def test_a_closed_client_has_no_connections_and_can_be_used_again(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text("hello")
    client = make_client(server.url)
    ask(client, server.url)
    sync.run(client.aclose())
    sync.run(client.aclose())
    assert server.wait_until(lambda s: s.open_connections == 0)
    assert ask(client, server.url).status == 200


def test_closing_on_another_loop_closes_what_was_opened_here(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text("hello")
    client = make_client(server.url)
    ask(client, server.url)
    asyncio.run(client.aclose())
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_forgotten_client_leaves_no_connection_open(server: FakeOpenAI) -> None:
    server.default = text("hello")
    client = HTTPClient(server.url, backend="acme")
    ask(client, server.url)
    del client
    gc.collect()
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_idle_connections_that_have_expired_are_closed(
    server: FakeOpenAI, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "KEEPALIVE_S", 0.0)
    server.default = text("hello")
    client = make_client(server.url)
    for _ in range(3):
        assert ask(client, server.url).status == 200
    assert server.connections == 3
    assert server.wait_until(lambda s: s.open_connections == 1)


def test_closing_in_the_middle_of_an_answer_lets_it_end(server: FakeOpenAI, make_client: MakeClient) -> None:
    server.default = text(["a", "b", "c"]).paced(0.05)
    client = make_client(server.url)

    async def close_in_the_middle() -> bytes:
        got = b""
        async with client.post(f"{server.url}/a", BODY, [], timeout_s=20) as response:
            async for piece in response.pieces:
                await client.aclose()
                got += piece
        return got

    assert sync.run(close_in_the_middle()).strip().endswith(b"[DONE]")
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again(
    answering: Answering, make_client: MakeClient
) -> None:
    with answering(timeout=0.1) as url:
        client = make_client(url)
        assert ask(client, url).body == BODY
        time.sleep(0.4)  # the server closes a connection that is idle for 0.1 s
        assert ask(client, url).body == BODY


def test_a_connection_that_is_idle_for_too_long_is_closed_while_others_are_used(
    server: FakeOpenAI, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert transport.KEEPALIVE_S == 4, "many servers close an idle connection after five seconds"
    server.default = text("hello")

    async def use_one_of_two(client: HTTPClient) -> None:
        await asyncio.gather(exchange(client, server.url), exchange(client, server.url))
        for _ in range(200):
            await exchange(client, server.url)
            if server.wait_until(lambda s: s.open_connections == 1, timeout_s=0.02):
                return
            await asyncio.sleep(0.02)
        pytest.fail("the idle connection stays open")

    opened = []
    for keepalive_s in (0.3, 1.2, 4.8):  # if the machine stands still for as long, both are closed
        monkeypatch.setattr(transport, "KEEPALIVE_S", keepalive_s)
        before = server.connections
        sync.run(use_one_of_two(make_client(server.url)))
        opened.append(server.connections - before)
        if opened[-1] == 2:
            break
    assert opened[-1] == 2


@pytest.mark.parametrize(
    ("method", "body", "length"), [("GET", b"", None), ("POST", b"", "0"), ("GET", b"x", "1"), ("POST", b"ab", "2")]
)
def test_the_length_of_a_body_is_sent_unless_there_is_none(
    server: FakeOpenAI, make_client: MakeClient, method: str, body: bytes, length: str | None
) -> None:
    with _packets(CHUNKED_HEAD + b"0\r\n\r\n", until=b"\r\n\r\n" + body) as url:
        sent = _seen
        sent.clear()
        sync.run(make_client(url).exchange(method, f"{url}/a", body, header_pairs({"X-A": "1"}), timeout_s=20))
    head = sent[0].decode().lower()
    assert head.startswith(f"{method.lower()} /a http/1.1\r\nhost: 127.0.0.1:")
    assert ("content-length" in head) == (length is not None)
    if length is not None:
        assert f"content-length: {length}\r\n" in head


def test_only_a_request_on_a_kept_connection_is_sent_again_when_no_answer_comes(make_client: MakeClient) -> None:
    answers = [b"", CHUNKED_HEAD + b"0\r\n\r\n", b"", b""]
    asked: list[int] = []

    def serve() -> None:
        number = 0
        while number < len(answers):
            connection, _ = listener.accept()
            with connection:
                asked.append(number)
                while number < len(answers) and connection.recv(65_536):
                    number += 1
                    if not answers[number - 1]:
                        break
                    connection.sendall(answers[number - 1])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        client = make_client(url)
        with pytest.raises(ModelConnectionError):
            ask(client, url)  # the first connection: an error at once
        assert asked == [0]
        assert ask(client, url).status == 200  # the second one is kept
        with pytest.raises(ModelConnectionError):
            ask(client, url)  # it ends, and so does the third one
        assert asked == [0, 1, 3]
        thread.join()


def test_a_server_that_closes_after_each_answer_is_understood(answering: Answering, make_client: MakeClient) -> None:
    with answering(protocol_version="HTTP/1.0") as url:
        client = make_client(url)
        assert [ask(client, url).body for _ in range(2)] == [BODY, BODY]


def test_an_address_of_ip_version_6_is_reached(answering: Answering, make_client: MakeClient) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with answering(address="::1") as url:
        assert ask(make_client(url), url).body == BODY


# --- proxies and TLS ---


def test_a_proxy_of_the_environment_is_used(
    server: FakeOpenAI, make_client: MakeClient, no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("HTTP_PROXY", server.origin.replace("http://", "http://me:pass@"))
    server.reply(text("hello"))
    assert ask(make_client("http://model.invalid/v1"), "http://model.invalid/v1").status == 200
    request = server.requests[0]
    assert request.path == "http://model.invalid/v1/chat/completions"
    assert request.headers["host"] == "model.invalid"
    assert request.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:pass").decode()


def test_a_proxy_is_not_used_for_an_address_that_needs_none(
    echo: str, make_client: MakeClient, no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    no_proxies.setenv("NO_PROXY", "localhost,127.0.0.1")
    assert ask(make_client(echo), echo).body == BODY


def test_tls_is_spoken_and_the_certificate_is_checked(
    tls_echo: tuple[str, Path], make_client: MakeClient, no_proxies: pytest.MonkeyPatch
) -> None:
    url, certificate = tls_echo
    with pytest.raises(ModelConnectionError, match=r"(?i)certificate"):
        ask(make_client(url), url)
    no_proxies.setenv("SSL_CERT_FILE", str(certificate))
    client = make_client(url)
    assert [ask(client, url).body for _ in range(2)] == [BODY, BODY]


def test_a_tls_handshake_that_does_not_end_closes_its_connection(make_client: MakeClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        client = make_client(url)
        with pytest.raises(ModelConnectionError, match="TLS handshake did not finish"):
            ask(client, url, timeout_s=1)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(20)
            while connection.recv(65_536):
                pass


def test_a_tls_connection_that_ended_while_the_loop_was_busy_is_not_used_again(
    tls_echo: tuple[str, Path], make_client: MakeClient, no_proxies: pytest.MonkeyPatch
) -> None:
    url, certificate = tls_echo
    no_proxies.setenv("SSL_CERT_FILE", str(certificate))
    client = make_client(f"{url}/closing")

    async def several() -> list[bytes]:
        bodies = []
        for _ in range(5):
            bodies.append((await exchange(client, f"{url}/closing")).body)
            time.sleep(0.05)
        return bodies

    assert sync.run(several()) == [BODY] * 5


# --- answers that are released ---


async def released(client: HTTPClient, url: str) -> bytes:
    """The pieces up to `[DONE]`, as a backend reads them."""
    got = b""
    async with client.post(f"{url}/a", BODY, [], timeout_s=20) as response:
        async for piece in response.pieces:
            got += piece
            if b"[DONE]" in got:
                break
        response.release()
    return got


def test_a_released_connection_is_used_again_though_the_end_came_in_another_packet(
    server: FakeOpenAI, make_client: MakeClient
) -> None:
    server.default = text("hello").ended_apart(0.001)
    client = make_client(server.url)

    async def several() -> None:
        for _ in range(20):
            await released(client, server.url)

    sync.run(several())
    # Not exactly one: on a machine that is busy, the end may come later than a new connection.
    assert (len(server.requests), server.connections < 10) == (20, True)


def test_nobody_waits_for_a_server_that_holds_a_finished_stream_open(
    server: FakeOpenAI, make_client: MakeClient
) -> None:
    server.default = text("hello").held_open()
    client = make_client(server.url)

    async def ask_and_look() -> bool:
        await released(client, server.url)
        # In the way of the event loop: what it would do in the background, it has not done when the caller goes on.
        return server.wait_until(lambda s: s.disconnects > 0, timeout_s=0.3)

    assert not sync.run(ask_and_look()), "the answer ended only when the connection was closed"
    assert server.wait_until(lambda s: s.open_connections == 0, timeout_s=10), "the connection stays open for ever"


def test_an_event_loop_that_ends_leaves_no_released_connection_open(
    server: FakeOpenAI, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "REST_S", 60)
    server.default = text("hello").held_open()
    client = make_client(server.url)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(released(client, server.url))
        gc.collect()
    assert server.wait_until(lambda s: s.open_connections == 0, timeout_s=10)


def test_closing_a_client_closes_released_connections(
    server: FakeOpenAI, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "REST_S", 60)
    server.default = text("hello").held_open()
    client = make_client(server.url)

    async def ask_and_close() -> bool:
        await released(client, server.url)
        await client.aclose()
        return await asyncio.to_thread(server.wait_until, lambda s: s.open_connections == 0, timeout_s=10)

    assert sync.run(ask_and_close())


# --- answers that nobody asked for ---


@given(cut=st.integers(1, 1500), pieces=st.integers(1, 5))
def test_what_follows_an_answer_is_never_the_next_one_wherever_the_packets_end(cut: int, pieces: int) -> None:
    one = CHUNKED_HEAD + b"5\r\nright\r\n" * pieces + b"0\r\n\r\n"
    two = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
    assume(cut != len(one))  # then it may come after the next request, and nobody can tell it from its answer
    both = one + two
    with _packets(both[:cut], both[cut:]) as url:
        client = HTTPClient(url, backend="acme")

        async def twice() -> list[bytes]:
            try:
                return [(await exchange(client, url)).body for _ in range(2)]
            finally:
                await client.aclose()

        assert asyncio.run(twice()) == [b"right" * pieces] * 2


@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_bytes_behind_the_end_of_an_answer_stay_visible_wherever_the_packets_end(pieces: int) -> None:
    one = b"5\r\nright\r\n" * pieces + b"0\r\n\r\n"
    both = one + b"HTTP/1.1 200 OK\r\n\r\n"

    async def read(cut: int) -> None:
        connection = transport._Socket()
        connection.data_received(CHUNKED_HEAD)
        seen = await connection.read(65536)
        connection.expect(chunks=True, stream=True)
        for packet in (both[:cut], both[cut:]):
            if packet:
                connection.data_received(packet)
                seen += await connection.read(65536)
        assert len(seen) < len(CHUNKED_HEAD + both)
        assert connection.get_extra_info("is_readable")  # so it is not used again

    for cut in range(len(one) + 1):
        asyncio.run(read(cut))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_end_of_an_answer_is_seen_however_small_the_packets_are(size: int) -> None:
    one = b"5\r\nright\r\n0\r\n\r\n"
    behind = b"HTTP/1.1 200 OK\r\n\r\n"

    async def read() -> None:
        connection = transport._Socket()
        connection.data_received(CHUNKED_HEAD)
        seen = await connection.read(65536)
        connection.expect(chunks=True, stream=True)
        for start in range(0, len(one) - 1, size):
            connection.data_received(one[start : min(start + size, len(one) - 1)])
            seen += await connection.read(65536)
        connection.data_received(one[-1:] + behind)
        seen += await connection.read(65536)
        assert len(seen) < len(CHUNKED_HEAD + one + behind)
        assert connection.get_extra_info("is_readable")

    asyncio.run(read())


def test_no_more_of_a_body_is_read_than_its_limit_needs() -> None:
    taken = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 10

    body = asyncio.run(transport.Response(200, {}, pieces()).read(limit=30))
    assert (len(body), taken) == (30, 3)


@pytest.mark.parametrize(
    "failure",
    [httpcore2.ReadError, httpcore2.RemoteProtocolError, httpcore2.ReadTimeout, TimeoutError],
    ids=lambda failure: failure.__name__,
)
def test_a_rest_that_breaks_off_is_not_read_in_part(failure: type[Exception]) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"data: {"
        raise failure("broken")

    assert asyncio.run(transport.Response(200, {}, pieces()).rest()) == b""


_seen: list[bytes] = []
"""The requests that a server of `_packets` has read."""


@contextlib.contextmanager
def _packets(*packets: bytes, until: bytes = BODY) -> Iterator[str]:
    """The URL of a server that sends these for each request, which ends so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while request := await reader.readuntil(until):
                    _seen.append(request)
                    for packet in packets:
                        writer.write(packet)
                        await asyncio.sleep(0)
        finally:  # the end of this server may cancel it
            writer.close()

    async def run(started: threading.Event) -> None:
        async with await asyncio.start_server(serve, sock=listener):
            started.set()
            await asyncio.to_thread(over.wait)

    over, started = threading.Event(), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(run(started)))
    thread.start()
    started.wait()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join()


# --- cost ---


def test_importing_it_and_making_a_client_loads_no_http_stack() -> None:
    code = (
        "import sys; from jackfield_http import HTTPClient; HTTPClient('https://api.example', backend='b');"
        "print([name for name in ('httpx2', 'httpcore2', 'anyio', 'ssl') if name in sys.modules])"
    )
    assert output_of(code) in ("[]", "['ssl']")


def test_no_certificates_are_loaded_for_a_server_without_tls(
    echo: str, make_client: MakeClient, no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("SSL_CERT_FILE", "/no/such/file.pem")  # to load it is an error
    assert ask(make_client(echo), echo).body == BODY


def test_a_request_loads_no_more_of_the_http_stack_than_it_uses(tls_echo: tuple[str, Path]) -> None:
    url, certificate = tls_echo
    code = (
        "import asyncio, sys; from jackfield_http import HTTPClient\n"
        "client = HTTPClient(sys.argv[1], backend='b')\n"
        "assert asyncio.run(client.exchange('POST', sys.argv[1], b'{}', [], timeout_s=30)).status == 201\n"
        "print([name for name in ('httpx2', 'rich', 'click', 'certifi') if name in sys.modules])"
    )
    proxies = {f"{kind}_proxy" for kind in ("http", "https", "all")}
    kept = {name: value for name, value in os.environ.items() if name.lower() not in proxies}
    environment = {**kept, "SSL_CERT_FILE": str(certificate)}
    assert output_of(code, url, env=environment) == "[]"
