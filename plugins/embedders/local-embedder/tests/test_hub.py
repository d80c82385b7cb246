"""Names at the hub: against a hub on this machine, in a process of its own, because the address is read on import."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.forks import run_program

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_averysecrettoken"

ASK = """
import json, sys
from jackfield import sync
from jackfield.plugins import default_host
from jackfield.retrieval import Embedder
host, answers = default_host(), []
for settings in json.loads(sys.argv[1]):
    embedder = host.make(host.find("embedder", "transformers"), settings, Embedder)
    try:
        answers.append(["embedded", str(len(sync.run(embedder.embed(["tea"])).vectors[0]))])
    except Exception as error:
        answers.append([type(error).__name__, str(error)])
print(json.dumps(answers))
"""


class Hub(http.server.ThreadingHTTPServer):
    """Has one model, `org/tiny`, and one behind a gate, `org/gated`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        self.files["onnx/model.onnx"] = b"for another engine"
        self.files["pytorch_model.bin"] = b"pickled"
        self.asked: list[str] = []
        self.keys: set[str | None] = set()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_HEAD(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        self.server.keys.add(self.headers.get("Authorization"))
        if path.startswith(("/org/gated/", "/api/models/org/gated")):
            self._answer(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif path.startswith("/api/models/org/tiny"):
            files = self.server.files
            if "/tree/" in path:
                tree = [{"type": "file", "path": n, "size": len(c), "oid": "0" * 40} for n, c in files.items()]
                self._answer(200, json.dumps(tree).encode(), {})
            else:
                names = [{"rfilename": name} for name in files]
                found = {"id": "org/tiny", "modelId": "org/tiny", "sha": COMMIT, "siblings": names, "tags": []}
                self._answer(200, json.dumps(found).encode(), {})
        elif path.startswith("/org/tiny/resolve/"):
            content = self.server.files[path.split("/", 5)[5]]
            etag = hashlib.sha256(content).hexdigest()
            self._answer(200, content, {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"'})
        else:
            self._answer(404, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})

    def do_GET(self) -> None:
        self.do_HEAD()

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def hub(bert: Path) -> Iterator[Hub]:
    with Hub(bert) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(hub: Hub, home: Path, *settings: dict[str, Any]) -> list[list[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(home),
        "HF_TOKEN": TOKEN,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    done = run_program(ASK, json.dumps(settings), env=environment)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    answers: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def test_the_hub_is_asked_only_if_that_is_allowed_and_for_what_is_needed(hub: Hub, tmp_path: Path) -> None:
    folder, forbidden = asked(hub, tmp_path, {"model": str(hub.folder)}, {"model": "org/tiny"})
    assert folder[0] == "embedded"
    assert (forbidden[0], "set download to true" in forbidden[1]) == ("ModelNotFoundError", True)
    assert hub.asked == []

    fetched, gated, unknown = asked(
        hub, tmp_path, *({"model": f"org/{name}", "download": True} for name in ("tiny", "gated", "none"))
    )
    assert fetched == folder
    assert (gated[0], "accept its terms" in gated[1]) == ("ModelAuthError", True)
    assert (unknown[0], "check the name" in unknown[1]) == ("ModelNotFoundError", True)
    assert hub.keys == {f"Bearer {TOKEN}"}
    assert not [path for path in hub.asked if path.endswith((".onnx", ".bin"))]

    hub.asked.clear()
    (kept,) = asked(hub, tmp_path, {"model": "org/tiny"})
    assert kept == folder
    assert hub.asked == []


def test_a_named_onnx_file_is_fetched_and_the_weights_are_not(hub: Hub, tmp_path: Path) -> None:
    settings = {"model": "org/tiny", "onnx_file": "onnx/model.onnx"}
    missing, fetched = asked(hub, tmp_path, settings, {**settings, "download": True})
    assert "set download to true" in missing[1]
    assert "cannot be loaded by ONNX Runtime" in fetched[1]  # it is no model, but it was fetched
    paths = [path.partition(COMMIT)[2] for path in hub.asked if "/resolve/" in path]
    assert "/onnx/model.onnx" in paths
    assert not [path for path in paths if path.endswith((".safetensors", ".bin"))]
