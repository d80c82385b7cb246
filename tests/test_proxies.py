"""The web page behind nginx and Caddy, configured as the guide shows. `make real-servers ARGS=proxies` runs it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.config import LLMConfig
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.models import BaseChatModel
from jackfield.request import ChatRequest, ModelFacts
from jackfield_serve import Tokens, serving_app
from jackfield_testkit.faces import ServedFace

PROGRAMS = {name: os.environ.get(f"REAL_{name.upper()}", "") for name in ("nginx", "caddy")}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(420),
    pytest.mark.skipif(not all(PROGRAMS.values()), reason="`make real-servers ARGS=proxies` runs it"),
]
PAGE = Path(__file__).parent.parent / "docs/guides/web-page.md"
NAME = "agents.example.org"
TOKEN = "ada-Zq83bXw4Rk2LpV7Tn"
SILENT_S = 70  # longer than the time-out of a proxy
NGINX = """
{user} daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
    fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    {site}
}}
"""


class Slow(BaseChatModel):
    """A model that says a word, is silent for as many seconds as the question says, and says another."""

    backend = "slow"
    facts = ModelFacts(files=True)

    def __init__(self) -> None:
        super().__init__(LLMConfig(model="slow"))

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Yield the two words."""
        yield TextDelta("first ")
        await asyncio.sleep(float(str(request.messages[-1].items[0].value)))
        yield TextDelta("second")
        yield ModelFinished("stop")


def show_block(title: str) -> str:
    block = re.search(rf'```\w+ title="{title}"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.S)
    assert block, f"the guide has no {title}"
    return block[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def start_nginx(folder: Path, port: int, upstream: int) -> Iterator[None]:
    subject = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    keys = ["-keyout", str(folder / "agents.key"), "-out", str(folder / "agents.pem")]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *keys, *subject]
    subprocess.run(make, check=True, capture_output=True)
    site = show_block("agents.conf").replace("443", str(port)).replace("8000", str(upstream))
    user = "" if os.getuid() else "user root;"  # its workers write large bodies into the folder
    (folder / "nginx.conf").write_text(
        NGINX.format(folder=folder, site=site.replace("/etc/ssl", str(folder)), user=user)
    )
    with subprocess.Popen([PROGRAMS["nginx"], "-p", str(folder), "-c", str(folder / "nginx.conf")]) as process:
        yield
        process.terminate()


@contextmanager
def start_caddy(folder: Path, port: int, upstream: int) -> Iterator[None]:
    site = (
        show_block("Caddyfile")
        .replace("8000", str(upstream))
        .replace(f"{NAME} {{", f"{NAME}:{port} {{\n    tls internal")
    )
    options = "{\n    admin off\n    auto_https disable_redirects\n    skip_install_trust\n}\n"
    (folder / "Caddyfile").write_text(options + site)
    home = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    run = [PROGRAMS["caddy"], "run", "--config", str(folder / "Caddyfile")]
    with subprocess.Popen(run, env=home, stderr=subprocess.DEVNULL) as process:
        yield
        process.terminate()


Ask = Callable[..., http.client.HTTPResponse]


@pytest.fixture(params=[start_nginx, start_caddy], ids=["nginx", "caddy"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ask]:
    """Serve the page behind a proxy, and yield the function that sends a request through it."""
    app = serving_app({"slow": FnCallAgent(llm=Slow())}, faces=["web"], tokens=Tokens([("ada", TOKEN)]), hosts=[NAME])
    port = free_port()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with ServedFace(app) as face, request.param(tmp_path, port, face.port):

        class Connection(http.client.HTTPSConnection):
            def connect(self) -> None:
                plain = socket.create_connection(("127.0.0.1", port), 120)
                self.sock = context.wrap_socket(plain, server_hostname=NAME)

        def send(method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
            connection = Connection(NAME, port)
            sent = {"authorization": f"Bearer {TOKEN}", "origin": f"https://{NAME}:{port}", **headers}
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            return connection.getresponse()

        for _ in range(200):
            try:
                send("GET", "/").read()
                break
            except OSError:
                time.sleep(0.05)
        yield send


def question(seconds: float, **more: Any) -> dict[str, Any]:
    return {"agent": "slow", "text": str(seconds), "conversation": "c", **more}


def test_the_page_and_its_requests_pass(ask: Ask) -> None:
    page = ask("GET", "/")
    assert page.status == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    address = re.search(r'src="(static/.*?app.js)"', page.read().decode())
    assert address
    assert "immutable" in ask("GET", f"/{address[1]}").headers["cache-control"]
    assert json.load(ask("GET", "/api/agents"))["agents"][0]["name"] == "slow"
    assert ask("GET", "/api/agents", authorization="").status == 401


def test_requests_of_other_pages_are_refused(ask: Ask) -> None:
    assert ask("GET", "/api/agents", origin="https://elsewhere.example").status == 403


def test_events_pass_as_they_happen_and_silence_does_not_end_them(ask: Ask) -> None:
    stream = ask("POST", "/api/runs?follow", question(SILENT_S))
    began = time.monotonic()
    first = second = 0.0
    for line in stream:
        if b"first" in line and not first:
            first = time.monotonic() - began
        if b'"second"' in line:
            second = time.monotonic() - began
    assert first < SILENT_S / 2 < SILENT_S <= second + 1


def test_large_files_pass_up_to_the_limit_and_no_further(ask: Ask) -> None:
    def attach(megabytes: int) -> http.client.HTTPResponse:
        address = "data:application/octet-stream;base64," + "A" * (megabytes << 20)
        return ask("POST", "/api/runs", question(0, files=[{"kind": "file", "address": address}]))

    assert attach(18).status == 201
    refused = attach(25)
    assert refused.status == 413
    assert "the limit is" in json.load(refused)["error"]["message"], "the server refuses it, not the proxy"
    with suppress(OSError):  # the proxy may answer and close before it has read all
        assert attach(40).status == 413
