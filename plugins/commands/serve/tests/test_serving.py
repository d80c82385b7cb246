"""The command as users run it, and the application in another one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost
from jackfield.servers import HttpServer, RequestRefusedError, load_server
from jackfield.settings import Settings, load_settings
from jackfield.testing import ScriptedModel, answer
from jackfield_serve import serving_app
from jackfield_serve.command import main
from jackfield_serve.metrics import MetricsPage
from jackfield_serve.parser import make_parser
from jackfield_serve.running import warn_of_missing_keys
from jackfield_serve.tokens import Tokens
from jackfield_testkit.faces import HttpRequest, ServedFace

TOKEN = "ada-Zq83bXw4Rk2LpV7Tn"
AGENTS = """
import gc
import json
import time
from pathlib import Path
from jackfield import FnCallAgent, tool
from jackfield.testing import ScriptedModel, answer, calls

running = []

@tool
def wait() -> str:
    "Wait."
    Path("asked").touch()
    running.append(1)
    seen = len(running)
    time.sleep(1.0)
    running.pop()
    return json.dumps({"at_once": seen, "frozen": gc.get_freeze_count(), "threshold": gc.get_threshold()[0]})

def slowly(request):
    last = request.messages[-1]
    return calls(("wait", {})) if last.role == "user" else answer(last.get_text_content())

def pause():
    "Take a while."
    Path("asked").touch()
    time.sleep(2.0)

patient = FnCallAgent([pause], ScriptedModel([calls(("pause", {})), answer("patient hello")]))

