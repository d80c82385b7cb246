"""`jackfield models`: the models of real servers, a default model, and aliases."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jackfield.errors import ConfigError, PluginNotFoundError
from jackfield.plugins import default_host
from jackfield.settings import models_path
from jackfield_openai.backend import OpenAIChat
from jackfield_terminal import models
from jackfield_terminal.model_names import ModelNames, load_names, names_path, remember_models, save_names
from jackfield_terminal.options import _model_config


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        known = path == "/v1/models"
        body = json.dumps({"data": [{"id": "small"}, {"id": "large"}]} if known else {}).encode()
        self.send_response(200 if known else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "jackfield"


@pytest.mark.parametrize(("backend", "suffix"), [("openai", "/v1"), ("anthropic", ""), ("anthropic", "/v1")])
def test_a_server_names_its_models(
    url: str, backend: str, suffix: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"{backend.upper()}_BASE_URL", url + suffix)
    monkeypatch.setenv(f"{backend.upper()}_API_KEY", "sk-test")
    assert models.main(["list", "-m", backend]) == 0
    assert capsys.readouterr().out.split() == [f"{backend}:small", f"{backend}:large"]
    assert (home / "models.txt").read_text().split() == [f"{backend}:small", f"{backend}:large"]


def test_the_error_of_a_backend_hides_no_other(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert models.main(["list", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"openai:small", "openai:large"} <= set(answer["models"])
    assert "jackfield keys set ANTHROPIC_API_KEY" in answer["errors"]["anthropic"]


def test_all_servers_are_asked_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    everybody = threading.Barrier(2, timeout=30)  # a server that waits for the other's request

    class Waiting(Handler):
        def do_GET(self) -> None:
            everybody.wait()
            super().do_GET()

    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Waiting) for _ in range(2)]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    for backend, server in zip(("OPENAI", "ANTHROPIC"), servers, strict=True):
        monkeypatch.setenv(f"{backend}_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv(f"{backend}_API_KEY", "sk-test")
    monkeypatch.setattr(default_host(), "names", lambda _kind: ["openai", "anthropic", "azure", "offline"])
    assert models.main(["list"]) == 0
    out, err = capsys.readouterr()
    assert out.split() == ["openai:small", "openai:large", "anthropic:small", "anthropic:large"]
    assert [line.split(":")[0] for line in err.splitlines()] == ["! azure"]
    for server, thread in zip(servers, threads, strict=True):
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_without_a_list_is_an_error(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/other")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert models.main(["list", "-m", "openai"]) == 1
    assert capsys.readouterr().err.startswith("! openai: ")


def test_commands_use_the_default_model_and_aliases(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="jackfield models default"):
        _model_config(None, None)
    assert models.main(["alias", "fast", "openai:small"]) == 0
    assert models.main(["default", "fast"]) == 0
    assert _model_config(None, None) == _model_config("fast", None) == "openai:small"
    assert _model_config("openai:other", None) == "openai:other"
    assert models.main(["alias", "--remove", "fast"]) == 0
    assert load_names().aliases == {}
    with pytest.raises(ConfigError, match="no alias named 'fast'"):
        models.main(["alias", "fast"])
    capsys.readouterr()


def test_the_default_model_can_be_removed_and_the_aliases_stay(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="no default model is set"):
        models.main(["default", "--remove"])
    models.main(["alias", "fast", "openai:small"])
    for words in ([], ["fast"]):
        models.main(["default", "fast"])
        with pytest.raises(
            ConfigError, match="the default model is 'fast', not 'openai:small': to remove the default, omit the name"
        ):
            models.main(["default", "--remove", "openai:small"])
        capsys.readouterr()
        assert models.main(["default", "--remove", *words]) == 0
        assert capsys.readouterr().out == "fast is no longer the default model.\n"
        assert load_names() == ModelNames("", {"fast": "openai:small"})
    assert models.main(["default"]) == 0
    assert capsys.readouterr().out == (
        "There is no default model. To set one, run: jackfield models default BACKEND:MODEL\n"
    )


def test_names_that_are_set_at_the_same_time_are_all_kept() -> None:
    names = [f"fast{number}" for number in range(6)]
    start = threading.Barrier(len(names))

    def change(name: str) -> None:
        start.wait(30)
        for words in (["alias", name, "openai:small"], ["alias", "--remove", name], ["alias", name, "openai:large"]):
            assert models.main(words) == 0

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(change, names))
    assert load_names() == ModelNames("", dict.fromkeys(sorted(names), "openai:large"))


def test_a_default_model_whose_alias_is_removed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("fast", "quick"):
        models.main(["alias", name, "openai:small"])
    models.main(["default", "fast"])
    models.main(["alias", "--remove", "quick"])
    assert capsys.readouterr().err == ""
    models.main(["alias", "--remove", "fast"])
    assert (
        "the default model is still fast, which no longer refers to a model: set another one" in capsys.readouterr().err
    )
    with pytest.raises(ConfigError, match="specify the alias to remove"):
        models.main(["alias", "--remove"])


@pytest.mark.parametrize("name", ["openai", "a:b"])
def test_an_alias_does_not_replace_a_backend_or_a_model(name: str) -> None:
    with pytest.raises(ConfigError, match="already"):
        models.main(["alias", name, "openai:small"])


def test_a_backend_that_cannot_list_is_an_error_only_if_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models.main(["list", "-m", "offline:any"]) == 1
    assert capsys.readouterr().err == "! offline: it cannot list its models\n"
    monkeypatch.setattr(default_host(), "names", lambda _kind: ["offline"])
    assert models.main(["list"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [("default",), ("alias", "fast")], ids=["default", "alias"])
@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("opnai:small", PluginNotFoundError, "no llm 'opnai' is installed; did you mean 'openai'"),
        ("some model", ConfigError, "no backend specified for model 'some model': use backend:model"),
        ("http://localhost:8000/v1", ConfigError, "a URL does not specify the model"),
        ("openai", ConfigError, "no model specified for openai: use openai:MODEL"),
        ("openai:", ConfigError, "no model specified for openai: use openai:MODEL"),
        (":small", ConfigError, "no backend"),
    ],
)
def test_a_name_that_no_command_could_use_is_refused(
    words: tuple[str, ...], name: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        models.main([*words, name])
    assert load_names() == ModelNames()


@pytest.mark.parametrize("name", ["openai:small", "offline", "offline:any", "qwen-plus"])
def test_a_name_is_accepted_without_a_key_or_a_server(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert models.main(["default", name]) == models.main(["alias", "fast", name]) == 0
    assert load_names() == ModelNames(name, {"fast": name})
    capsys.readouterr()


def test_an_alias_of_an_alias_keeps_the_model_that_it_had(capsys: pytest.CaptureFixture[str]) -> None:
    models.main(["alias", "fast", "openai:small"])
    models.main(["alias", "quick", "fast"])
    models.main(["alias", "fast", "openai:other"])
    assert load_names().aliases == {"fast": "openai:other", "quick": "openai:small"}
    capsys.readouterr()


def test_a_server_that_is_silent_holds_nothing_up_and_connections_are_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed: list[str] = []
    close = OpenAIChat.aclose

    async def aclose(model: OpenAIChat) -> None:
        closed.append(model.backend)
        await close(model)

    monkeypatch.setattr(OpenAIChat, "aclose", aclose)
    monkeypatch.setattr(models, "_TIMEOUT_S", 0.2)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        assert models.main(["list", "-m", "openai"]) == 1
    assert capsys.readouterr().err.startswith("! openai: ")
    assert closed == ["openai"]


def test_chosen_names_are_kept_and_shells_complete_them_beside_earlier_ones(home: Path) -> None:
    save_names(ModelNames("m:x", {"fast": "m:y"}))
    assert load_names() == ModelNames("m:x", {"fast": "m:y"})
    remember_models(["m:z", "odd name", "", "fast"])
    assert models_path().read_text().split("\n") == ["m:x", "fast", "m:z", ""]
    models_path().write_bytes(b"\xff")
    remember_models(["m:z"])  # only completion misses it


@pytest.mark.parametrize("text", ["[]", "{", '{"default": 1}', '{"aliases": []}', '{"aliases": {"fast": 1}}'], ids=str)
def test_a_damaged_file_of_names_is_an_error(text: str) -> None:
    names_path().parent.mkdir(parents=True)
    names_path().write_text(text)
    with pytest.raises(ConfigError, match="is corrupted: delete it"):
        load_names()


def test_without_a_folder_for_settings_there_are_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_names() == ModelNames()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    assert load_names() == ModelNames()
    with pytest.raises(ConfigError, match="cannot be written"):
        save_names(ModelNames("m:x"))
