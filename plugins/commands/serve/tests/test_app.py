"""The application: which face answers, what reaches it, and how requests are refused, without a server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import ConfigError, PluginNotFoundError, StoreUnavailableError
from jackfield.plugins import PluginHost
from jackfield.servers import OWNER, HttpServer, Refusal, RequestRefusedError, owner_of, plain_refusal, refusal_of
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_serve import ServingApp, Tokens, serving_app
from jackfield_serving import MemoryStore

TOKEN = "ada-Zq83bXw4Rk2LpV7Tn"
Message = MutableMapping[str, Any]
Act = Callable[[Message, Any, Any], Awaitable[None]]


async def say_ok(scope: Message, receive: Any, send: Any) -> None:
    """Answer with the owner of the request."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": owner_of(scope).encode()})


class Face(HttpServer):
    """A face that does as a test says, and records when it is opened and closed."""

    def __init__(self, name: str = "acme", paths: tuple[str, ...] = ("/acme",), act: Act = say_ok) -> None:
        self.name, self.paths, self.act = name, paths, act  # type: ignore[misc]
        self.open_paths = ("/acme/page", "/acme/static/*")
        self.journal: list[str] = []
        self.scopes: list[Message] = []

    def app(self, serving: Any) -> Any:
        async def app(scope: Message, receive: Any, send: Any) -> None:
            self.scopes.append(scope)
            await self.act(scope, receive, send)

        self.journal.append("app")
        return app

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:  # type: ignore[override]
        self.journal.append("open")
        yield
        self.journal.append("left")

    async def aclose(self) -> None:
        self.journal.append("closed")

    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        return "text/acme", f"{refusal.code}: {refusal.message}".encode()


def app_of(*faces: Face, **options: Any) -> ServingApp:
    agent = FnCallAgent(llm=ScriptedModel(lambda request: answer("hello")))
    return serving_app({"hello": agent}, faces=faces, **options)


def scope_of(path: str, *, kind: str = "http", method: str = "GET", token: str = "", **more: Any) -> Message:
    headers = [(b"host", b"localhost:8000")]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    return {"type": kind, "path": path, "method": method, "headers": headers, **more}


async def ask(app: ServingApp, scope: Message, *, received: Message | None = None) -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        return received or {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        await app(scope, receive, send)
    finally:
        await app.aclose()
    return sent


def reply(app: ServingApp, scope: Message, **options: Any) -> tuple[int, Mapping[bytes, bytes], bytes]:
    start, body = asyncio.run(ask(app, scope, **options))
    return start["status"], dict(start["headers"]), body["body"]


# --- paths ---


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/acme", "acme"),
        ("/acme/deep/path", "acme"),
        ("/acme/inner", "inner"),
        ("/acme/inner/deep", "inner"),
        ("/acmeology", "all"),
        ("/", "all"),
        ("/other", "all"),
    ],
)
def test_the_face_with_the_longest_path_answers(path: str, name: str) -> None:
    faces = [Face("acme", ("/acme/",)), Face("inner", ("acme/inner",)), Face("all", ("/",))]
    assert reply(app_of(*faces), scope_of(path))[0] == 200
    assert [face.name for face in faces if face.scopes] == [name]


class NotFound(Exception):  # noqa: N818 - like the error of an ASGI framework
    status_code, detail = 404, "Not Found"


def test_without_a_face_for_everything_other_paths_are_not_found() -> None:
    status, headers, body = reply(app_of(Face()), scope_of("/acmeology"))
    assert (status, headers[b"content-type"]) == (404, b"application/json")
    assert b"nothing is served at this path: check the URL" in body
    assert body == plain_refusal(refusal_of(NotFound()))[1], "the same as for a path that a face does not have"


def test_paths_are_below_the_place_where_it_is_mounted() -> None:
    face = Face()
    assert reply(app_of(face), scope_of("/ai/acme/x", root_path="/ai"))[0] == 200
    assert reply(app_of(face), scope_of("/acme", root_path="/ac"))[0] == 200  # some servers leave the prefix out
    assert reply(app_of(face), scope_of("/ai/healthz", root_path="/ai")) == (
        200,
        {b"content-type": b"text/plain", b"content-length": b"3"},
        b"ok\n",
    )


def test_a_face_may_have_several_paths_and_is_opened_once() -> None:
    face = Face(paths=("/acme", "/more"))
    assert reply(app_of(face), scope_of("/more/x"))[0] == 200
    assert face.journal == ["app", "open", "left", "closed"]


