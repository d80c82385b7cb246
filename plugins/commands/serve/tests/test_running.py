"""The command runs its application: settings of uvicorn, signals, the browser, and workers. No server is started."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from jackfield import FnCallAgent, sync
from jackfield.errors import ConfigError, StoreError
from jackfield.servers import StdioServer
from jackfield.testing import ScriptedModel
from jackfield_serve import running, serving_app
from jackfield_serve.options import ServeOptions, read_options
from jackfield_serve.parser import make_parser
from jackfield_serve.running import (
    DrainingServer,
    _configure,
    _interrupts,
    _listen,
    _try_store,
    make_worker_app,
    run_http,
    run_stdio,
)
from jackfield_serving.memory import MemoryStore

AGENT = (
    "from jackfield import FnCallAgent\nfrom jackfield.testing import ScriptedModel\n"
    "hello = FnCallAgent(llm=ScriptedModel([]))\n"
)


def options(*words: str) -> ServeOptions:
    return read_options(make_parser().parse_args(words), words=words)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an agent in a module of its own."""
    (tmp_path / "ours_of_test_running.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return "ours_of_test_running:hello"


def test_uvicorn_gets_the_limits_and_trusts_nothing() -> None:
    config = _configure("jackfield_serve.running:make_worker_app", options("a.yaml", "--max-body", "3", "--drain", "7"))
    assert (config.http, config.h11_max_incomplete_event_size, config.ws_max_size) == ("h11", 64 << 10, 3 << 20)
    assert (config.proxy_headers, config.server_header, config.access_log, config.log_config) == (
        False,
        False,
        False,
        None,
    )
    assert (config.timeout_graceful_shutdown, config.lifespan, config.workers, config.factory) == (7, "on", 1, True)
    app = serving_app({"hello": FnCallAgent(llm=ScriptedModel([]))})
    assert _configure(app, options("a.yaml")).factory is False
    workers = _configure("x:y", options("a.yaml", "--workers", "2", "--store", "sqlite"))
    assert workers.workers == 2


def test_the_first_signal_lets_runs_finish_and_the_second_does_not() -> None:
    app = serving_app({"hello": FnCallAgent(llm=ScriptedModel([]))})
    config = _configure(app, options("a.yaml", "--drain", "7"))
    config.load()
    server = DrainingServer(config)
    given: list[float] = []
    app.drain = given.append  # type: ignore[method-assign]
    server.handle_exit(signal.SIGINT, None)
    assert (server.should_exit, server.force_exit, given) == (True, False, [7])
    server.handle_exit(signal.SIGINT, None)
    assert (server.force_exit, given) == (True, [7, 7])


def test_another_application_gets_no_drain() -> None:
    async def plain(scope: Any, receive: Any, send: Any) -> None:
        """Answer nothing."""

    config = uvicorn.Config(plain, log_config=None)
    config.load()
    server = DrainingServer(config)
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit


def test_interrupts_are_handled_in_the_main_thread_and_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)

    def handle(sig: int, frame: Any) -> None:
        """Do nothing."""

    with _interrupts(handle):
        assert signal.getsignal(signal.SIGINT) is handle
    assert signal.getsignal(signal.SIGINT) == before
    seen: list[object] = []

    def elsewhere() -> None:
        with _interrupts(handle):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before]


class Server:
    """Stands in for uvicorn's server, and records what it was given."""

    made: list[Server] = []  # noqa: RUF012 - emptied by the fixture
    starts = True

    def __init__(self, config: Any) -> None:
        self.config, self.started = config, False
        self.sockets: list[socket.socket] = []
        self.made.append(self)

    def run(self, sockets: list[socket.socket]) -> None:
        self.sockets, self.started = sockets, self.starts
        self.port = sockets[0].getsockname()[1]
        self.thread = threading.current_thread().name
        self.context = sys.exc_info()[1]

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Do nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> type[Server]:
    Server.made.clear()
    monkeypatch.setattr(Server, "starts", True)
    monkeypatch.setattr(running, "DrainingServer", Server)
    monkeypatch.setattr(running, "_tune_collector", lambda: None)
    return Server


