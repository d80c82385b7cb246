"""Contract tests for faces over HTTP."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import json
import logging
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from jackfield.servers import HttpServer, load_server
from jackfield_testkit.faces import HttpReply, HttpRequest, ServedFace, read_all
from jackfield_testkit.growth import Growth, globals_of
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.server_agents import ANSWERS, INSIDE, NOT_JSON, make_agents

if TYPE_CHECKING:
    from jackfield_serve import ServingApp

ADA = "testkit-Zq83bXw4Rk2LpV7Tn-ada"
BOB = "testkit-Zq83bXw4Rk2LpV7Tn-bob"
_MAX_BODY_BYTES = 200_000
_FAST = 1000.0
_MANY_PIECES = 20
_CLIENTS_BEFORE, _CLIENTS, _KINDS_OF_CLIENTS = 50, 250, 5
ODD_IDS = (
    "nope", "..", "%2e%2e%2fetc", "a%0d%0aset-cookie:%20x=1", "%00", "x" * 5000, "%F0%9F%99%82", "*", "'%20OR%201=1--",
)  # fmt: skip


class ServerSuite(Suite):
    """Contract of faces over HTTP. The suite runs a face in uvicorn on 127.0.0.1, like `jackfield serve`.

    ```python
    import json

    from jackfield_testkit.faces import HttpReply, HttpRequest


    class TestAcme(ServerSuite):
        component = "jackfield-acme/acme"

        def question(self, agent: str, text: str) -> HttpRequest:
            return HttpRequest(path="/acme", body=json.dumps({"agent": agent, "text": text}).encode())

        def text_in(self, reply: HttpReply) -> str:
            return json.loads(reply.body)["text"]

        def run_id_in(self, reply: HttpReply) -> str:
            return json.loads(reply.body)["run_id"]

        def requests_of_run(self, run_id: str) -> list[HttpRequest]:
            return [HttpRequest(method="GET", path=f"/acme/runs/{run_id}")]

        def is_error(self, reply: HttpReply) -> bool:
            return "error" in json.loads(reply.body)
    ```

    Attributes:
        component: The face to test, as `distribution/name`, or only the name if it is unique.
        config: The face's settings.
        is_rpc: True if the face returns errors with status 200, because JSON-RPC clients read no other.
        settle_s: The maximum time for tasks of disconnected clients to end, in seconds.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, Any]] = {}
    is_rpc: ClassVar[bool] = False
    settle_s: ClassVar[float] = 20.0

    # --- the protocol, described by a subclass ---

    def question(self, agent: str, text: str) -> HttpRequest:
        """Return a request that asks an agent for a complete answer."""
        raise NotImplementedError

    def streamed_question(self, agent: str, text: str) -> HttpRequest | None:  # noqa: ARG002 - for subclasses
        """Return a request that asks an agent for a streamed answer, or None if the protocol has no streaming."""
        return None

    def text_in(self, reply: HttpReply) -> str:
        """Return the answer's text in a reply to `question`."""
        raise NotImplementedError

    def run_id_in(self, reply: HttpReply) -> str:  # noqa: ARG002 - for subclasses
        """Return the run id in a reply to `question`, or '' if the protocol does not include it."""
        return ""

    def requests_of_run(self, run_id: str) -> list[HttpRequest]:  # noqa: ARG002 - for subclasses
        """Return one request of each kind that refers to a run. `run_id` is already encoded for use in a path."""
        return []

    def next_question(self, agent: str, text: str, reply: HttpReply) -> HttpRequest | None:  # noqa: ARG002
        """Return a request that continues the conversation, using an id in the reply to `question`.

        Return None if the protocol's clients send the whole conversation instead.
        """
        return None

    def is_error(self, reply: HttpReply) -> bool:
        """Return True if the reply's body is an error in the protocol's format."""
        raise NotImplementedError

    # --- fixtures ---

    @pytest.fixture
    def face(self) -> HttpServer:
        """Create the face."""
        server = load_server({"name": self.component, **self.config}, plain_host())
        assert isinstance(server, HttpServer)
        return server

    @pytest.fixture
    def serve(self) -> Iterator[Callable[..., ServedFace]]:
        """Yield a function that serves a face, optionally with tokens for two owners."""
        with ExitStack() as stack:

            def start(
                face: HttpServer, *, tokens: bool = False, change: Callable[[Any], Any] = _same, speed: float = 1.0
            ) -> ServedFace:
                app = _app_of(face, tokens=tokens, change=change)
                return stack.enter_context(ServedFace(app, speed=speed))

            yield start

    # --- questions ---

    def test_a_question_is_answered_by_the_agent_that_it_names(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face)
        for agent in ("echo", "shout"):
            reply = served.ask(self.question(agent, "Hello 🙂"))
            assert reply.status == 200, reply.text
            assert self.text_in(reply) == ANSWERS[agent]("Hello 🙂")

    def test_questions_at_once_get_their_own_answers(self, face: HttpServer, serve: Callable[..., ServedFace]) -> None:
        served = serve(face)
        texts = [f"question {number}" for number in range(12)]
        with ThreadPoolExecutor(len(texts)) as pool:
            replies = list(pool.map(lambda text: served.ask(self.question("echo", text)), texts))
        assert [self.text_in(reply) for reply in replies] == [ANSWERS["echo"](text) for text in texts]

    def test_an_unknown_agent_is_an_error_of_the_client(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face)
        for name in ("nobody", "", "../echo", "echo\r\nx: y", "e" * 10_000):
            self._check_refused(served.ask(self.question(name, "Hi")))

    def test_an_answer_names_no_folder_of_the_server(self, face: HttpServer, serve: Callable[..., ServedFace]) -> None:
        served = serve(face)
        asked = self.question("draws", "A plan."), self.streamed_question("draws", "A plan.")
        replies = [served.ask(request) for request in asked if request is not None]
        replies += [served.ask(request) for request in self.requests_of_run(self.run_id_in(replies[0]))]
        assert "See:" in self.text_in(replies[0])
        for reply in replies:
            _check_no_insides(reply)

    # --- ids of runs ---

    def test_an_unknown_run_is_an_error_of_the_client(self, face: HttpServer, serve: Callable[..., ServedFace]) -> None:
        served = serve(face)
        for run_id in ODD_IDS:
            for request in self.requests_of_run(run_id):
                reply = served.ask(request)
                self._check_refused(reply)
                assert reply.header("set-cookie") == ""

    def test_a_run_of_another_owner_is_like_an_unknown_one(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face, tokens=True)
        run_id = self.run_id_in(served.ask(self.question("echo", "mine"), token=ADA))
        if not run_id:
            pytest.skip("the protocol does not reveal run ids")
        unknown = "".join("0" if char.isalnum() else char for char in run_id[:-1]) + "1"
        for mine, none in zip(self.requests_of_run(run_id), self.requests_of_run(unknown), strict=True):
            reply, expected = served.ask(mine, token=BOB), served.ask(none, token=BOB)
            self._check_refused(reply)
            assert (reply.status, reply.text.replace(run_id, "")) == (
                expected.status,
                expected.text.replace(unknown, ""),
            )
            assert "mine" not in reply.text

    def test_a_conversation_goes_on_for_its_owner_only(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face, tokens=True)
        first = served.ask(self.question("recall", "The code is 7301."), token=ADA)
        request = self.next_question("recall", "Go on.", first)
        if request is None:
            pytest.skip("clients send the whole conversation")
        assert "7301" not in served.ask(request, token=BOB).text
        assert self.text_in(served.ask(request, token=ADA)) == "The code is 7301. / Go on."

    # --- tokens ---

    def test_without_a_valid_token_nothing_is_answered(
        self, face: HttpServer, serve: Callable[..., ServedFace], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        served = serve(face, tokens=True)
        for token in ("", ADA[:-1], ADA.upper(), f"{ADA}\xff"):
            for request in (self.question("echo", "Hi"), *self.requests_of_run("x")):
                reply = served.ask(request, token=token)
                assert reply.status == 401
                assert self.is_error(reply), reply.text
        assert self.text_in(served.ask(self.question("echo", "Hi"), token=ADA)) == ANSWERS["echo"]("Hi")
        assert ADA[:-1] not in caplog.text
        assert ADA.upper() not in caplog.text

    # --- malformed requests ---

    @pytest.mark.parametrize("name", list(NOT_JSON))
    def test_a_body_that_is_not_what_is_expected_is_an_error_of_the_client(
        self, face: HttpServer, serve: Callable[..., ServedFace], name: str
    ) -> None:
        served = serve(face)
        request = self.question("echo", "Hi")
        if not request.body:
            pytest.skip("questions have no body")
        body = NOT_JSON[name]
        reply = served.ask(HttpRequest(method=request.method, path=request.path, body=body, headers=request.headers))
        self._check_refused(reply)

    def test_a_key_that_is_there_twice_is_an_error_of_the_client(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face)
        request = self.question("echo", "Hi")
        try:
            key, value = next(iter(json.loads(request.body).items()))
        except (ValueError, AttributeError):
            pytest.skip("questions are not JSON objects")
        twice = request.body.rstrip()[:-1] + f", {json.dumps(key)}: {json.dumps(value)}}}".encode()
        self._check_refused(
            served.ask(HttpRequest(method=request.method, path=request.path, body=twice, headers=request.headers))
        )

    @pytest.mark.parametrize("value", [None, 1, -1, 1e300, True, [], {}, [[]], "", "half \ud83d", [None], {"a": {}}])
    def test_a_value_of_another_type_never_breaks_it(
        self, face: HttpServer, serve: Callable[..., ServedFace], value: object
    ) -> None:
        served = serve(face)
        request = self.question("echo", "Hi")
        try:
            table = json.loads(request.body)
        except ValueError:
            pytest.skip("questions are not JSON")
        for changed in _with_each_value_replaced(table, value):
            body = json.dumps(changed).encode()
            reply = served.ask(
                HttpRequest(method=request.method, path=request.path, body=body, headers=request.headers)
            )
            if reply.status != 200:  # some values may be others
                self._check_refused(reply)

    @pytest.mark.parametrize("chunked", [False, True])
    def test_a_body_that_is_too_large_is_refused(
        self, face: HttpServer, serve: Callable[..., ServedFace], chunked: bool
    ) -> None:
        served = serve(face)
        request = self.question("echo", "x" * (_MAX_BODY_BYTES + 1))
        if len(request.body) <= _MAX_BODY_BYTES:
            pytest.skip("questions have no body")
        reply = served.ask(request, chunked=chunked)
        assert reply.status == 413
        assert self.is_error(reply), reply.text

    def test_a_method_or_path_that_it_does_not_have_is_an_error_of_the_client(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face)
        path = self.question("echo", "Hi").path.partition("?")[0]
        for method, target in (("PUT", path), ("BREW", path), ("GET", f"{path}/no/such/path"), ("OPTIONS", path)):
            reply = served.ask(HttpRequest(method=method, path=target, headers={}))
            self._check_refused(reply)
            assert reply.header("access-control-allow-origin") == ""

    # --- clients that disconnect ---

    def test_a_client_may_vanish_at_any_byte_of_its_request(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face)
        served.ask(self.question("echo", "Hi"))
        before = _settled(served, self.settle_s)
        raw = self.question("echo", "Hi").encode()
        for count in range(0, len(raw), max(1, len(raw) // 60)):
            with served.connect() as connection:
                connection.sendall(raw[:count])
                _close_hard(connection, hard=count % 2 == 0)
        self._check_alive(served, before)

    def test_a_client_may_vanish_at_any_byte_of_its_answer(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face)
        asked = [self.question("echo", "Hi"), self.streamed_question("echo", "Hi")]
        served.ask(self.question("echo", "Hi"))
        before = _settled(served, self.settle_s)
        for request in asked:
            if request is None:
                continue
            with served.connect() as connection:
                connection.sendall(request.encode())
                size = len(read_all(connection))
            for count in range(0, size, max(1, size // 30)):
                with served.connect() as connection:
                    connection.sendall(request.encode())
                    _read(connection, count)
                    _close_hard(connection, hard=count % 2 == 0)
        self._check_alive(served, before)

    def test_a_stream_shows_signs_of_life_while_its_agent_is_silent(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        request = self.streamed_question("falls_silent", "Hi")
        if request is None:
            pytest.skip("answers are not streamed")
        served = serve(face, speed=_FAST)
        with served.connect() as connection:
            connection.sendall(request.encode())
            # Proxies close a connection after a minute of silence. The answer itself has fewer pieces than this.
            connection.settimeout(_MANY_PIECES * 60 / _FAST + self.settle_s)
            for _ in range(_MANY_PIECES):
                assert connection.recv(1 << 16), "the stream ended"

    # --- faults behind it ---

    def test_an_agent_that_fails_is_an_error_without_its_insides(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face)
        for agent in ("crashes", "is_refused"):
            reply = served.ask(self.question(agent, "Hi"))
            assert self.is_error(reply), reply.text
            _check_no_insides(reply)
            streamed = self.streamed_question(agent, "Hi")
            if streamed is not None:
                _check_no_insides(served.ask(streamed))
        assert self.text_in(served.ask(self.question("echo", "Hi"))) == ANSWERS["echo"]("Hi")

    def test_a_fault_behind_it_is_an_error_in_its_own_form(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        served = serve(face, change=_Faulty)
        for request in (self.question("echo", "Hi"), self.streamed_question("echo", "Hi")):
            if request is not None:
                reply = served.ask(request)
                assert self.is_error(reply), reply.text
                assert reply.status in (0, 200, 500)
                _check_no_insides(reply)

    def test_it_keeps_no_run_of_its_own(self, face: HttpServer, serve: Callable[..., ServedFace]) -> None:
        run_id = self.run_id_in(serve(face).ask(self.question("echo", "mine")))
        if not run_id:
            pytest.skip("the protocol does not reveal run ids")
        other_agents = serve(face)
        for request in self.requests_of_run(run_id):
            self._check_refused(other_agents.ask(request))

    def test_nothing_that_it_keeps_grows_with_the_number_of_its_clients(
        self, face: HttpServer, serve: Callable[..., ServedFace]
    ) -> None:
        from jackfield_serving import Serving

        served = serve(face, tokens=True)
        package = type(face).__module__.partition(".")[0]
        self._visit(served, range(_CLIENTS_BEFORE))
        _settled(served, self.settle_s)
        roots = {"app": served.app, "face": face, **globals_of(package)}
        # Runs are stored by the service behind the face, which has its own limits.
        growth = served.inside(lambda: Growth(roots, beyond=(Serving,)))
        self._visit(served, range(_CLIENTS_BEFORE, _CLIENTS_BEFORE + _CLIENTS))
        _settled(served, self.settle_s)
        assert served.inside(lambda: growth.grown(by=_CLIENTS // _KINDS_OF_CLIENTS // 2)) == []

    # --- helpers ---

    def _visit(self, served: ServedFace, numbers: Iterable[int]) -> None:
        """Act as one client per number, for two owners in turn.

        A client is rejected, gets an answer, disconnects, or asks for unknown or existing runs.
        """
        for number in numbers:
            token, kind = (ADA, BOB)[number % 2], number // 2 % _KINDS_OF_CLIENTS
            question = self.question("echo", f"Hello {number}")
            if kind == 0:
                served.ask(self.question(f"nobody-{number}", "Hi"), token=token)
            elif kind == 1:
                served.ask(self.streamed_question("echo", f"Hello {number}") or question, token=token)
            elif kind == 2:
                with served.connect() as connection:
                    connection.sendall(question.encode(token=token))
                    _close_hard(connection, hard=number % 4 == 0)
            elif kind == 3:
                for request in self.requests_of_run(f"unknown-{number}"):
                    served.ask(request, token=token)
            else:
                reply = served.ask(question, token=token)
                following = self.next_question("echo", "Go on.", reply)
                for request in self.requests_of_run(self.run_id_in(reply)):
                    served.ask(request, token=token)
                if following is not None:
                    served.ask(following, token=token)

    def _check_refused(self, reply: HttpReply) -> None:
        is_refused = 400 <= reply.status < 500 or (self.is_rpc and reply.status == 200)
        assert is_refused, (reply.status, reply.text[:500])
        assert self.is_error(reply), reply.text[:500]
        _check_no_insides(reply)

    def _check_alive(self, served: ServedFace, before: list[str]) -> None:
        assert self.text_in(served.ask(self.question("echo", "Hi"))) == ANSWERS["echo"]("Hi")
        assert len(_settled(served, self.settle_s, at_most=len(before))) <= len(before), served.tasks()


def _same(serving: Any) -> Any:
    return serving


def _check_no_insides(reply: HttpReply) -> None:
    for word in ("Traceback", INSIDE, 'File "', ".py"):
        assert word not in reply.text, reply.text[:1000]


def _app_of(face: HttpServer, *, tokens: bool, change: Callable[[Any], Any]) -> ServingApp:
    from jackfield_serve import Tokens, serving_app

    known = Tokens([("ada", ADA), ("bob", BOB)]) if tokens else None
    app = serving_app(make_agents(), faces=[face], tokens=known, max_body_bytes=_MAX_BODY_BYTES, host=plain_host())
    app.serving = change(app.serving)
    return app


class _Faulty:
    """Lists a serving's agents, but raises when a run is started or shown."""

    def __init__(self, serving: Any) -> None:
        self._serving = serving
        self.agents = serving.agents

    async def __aenter__(self) -> _Faulty:
        await self._serving.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._serving.__aexit__(*error)

    async def start(self, *_: object, **__: object) -> str:
        raise ZeroDivisionError(INSIDE)

    async def attach(self, *_: object, **__: object) -> AsyncIterator[Any]:
        raise ZeroDivisionError(INSIDE)
        yield

    def __getattr__(self, name: str) -> Any:
        async def fail(*_: object, **__: object) -> None:
            raise ZeroDivisionError(INSIDE)

        return fail


def _with_each_value_replaced(table: Any, value: object) -> Iterator[Any]:
    """Yield copies of a JSON value, each with a different part replaced."""
    match table:
        case dict():
            for key in table:
                yield {**table, key: value}
                for changed in _with_each_value_replaced(table[key], value):
                    yield {**table, key: changed}
        case list():
            for index in range(len(table)):
                yield [*table[:index], value, *table[index + 1 :]]
                for changed in _with_each_value_replaced(table[index], value):
                    yield [*table[:index], changed, *table[index + 1 :]]


def _read(connection: socket.socket, count: int) -> None:
    while count > 0 and (piece := connection.recv(count)):
        count -= len(piece)


def _close_hard(connection: socket.socket, *, hard: bool) -> None:
    """Close a connection, with a reset if `hard` is True."""
    if hard:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _settled(served: ServedFace, limit_s: float, *, at_most: int | None = None) -> list[str]:
    """Wait until the number of tasks stops changing or is low enough, and return the tasks."""
    ends = time.monotonic() + limit_s
    last = served.tasks()
    while time.monotonic() < ends:
        time.sleep(0.02)
        tasks = served.tasks()
        if len(tasks) <= at_most if at_most is not None else len(tasks) == len(last):
            return tasks
        last = tasks
    return last