def test_a_face_may_have_the_path_of_the_metrics() -> None:
    face = Face(paths=("/metrics",))
    assert reply(app_of(face), scope_of("/metrics"))[0] == 200
    assert len(face.scopes) == 1


def test_a_face_without_http_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"To use it, run: jackfield serve --stdio object$"):
        ServingApp(None, [object()], None)  # type: ignore[arg-type]


# --- owners ---


def test_the_owner_of_a_request_is_in_its_scope_and_the_callers_scope_is_left_alone() -> None:
    face, scope = Face(), scope_of("/acme", token=TOKEN)
    app = app_of(face, tokens=Tokens([("ada", TOKEN)]))
    assert reply(app, scope)[2] == b"ada"
    assert face.scopes[0]["app"] is app
    assert scope.keys() == scope_of("/acme").keys()


def test_an_owner_that_is_in_the_scope_already_is_replaced() -> None:
    tokens = Tokens([("ada", TOKEN)])
    assert reply(app_of(Face(), tokens=tokens), scope_of("/acme", token=TOKEN, **{OWNER: "eve"}))[2] == b"ada"
    assert reply(app_of(Face()), scope_of("/acme", **{OWNER: "eve"}))[2] == b""


@pytest.mark.parametrize("path", ["/acme", "acme", "/acme/"])
def test_two_faces_at_one_path_are_refused_however_it_is_written(path: str) -> None:
    with pytest.raises(ConfigError, match="faces 'one' and 'two' both serve '/acme': remove one of them"):
        app_of(Face("one", ("/acme",)), Face("two", ("/two", path)))


def test_a_scope_that_names_another_application_keeps_it() -> None:
    face = Face()
    reply(app_of(face), scope_of("/acme", app="another"))
    assert face.scopes[0]["app"] == "another"


@pytest.mark.parametrize(
    ("path", "method", "kind", "is_open"),
    [
        ("/acme/page", "GET", "http", True),
        ("/acme/page", "HEAD", "http", True),
        ("/acme/page", "POST", "http", False),
        ("/acme/page/more", "GET", "http", False),
        ("/acme/static/a.js", "GET", "http", True),
        ("/acme/static", "GET", "http", False),
        ("/acme", "GET", "http", False),
        ("/acme/page", "GET", "websocket", False),
    ],
)
def test_open_paths_need_no_token(path: str, method: str, kind: str, is_open: bool) -> None:
    face = Face()
    app = app_of(face, tokens=Tokens([("ada", TOKEN)]))
    sent = asyncio.run(ask(app, scope_of(path, method=method, kind=kind)))
    assert bool(face.scopes) is is_open
    if kind == "websocket":
        assert sent == [{"type": "websocket.close", "code": 1008}]
    else:
        assert sent[0]["status"] == (200 if is_open else 401)


# --- refusals ---


