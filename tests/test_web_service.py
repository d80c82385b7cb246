"""The web service that the documentation shows, started as it says and asked over HTTP."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jackfield_testkit.replies import error, text, tool_call
from jackfield_testkit.server import FakeOpenAI

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/guides/fastapi.md"
START_S = 60.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture(scope="module")
def service(model: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("service")
    (program,) = re.findall(r'^```python title="app.py"\n(.*?)^```$', PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (folder / "app.py").write_text(program, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "OPENAI_API_KEY": "sk-example",
        "OPENAI_BASE_URL": model.url,
    }
    process = subprocess.Popen([sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)], cwd=folder, env=env)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            wait_until_it_listens(process, port)
            yield client
    finally:
        process.terminate()
        process.wait(20)


def wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    give_up = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            assert process.poll() is None, "the service has ended"
            assert time.monotonic() < give_up, "the service does not listen"
            time.sleep(0.1)
        else:
            return


def test_an_answer_has_a_history_with_which_the_next_question_goes_on(service: httpx.Client, model: FakeOpenAI) -> None:
    model.clear()
    model.reply(tool_call("opening_hours", {"day": "Sunday"}), text("No."), text("From 8 to 18."))
    first = service.post("/ask", json={"text": "Are you open on Sunday?"}).raise_for_status().json()
    assert (first["text"], first["tokens"]) == ("No.", 32)
    second = service.post("/ask", json={"text": "And on Monday?", "history": first["history"]}).raise_for_status()
    assert second.json()["text"] == "From 8 to 18."
    sent = [message["role"] for message in model.requests[-1].json["messages"]]
    assert sent == ["user", "assistant", "tool", "assistant", "user"]


def test_text_arrives_as_it_is_written_and_who_leaves_ends_the_run(service: httpx.Client, model: FakeOpenAI) -> None:
    model.clear()
    model.reply(text(["Once ", "upon a time"]).stall_after(1))
    with service.stream("POST", "/stream", json={"text": "Tell me a story."}) as response:
        pieces = response.iter_text()  # kept: httpx closes the connection with the iterator that is dropped
        assert next(pieces) == "Once "
        assert model.open_streams == 1
    assert model.wait_until(lambda server: server.disconnects == 1, timeout_s=30)


def test_a_model_that_fails_is_an_error_of_the_service_which_goes_on(service: httpx.Client, model: FakeOpenAI) -> None:
    model.clear()
    model.reply(error(401, "wrong key"), text("Here I am."))
    failed = service.post("/ask", json={"text": "Are you there?"})
    assert (failed.status_code, "key" in failed.text) == (503, False)
    assert service.post("/ask", json={"text": "Are you there?"}).json()["text"] == "Here I am."