def test_it_serves_at_the_socket_that_it_prints(
    agent: str, server: type[Server], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_http(options(agent, "--port", "0")) == 0
    (made,) = server.made
    assert f"http://127.0.0.1:{made.port}/v1" in capsys.readouterr().out
    assert made.sockets[0].fileno() == -1, "the socket is closed with the server"
    assert made.context is None, "no error of the server shows one that it has nothing to do with"


@pytest.mark.parametrize("damage", ["text", "folder", "file in the way"])
def test_a_server_whose_store_cannot_be_used_does_not_start(
    damage: str, agent: str, server: type[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "state"))
    file = tmp_path / "state" / "jackfield" / "runs.sqlite"
    if damage == "file in the way":
        (tmp_path / "state").write_text("")
    elif damage == "folder":
        file.mkdir(parents=True)
    else:
        file.parent.mkdir(parents=True)
        file.write_text("This is a text, and no database.")
    for start in (lambda: run_http(options(agent, "--port", "0", "--store", "sqlite")),
                  lambda: run_stdio(options(agent, "--store", "sqlite"), "acp")):  # fmt: skip
        with pytest.raises(StoreError, match=rf"the store {file} cannot be used: "):
            start()
    assert server.made == []


def test_a_store_that_can_only_be_read_is_refused_and_each_store_that_was_tried_is_closed() -> None:
    class Closing(MemoryStore):
        closed = False

        async def aclose(self) -> None:
            self.closed = True
            await super().aclose()

    class ReadOnly(Closing):
        async def send(self, run_id: str, text: str = "") -> None:
            raise StoreError("the store is read-only")

    refused, accepted = ReadOnly(), Closing()
    with pytest.raises(StoreError, match="the store is read-only"):
        sync.run(_try_store(refused))
    sync.run(_try_store(accepted))
    assert refused.closed
    assert accepted.closed


@pytest.mark.parametrize("over", ["http", "stdio"])
def test_keys_that_are_not_set_are_named_before_the_first_client(
    over: str, server: type[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, text in (("support.yaml", "llm: openai:m\n"), ("input", ""), ("output", ""), ("errors", "")):
        Path(name).write_text(text)
    chosen = options("support.yaml", "--port", "0")
    with Path("input").open() as stdin, Path("output").open("w") as stdout, Path("errors").open("w") as stderr:
        for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
            monkeypatch.setattr(sys, name, stream)
        if over == "http":
            run_http(chosen)
        else:
            with pytest.raises(ConfigError, match="must be pipes"):
                run_stdio(chosen, "mcp")
    assert Path("errors").read_text().startswith("! agent 'support' needs an API key that is not set: OPENAI_API_KEY")


def test_a_server_that_did_not_start_ends_with_1(
    agent: str, server: type[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "starts", False)
    assert run_http(options(agent, "--port", "0")) == 1


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6 here")
def test_an_address_of_ipv6_is_printed_in_brackets(
    agent: str, server: type[Server], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        with _listen(options(agent, "--host", "[::1]", "--port", "0")):
            pass
    except ConfigError:
        pytest.skip("there is no IPv6 here")
    for host in ("::1", "[::1]"):
        run_http(options(agent, "--host", host, "--port", "0"))
        assert f"http://[::1]:{server.made[-1].port}/v1" in capsys.readouterr().out


def test_in_a_notebook_the_server_runs_in_a_thread(
    agent: str, server: type[Server], capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    async def cell() -> int:
        return run_http(options(agent, "--port", "0"))

    assert asyncio.run(cell()) == 0
    assert server.made[0].thread == "jackfield-serve"
    assert "Interrupt the cell to stop the server." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variables", "is_opened"),
    [
        ({}, False),
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "w"}, True),
        ({"BROWSER": "x"}, True),
        ({"DISPLAY": ""}, False),
    ],
    ids=["none", "X", "Wayland", "BROWSER", "empty"],
)
@pytest.mark.skipif(os.uname().sysname != "Linux", reason="elsewhere there is always a desktop")
def test_a_browser_is_opened_where_there_is_a_desktop(
    variables: dict[str, str], is_opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    running._open_browser("http://127.0.0.1:1")
    for thread in threading.enumerate():
        if thread.name == "jackfield-browser":
            thread.join()
    assert opened == (["http://127.0.0.1:1"] if is_opened else [])


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "localhost")])
def test_the_browser_is_sent_to_this_machine(
    agent: str, server: type[Server], host: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(running, "_open_browser", opened.append)
    (tmp_path / "tokens").write_text("ada-Zq83bXw4Rk2LpV7Tn")
    chosen = options(agent, "--port", "0", "--host", host, "--token-file", "tokens")
    run_http(chosen)
    assert opened == []
    from dataclasses import replace

    run_http(replace(chosen, browser=True))
    assert opened == [f"http://{shown}:{server.made[-1].port}"]


def test_workers_make_their_application_from_the_words_of_the_command(
    agent: str, server: type[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []

    class Supervisor:
        def __init__(self, config: Any, sockets: list[socket.socket]) -> None:
            ran.append((config, sockets))

        def run(self) -> None:
            ran.append("run")

    monkeypatch.setattr("uvicorn.supervisors.Multiprocess", Supervisor)
    monkeypatch.setenv("JACKFIELD_SERVE_ARGUMENTS", "")
    words = (agent, "--port", "0", "--workers", "2", "--store", "sqlite", "--runs", "3")
    assert run_http(options(*words)) == 0
    assert (server.made, ran[1]) == ([], "run")
    assert ran[0][0].app == "jackfield_serve.running:make_worker_app"
    assert json.loads(os.environ["JACKFIELD_SERVE_ARGUMENTS"]) == list(words)
    app = make_worker_app()
    assert (list(app.serving.agents), app.serving.limits.runs) == (["hello"], 3)


def test_the_collector_is_told_to_leave_what_is_loaded_alone() -> None:
    before = gc.get_threshold()
    try:
        running._tune_collector()
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() == (20_000, *before[1:])
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_an_address_in_use_is_explained_and_the_cause_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=f"port {port} is in use") as caught,
            _listen(options("a", "--port", str(port))),
        ):
            raise AssertionError("it listens")
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.EADDRINUSE


def test_standard_input_must_be_a_pipe_and_output_is_as_before(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "input").write_text("")
    with (tmp_path / "input").open() as stdin, (tmp_path / "output").open("w") as stdout:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        with pytest.raises(
            ConfigError, match="standard input and output must be pipes: have the client start this program"
        ):
            run_stdio(options(agent), "mcp")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "no pipe"])