hello = FnCallAgent(llm=ScriptedModel(lambda request: answer("hello")))
slow = FnCallAgent([wait], llm=ScriptedModel(slowly))
"""
QUESTION = {"model": "hello", "messages": [{"role": "user", "content": "Hi"}]}


def ask(url: str, body: object = QUESTION, token: str = "") -> dict[str, Any]:
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        result: dict[str, Any] = json.load(reply)
        return result


@pytest.fixture
def run_serve(tmp_path: Path) -> Callable[..., AbstractContextManager[tuple[subprocess.Popen[str], str, list[str]]]]:
    (tmp_path / "ours.py").write_text(AGENTS)

    @contextmanager
    def run(
        *arguments: str, agents: str = "ours:hello ours:slow"
    ) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
        command = [sys.executable, "-m", "jackfield", "serve", *agents.split(), "--port", "0", *arguments]
        folders = {name: str(tmp_path) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "HOME")}
        environment = {**os.environ, **folders}
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
            try:
                assert process.stdout is not None
                lines = [process.stdout.readline()]
                while not lines[-1].startswith(("  Any program ", "  Clients need ")) and lines[-1]:
                    lines.append(process.stdout.readline())
                assert lines[-1], process.communicate()[1]
                url = next(word for line in lines for word in line.split() if word.startswith("http"))
                yield process, url.removesuffix("/v1"), lines
            finally:
                process.kill()

    return run


def wait_for(url: str) -> None:
    for _ in range(1200):
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=60):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    raise AssertionError("the server did not start")


def test_it_prints_what_it_serves_and_a_signal_lets_requests_finish(
    run_serve: Callable[..., Any], tmp_path: Path
) -> None:
    with run_serve() as (process, url, lines):
        assert lines[0] == "Serving hello, slow\n"
        assert lines[1].split()[0] == "openai"
        assert "Any program on this machine can connect" in lines[-1]
        assert ask(url)["choices"][0]["message"]["content"] == "hello"
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 60) as connection:
            body = json.dumps({**QUESTION, "model": "slow"}).encode()
            connection.sendall(HttpRequest(path="/v1/chat/completions", body=body).encode())
            while not (tmp_path / "asked").exists():
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            reply = b""
            while piece := connection.recv(1 << 16):
                reply += piece
        assert b"at_once" in reply
        assert process.wait(60) in (0, -signal.SIGTERM)


def test_a_token_file_lets_its_holders_in_and_no_others(run_serve: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"ada {TOKEN}\n")
    with run_serve("--token-file", "tokens") as (process, url, lines):
        assert "Clients need a token from " in lines[-1]
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(url)
        with caught.value as error:
            assert error.code == 401
            assert json.load(error)["error"]["code"] == "invalid_api_key"
        assert ask(url, token=TOKEN)["object"] == "chat.completion"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
        assert TOKEN not in output + errors


def test_a_run_over_the_limit_waits_and_the_collector_is_calm(run_serve: Callable[..., Any]) -> None:
    with run_serve("--runs", "1") as (_, url, _lines), ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda _: ask(url, {**QUESTION, "model": "slow"}), range(2)))
        texts = [json.loads(reply["choices"][0]["message"]["content"]) for reply in replies]
        assert [text["at_once"] for text in texts] == [1, 1]
        assert texts[0]["frozen"] > 10_000
        assert texts[0]["threshold"] >= 10_000


@pytest.mark.slow
def test_several_workers_answer_and_share_their_runs(run_serve: Callable[..., Any]) -> None:
    with run_serve("--workers", "2", "--store", "sqlite") as (process, url, _):
        wait_for(url)
        assert {ask(url)["choices"][0]["message"]["content"] for _ in range(6)} == {"hello"}
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ours:hello", "--host", "0.0.0.0"], "pass --token-file"),
        (["ours:hello", "--host", "example.org"], "pass --token-file"),
        (["ours:hello", "--workers", "2"], "multiple workers need a shared store"),
        (["ours:hello", "x=ours:hello", "x=ours:hello"], "two agents are named 'x'"),
        (["../x=ours:hello"], "is not a valid agent name"),
        (["no_such_module:hello"], "cannot import 'no_such_module:hello': "),
        (["json:dumps"], "'json:dumps' must be an agent, got function"),
        (["ours:hello", "--face", "nope"], "nope"),
        (["ours:hello", "--face", "{"], "--face must be a name or a JSON object"),
        (["ours:hello", "--face", '{"name": "openai", "nope": 1}'], "nope"),
        (["ours:hello", "--stdio", "openai"], "does not support standard input"),
        (["ours:hello", "--token-file", "none"], "cannot read token file 'none': No such file"),
        (["none.yaml"], "no agent file 'none.yaml': specify an existing file"),
        (["none"], "no agent file 'none': specify an existing file or module:agent"),
        (["."], "'.' is a folder: specify an agent file"),
        (["ours:hello", "--host", "192.0.2.1", "--token-file", "tokens"], "is not an address of this machine"),
        (["ours:hello", "--host", "nowhere.invalid", "--token-file", "tokens"], "is not an address of this machine"),
    ],
)
def test_what_cannot_be_served_is_an_error_with_the_next_step(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ours.py").write_text(AGENTS)
    (tmp_path / "tokens").write_text(TOKEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception, match=message):
        main([*arguments, "--port", "0"])


def test_a_port_in_use_is_an_error_with_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is in use: stop the other program, or pass --port 0"):
            main(["ours:hello", "--port", str(port)])


def test_after_a_signal_it_says_how_long_runs_may_finish(run_serve: Callable[..., Any], tmp_path: Path) -> None:
    with run_serve("--drain", "20", agents="ours:patient") as (process, url, _):
        body = json.dumps({**QUESTION, "model": "patient"}).encode()
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 60) as connection:
            connection.sendall(HttpRequest(path="/v1/chat/completions", body=body).encode())
            while not (tmp_path / "asked").exists():
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert b"patient hello" in connection.makefile("rb").read()
        assert (
            "Waiting up to 20 s for active runs; press Ctrl-C again to stop them immediately."
            in process.communicate(timeout=60)[1]
        )
        assert process.returncode == 0


def agent() -> FnCallAgent:
    return FnCallAgent(llm=ScriptedModel(lambda request: answer("hello")))


def test_it_can_be_mounted_into_another_application() -> None:
    from fastapi import FastAPI

    app = FastAPI()
    app.mount("/ai", serving_app({"hello": agent()}))
    with ServedFace(app) as served:
        assert ask(f"{served.url}/ai")["choices"][0]["message"]["content"] == "hello"
        health = served.ask(HttpRequest(method="GET", path="/ai/healthz"))
        assert (health.status, health.body) == (200, b"ok\n")


def test_while_it_drains_it_is_not_ready() -> None:
    app = serving_app({"hello": agent()})
    with ServedFace(app) as served:
        assert served.ask(HttpRequest(method="GET", path="/readyz")).status == 200
        app.drain(10)
        assert served.ask(HttpRequest(method="GET", path="/readyz")).status == 503
        assert served.ask(HttpRequest(method="GET", path="/healthz")).status == 200
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(served.url)
        with caught.value as error:
            assert error.code == 503
            assert error.headers["retry-after"]


def test_metrics_count_the_runs_and_need_the_token_of_the_faces() -> None:
    from prometheus_client.parser import text_string_to_metric_families

    counted = FnCallAgent(
        llm=ScriptedModel(lambda request: answer("hello")), name="counted-hello", observers=["prometheus"]
    )
    page = HttpRequest(method="GET", path="/metrics")
    with ServedFace(serving_app({"hello": counted})) as served:
        ask(served.url)
        reply = served.ask(page)
        assert reply.status == 200
        assert reply.header("content-type").startswith("text/plain; version=")
        samples = [one for family in text_string_to_metric_families(reply.text) for one in family.samples]
        runs = [
            one.value
            for one in samples
            if one.name == "jackfield_runs_total" and one.labels["agent"] == "counted-hello"
        ]
        assert runs == [1]
        assert [one.value for one in samples if one.name == "jackfield_runs_queued"] == [0]
    with ServedFace(serving_app({"hello": counted}, tokens=Tokens([("ada", TOKEN)]))) as served:
        assert served.ask(page).status == 401
        assert served.ask(page, token=TOKEN).status == 200


def test_without_the_observer_there_are_no_metrics() -> None:
    host = PluginHost(paths=[])
    page = MetricsPage(host)
    with pytest.raises(RequestRefusedError, match="pip install jackfield-prometheus"):
        asyncio.run(page.read(queued=0))


def test_the_observer_of_the_metrics_is_loaded_once_at_the_first_request() -> None:
    loaded: list[str] = []

    class Noting(PluginHost):
        def load_row(self, row: Any, *arguments: Any) -> Any:
            loaded.append(row.name)
            return super().load_row(row, *arguments)

    page = MetricsPage(Noting())
    assert loaded == []
    for queued in (3, 4):
        assert f"jackfield_runs_queued {queued}.0" in asyncio.run(page.read(queued=queued)).decode()
    assert loaded == ["prometheus"]


def test_metrics_that_count_nothing_name_the_next_step() -> None:
    with ServedFace(serving_app({"hello": agent()})) as served:
        reply = served.ask(HttpRequest(method="GET", path="/metrics"))
        assert (reply.status, "jackfield plugins enable observer.jackfield-prometheus" in reply.text) == (404, True)


def test_settings_of_a_face_in_the_users_file_apply(tmp_path: Path) -> None:
    file = tmp_path / "jackfield" / "config.toml"
    file.parent.mkdir()
    file.write_text('[settings."server.ag-ui"]\non_disconnect = "cancel"\n')
    host = PluginHost(settings=load_settings({"XDG_CONFIG_HOME": str(tmp_path)}))
    assert getattr(load_server("ag-ui", host), "config").on_disconnect == "cancel"  # noqa: B009 - a face of its package
    chosen = load_server({"name": "ag-ui", "on_disconnect": "continue"}, host)
    assert getattr(chosen, "config").on_disconnect == "continue"  # noqa: B009 - as above


def test_options_may_be_between_agents() -> None:
    options = make_parser().parse_args(["a.yaml", "--port", "0", "b.yaml", "--runs", "2", "c.yaml"])
    assert (options.agents, options.port, options.runs) == (["a.yaml", "b.yaml", "c.yaml"], 0, 2)


def test_keys_that_are_not_set_are_named_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    host = PluginHost(settings=Settings())
    lone = FnCallAgent(llm="openai:any", name="lone", host=host)
    own = FnCallAgent(llm={"model": "openai:any", "base_url": "http://127.0.0.1:1/v1"}, name="own", host=host)
    warn_of_missing_keys({"lone": lone, "own": own, "hello": agent()})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "'lone'" in lines[0]
    assert "OPENAI_API_KEY" in lines[0]


def test_a_path_without_a_face_is_not_found() -> None:
    with ServedFace(serving_app({"hello": agent()})) as served:
        reply = served.ask(HttpRequest(method="GET", path="/nothing"))
        assert (reply.status, json.loads(reply.body)["error"]["code"]) == (404, "not_found")


class _AtTheSamePlace(HttpServer):
    name = "other"
    paths = ("/v1/",)

    def app(self, serving: Any) -> Any:
        raise AssertionError("it is never served")


def test_two_faces_at_one_path_are_refused() -> None:
    with pytest.raises(ConfigError, match="both serve '/v1'"):
        serving_app({"hello": agent()}, faces=["openai", _AtTheSamePlace()])


def test_an_application_whose_agents_cannot_be_opened_says_so() -> None:
    with pytest.raises(ConfigError):
        serving_app({"hello": "no_such_module:agent"})
