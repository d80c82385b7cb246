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
from jackfield import get_chat_model
told = []
for settings in json.loads(sys.argv[1]):
    model = get_chat_model({"model_type": "transformers", "generate_cfg": {"max_tokens": 3}, **settings})
    try:
        told.append(["answered", model.quick_chat("Hi")])
    except Exception as error:
        told.append([type(error).__name__, str(error)])
print(json.dumps(told))
"""


class Hub(http.server.ThreadingHTTPServer):
    """Has one model, `org/tiny`, and one behind a gate, `org/gated`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[tuple[str, str | None]] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_HEAD(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append((path, self.headers.get("Authorization")))
        if path.startswith("/org/gated/"):
            self._say(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif not path.startswith(("/org/tiny/resolve/", "/api/models/org/tiny")):
            self._say(404, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif path.startswith("/api/"):
            names = [{"rfilename": file.name} for file in self.server.folder.iterdir()]
            found = {"id": "org/tiny", "modelId": "org/tiny", "sha": COMMIT, "siblings": names, "tags": []}
            self._say(200, json.dumps(found if "/tree/" not in path else []).encode(), {})
        else:
            file = self.server.folder / path.rpartition("/")[2]
            if file.is_file():
                etag = hashlib.sha256(file.read_bytes()).hexdigest()
                self._say(200, file.read_bytes(), {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"'})
            else:
                missing = {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"}
                self._say(404, b"", {"X-Repo-Commit": COMMIT, **missing})

    def do_GET(self) -> None:
        self.do_HEAD()

    def _say(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def hub(qwen3: Path) -> Iterator[Hub]:
    with Hub(qwen3) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(address: str, home: Path, *settings: dict[str, Any]) -> list[list[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    environment |= {
        "HF_ENDPOINT": address,
        "HF_HOME": str(home),
        "HF_TOKEN": TOKEN,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    done = run_program(ASK, json.dumps(settings), env=environment)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    told: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_all_files_of_a_model_are_of_the_wanted_revision(hub: Hub, tmp_path: Path) -> None:
    ((outcome, *_),) = asked(f"http://127.0.0.1:{hub.server_port}", tmp_path, {"model": "org/tiny", "revision": "v2"})
    assert outcome == "answered"
    whole = {path for path, _ in hub.asked if path.startswith("/api/models/org/tiny") and "/tree/" not in path}
    assert whole == {"/api/models/org/tiny/revision/v2"}, hub.asked


def test_the_hub_is_asked_for_its_models_once_and_never_for_a_folder(hub: Hub, tmp_path: Path) -> None:
    here, fetched, gated, unknown, kept = asked(
        f"http://127.0.0.1:{hub.server_port}",
        tmp_path,
        {"model": str(hub.folder)},
        {"model": "org/tiny"},
        {"model": "org/gated"},
        {"model": "org/none"},
        {"model": "org/tiny", "local_files_only": True},
    )
    assert fetched[0] == "answered"
    assert here == fetched
    assert all(path.startswith(("/org/", "/api/models/org/")) for path, _ in hub.asked)  # nothing of the folder
    assert (gated[0], "accept its terms" in gated[1]) == ("ModelAuthError", True)
    assert (unknown[0], "check the name" in unknown[1]) == ("ModelNotFoundError", True)
    assert kept == fetched
    assert hub.asked[-1][0].startswith("/org/none/")  # for what is kept, nobody was asked
    assert {key for path, key in hub.asked if path.startswith("/org/")} == {f"Bearer {TOKEN}"}