def test_an_input_that_cannot_be_awaited_is_refused(
    is_closed: bool, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_out, write_out = os.pipe()
    with Path(os.devnull).open() as stdin, os.fdopen(read_out), os.fdopen(write_out, "w") as stdout:
        monkeypatch.setattr("sys.stdin", None if is_closed else stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        with pytest.raises(ConfigError, match="standard input and output must be pipes"):
            run_stdio(options(agent), "mcp")


class Talking(StdioServer):
    """A face that answers one line, prints, and fails if it is asked to."""

    name = "talking"

    def __init__(self) -> None:
        self.journal: list[str] = []

    async def talk(self, serving: Any, reader: Any, writer: Any) -> None:
        line = await reader.readline()
        sys.stdout.write("a tool prints\n")
        sys.stdout.flush()
        writer.write(b"answer to " + line)
        await writer.drain()
        self.journal.append(f"agents {', '.join(serving.agents)}")
        if line == b"fail\n":
            raise ValueError("broken")

    async def aclose(self) -> None:
        self.journal.append("closed")


@pytest.mark.parametrize("line", ["hello\n", "fail\n"])
def test_one_client_is_served_over_pipes_and_prints_do_not_get_between(
    line: str, agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    face = Talking()
    monkeypatch.setattr(running, "load_server", lambda name, host: face)
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    os.write(write_in, line.encode())
    with (
        os.fdopen(write_in, "w"),
        os.fdopen(read_out, "rb") as told,
        (tmp_path / "errors").open("w+") as errors,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", os.fdopen(read_in))
        patch.setattr(sys, "stdout", os.fdopen(write_out, "w"))
        patch.setattr(sys, "stderr", errors)
        if line == "fail\n":
            with pytest.raises(ValueError, match="broken"):
                run_stdio(options(agent), "talking")
        else:
            assert run_stdio(options(agent), "talking") == 0
        sys.stdout.close()
        assert told.read() == b"answer to " + line.encode()
        errors.seek(0)
        assert "a tool prints\n" in errors.read()
    assert face.journal == ["agents hello", "closed"]