def failing(error: Exception, *, after: int = 0) -> Act:
    """Return an application that fails after it has sent some messages."""

    async def act(scope: Message, receive: Any, send: Any) -> None:
        for _ in range(after):
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (RequestRefusedError("no", status=401), 401, {b"www-authenticate": b"Bearer"}),
        (RequestRefusedError("no", status=403), 403, {}),
        (RequestRefusedError("no", status=408), 408, {b"connection": b"close"}),
        (RequestRefusedError("no", status=413), 413, {b"connection": b"close"}),
        (RequestRefusedError("no", status=431), 431, {b"connection": b"close"}),
        (RequestRefusedError("no", status=429, retry_after_s=2.6), 429, {b"retry-after": b"3"}),
        (RequestRefusedError("no", status=429, retry_after_s=0.1), 429, {b"retry-after": b"1"}),
        (RequestRefusedError("no", status=503), 503, {}),
        (StoreUnavailableError("gone"), 503, {b"retry-after": b"5"}),
        (ValueError("a secret of the program"), 500, {}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_is_a_refusal_in_the_form_of_the_face(
    error: Exception, status: int, headers: dict[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    given, told, body = reply(app_of(Face(act=failing(error))), scope_of("/acme"))
    fixed = {b"content-type": b"text/acme", b"content-length": str(len(body)).encode()}
    assert (given, told) == (status, {**fixed, **headers})
    assert b"a secret" not in body
    is_refused = isinstance(error, RequestRefusedError)
    assert ("face acme failed" in caplog.text) is ("Traceback" in caplog.text) is (status >= 500 and not is_refused)
    assert ("face acme responded with" in caplog.text) is (status >= 500 and is_refused)


@pytest.mark.parametrize("error", [ValueError("broken"), RequestRefusedError("broken", status=413)])
def test_an_error_after_the_beginning_of_a_response_ends_the_connection(error: Exception) -> None:
    with pytest.raises(type(error), match="broken"):
        asyncio.run(ask(app_of(Face(act=failing(error, after=1))), scope_of("/acme")))


@pytest.mark.parametrize("kind", ["http.disconnect", "websocket.disconnect"])
def test_an_error_after_the_client_has_left_is_no_error(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def act(scope: Message, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == kind
        raise ValueError("nobody listens")

    assert asyncio.run(ask(app_of(Face(act=act)), scope_of("/acme"), received={"type": kind})) == []
    assert caplog.text == ""


def test_a_body_above_the_limit_is_refused_while_it_is_read() -> None:
    async def act(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await say_ok(scope, receive, send)

    for size, status in ((10, 200), (11, 413)):
        app = app_of(Face(act=act), max_body_bytes=10)
        assert reply(app, scope_of("/acme"), received={"type": "http.request", "body": b"x" * size})[0] == status


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/other"])
def test_a_websocket_to_a_path_without_a_face_is_closed(path: str) -> None:
    sent = asyncio.run(ask(app_of(Face()), scope_of(path, kind="websocket")))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_websocket_that_is_refused_is_closed() -> None:
    sent = asyncio.run(ask(app_of(Face(act=failing(ValueError("broken")))), scope_of("/acme", kind="websocket")))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# --- opening and closing ---


async def lifespan(app: ServingApp, *, during: Callable[[], Awaitable[None]] | None = None) -> list[str]:
    told: list[str] = []
    steps = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> Message:
        step = next(steps)
        if step == "lifespan.shutdown" and during is not None:
            await during()
        return {"type": step}

    async def send(message: Message) -> None:
        told.append(f"{message['type']} {message.get('message', '')}".strip())

    await app({"type": "lifespan"}, receive, send)
    return told


def test_it_starts_and_stops_with_the_server() -> None:
    face = Face()
    app = app_of(face)

    async def during() -> None:
        assert face.journal == ["app", "open"]
        await app.start()  # it is open
        assert face.journal == ["app", "open"]

    assert asyncio.run(lifespan(app, during=during)) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert face.journal == ["app", "open", "left", "closed"]


def test_faces_are_closed_in_reverse_order_and_it_can_be_opened_again() -> None:
    order: list[str] = []

    class Noted(Face):
        async def aclose(self) -> None:
            order.append(self.name)

    app = app_of(Noted("one", ("/one",)), Noted("two", ("/two",)))

    async def twice() -> None:
        for closed in ([], ["two", "one"]):
            await app.start()
            for _ in range(9):
                await asyncio.sleep(0)
            assert order == closed, "it stays open until it is closed"
            await app.aclose()
            await app.aclose()

    asyncio.run(twice())
    assert order == ["two", "one"] * 2


def test_a_face_that_cannot_be_opened_says_so_and_the_others_are_closed() -> None:
    class Broken(Face):
        def app(self, serving: Any) -> Any:
            raise ConfigError("its folder is gone")

    whole, broken = Face(), Broken("broken", ("/broken",))
    app = app_of(whole, broken)
    told: list[str] = []

    async def send(message: Message) -> None:
        told.append(f"{message['type']}: {message['message']}")

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    with pytest.raises(ConfigError, match="its folder is gone"):
        asyncio.run(app({"type": "lifespan"}, receive, send))
    assert told == ["lifespan.startup.failed: its folder is gone"]
    assert whole.journal[-1] == "closed"
    assert broken.journal == ["closed"]


def test_what_could_not_be_opened_is_tried_again_at_the_next_request() -> None:
    class BrokenOnce(Face):
        def app(self, serving: Any) -> Any:
            self.journal.append("try")
            if self.journal.count("try") == 1:
                raise ConfigError("its folder is not there yet")
            return super().app(serving)

    async def start_twice(app: ServingApp) -> None:
        with pytest.raises(ConfigError, match="its folder is not there yet"):
            await app.start()
        await app.start()
        await app.aclose()

    asyncio.run(start_twice(app_of(BrokenOnce())))
    app = app_of(BrokenOnce())

    async def twice() -> list[int]:
        return [(await ask(app, scope_of("/acme")))[0]["status"] for _ in range(2)]

    assert asyncio.run(twice()) == [500, 200]


def test_a_client_that_leaves_while_it_opens_keeps_no_other_from_an_answer() -> None:
    opening = asyncio.Event()
    may_open = asyncio.Event()

    class Slow(Face):
        @asynccontextmanager
        async def running(self) -> AsyncIterator[None]:  # type: ignore[override]
            opening.set()
            await may_open.wait()
            async with super().running():
                yield

    async def leave_and_stay() -> Message:
        face = Slow()
        app = app_of(face)
        leaving = asyncio.create_task(app.start())
        staying = asyncio.create_task(ask(app, scope_of("/acme")))
        await opening.wait()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        may_open.set()
        sent = await staying
        assert face.journal == ["app", "open", "left", "closed"]
        return sent[0]

    assert asyncio.run(leave_and_stay())["status"] == 200


def test_an_error_while_it_closes_is_raised_as_it_is() -> None:
    class BreaksAtTheEnd(Face):
        @asynccontextmanager
        async def running(self) -> AsyncIterator[None]:  # type: ignore[override]
            yield
            raise ValueError("its file is gone")

    app = app_of(BreaksAtTheEnd())

    async def close() -> None:
        await app.start()
        with pytest.raises(ValueError, match="its file is gone"):
            await app.aclose()

    asyncio.run(close())


def test_active_runs_end_before_it_closes(caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Event()
    may_answer = threading.Event()

    def pause() -> str:
        """Wait until the test goes on."""
        asked.set()
        assert may_answer.wait(60)
        return "done"

    async def close_during_a_run() -> tuple[str, list[str]]:
        agent = FnCallAgent([pause], llm=ScriptedModel([calls(("pause", {})), answer("hello")]))
        app = serving_app({"hello": agent}, faces=[Face()])
        await app.start()
        run = await app.serving.start("hello", "Hi")
        assert await asyncio.to_thread(asked.wait, 60)
        app.drain(60)
        app.drain(60)
        closing = asyncio.create_task(app.aclose())
        await asyncio.sleep(0)
        may_answer.set()
        await closing
        ended = await app.serving.run(run)
        return ended.stop_reason, [record.getMessage() for record in caplog.records if record.name == "jackfield_serve"]

    stop_reason, told = asyncio.run(close_during_a_run())
    assert stop_reason == "finished"
    assert told == ["Waiting up to 60 s for active runs; press Ctrl-C again to stop them immediately."]


def test_an_idle_server_ends_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    app = app_of(Face())

    async def drain() -> None:
        await app.start()
        app.drain(1)
        await asyncio.sleep(0)
        await app.aclose()

    asyncio.run(drain())
    assert [record for record in caplog.records if record.name == "jackfield_serve"] == []


@pytest.mark.parametrize(
    ("name", "more"),
    [("openai", {}), ("sqlite", {"faces": [Face()], "store": "sqlite"}), ("assistant", {"faces": [Face()]})],
)
def test_every_name_is_looked_up_in_the_host_that_is_given(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("agent: assistant\n")
    agent = file if name == "assistant" else FnCallAgent(llm=ScriptedModel(lambda request: answer("hello")))
    with pytest.raises(PluginNotFoundError, match=name):
        serving_app({"hello": agent}, host=PluginHost(paths=[]), **more)


def test_the_store_that_is_given_is_used_and_closed() -> None:
    closed: list[str] = []

    class Noted(MemoryStore):
        async def aclose(self) -> None:
            closed.append("store")
            await super().aclose()

    assert reply(app_of(Face(), store=Noted()), scope_of("/acme"))[0] == 200
    assert closed == ["store"]


def test_draining_before_it_is_open_only_says_so() -> None:
    app = app_of(Face())
    app.drain(1)
    assert reply(app, scope_of("/readyz"))[::2] == (503, b"draining\n")
    assert reply(app, scope_of("/healthz"))[::2] == (200, b"ok\n")


def test_closing_waits_for_the_drain_that_was_begun() -> None:
    app = app_of(Face())

    async def drain_and_close() -> bool:
        await app.start()
        app.drain(1)
        app.drain(1)
        await asyncio.sleep(0)
        await app.aclose()
        assert app._drain is not None
        return app._drain.done()

    assert asyncio.run(drain_and_close())
