"""Names at the hub: against a hub on this machine."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ModelServiceError
from jackfield.models import BaseChatModel

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_averysecrettoken"

Make = Callable[..., BaseChatModel]


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


@pytest.fixture
def at(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the libraries ask this hub with a token, and keep what they fetch in a folder of the test."""
    from huggingface_hub import constants, hf_api

    address = f"http://127.0.0.1:{hub.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hf_api.api, "endpoint", address)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def asked(make: Make, model: str, **settings: Any) -> tuple[str, str]:
    """What a model answers, or what kind of error is raised and what it says."""
    try:
        return "answered", make(model, generate_cfg={"max_tokens": 3}, **settings).quick_chat("Hi")
    except ModelServiceError as error:
        return type(error).__name__, str(error)


@pytest.mark.usefixtures("at")
def test_the_hub_is_asked_for_its_models_once_and_never_for_a_folder(
    hub: Hub, make: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    here = asked(make, str(hub.folder))
    assert here[0] == "answered"
    assert hub.asked == []
    assert asked(make, "org/tiny") == here
    gated, unknown = asked(make, "org/gated"), asked(make, "org/none")
    assert (gated[0], "accept its terms" in gated[1]) == ("ModelAuthError", True)
    assert (unknown[0], "check the name" in unknown[1]) == ("ModelNotFoundError", True)
    assert {key for path, key in hub.asked if path.startswith("/org/")} == {f"Bearer {TOKEN}"}
    hub.asked.clear()
    assert asked(make, "org/tiny", local_files_only=True) == here
    assert hub.asked == []  # for what is kept, nobody was asked
    printed = capfd.readouterr()
    assert TOKEN not in printed.out + printed.err + gated[1] + unknown[1]
