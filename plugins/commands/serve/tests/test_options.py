"""The command line: its defaults and boundaries, the names of agents, and the clients that may reach them."""

from __future__ import annotations

import io
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import ConfigError, ConsentNeededError
from jackfield.plugins import PluginHost
from jackfield.servers import FaceCommand, HttpServer
from jackfield.testing import ScriptedModel
from jackfield_serve import options as serve_options
from jackfield_serve.command import main
from jackfield_serve.options import ServeOptions, load_agents, make_app, read_options
from jackfield_serve.parser import make_parser
from jackfield_serve.plugin import commands
from jackfield_serve.running import _describe, _why_not

TOKEN = "ada-Zq83bXw4Rk2LpV7Tn"


def read(*words: str, command: FaceCommand | None = None) -> ServeOptions:
    return read_options(make_parser(command).parse_args(words), words=words, command=command)


def hello() -> FnCallAgent:
    return FnCallAgent(llm=ScriptedModel([]))


COMMAND = FaceCommand(
    name="jackfield web",
    face="web",
    description="Talk to agents.",
    examples="  jackfield web\n",
    agents=lambda: {"hello": hello()},
)


def test_without_options_it_serves_this_machine_only() -> None:
    chosen = read("agent.yaml")
    assert (chosen.host, chosen.port, chosen.tokens, chosen.hosts) == ("127.0.0.1", 8000, None, frozenset())
    assert (chosen.store, chosen.workers, chosen.runs, chosen.drain_s) == (None, 1, 500, 30)
    assert (chosen.max_body_bytes, chosen.trust, chosen.browser) == (32 << 20, False, False)
    assert chosen.words == ("agent.yaml",)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--port", "65536"], "must be a number from 0 to 65535"),
        (["--port", "-1"], "must be a number from 0 to 65535"),
        (["--port", "http"], "must be a number from 0 to 65535"),
        (["--workers", "0"], "must be a number from 1 to 1000000"),
        (["--runs", "1000001"], "must be a number from 1 to 1000000"),
        (["--drain", "1.5"], "must be a number from 1 to 1000000"),
        (["--max-body", "x"], "must be a number from 1 to 1000000"),
    ],
)
def test_numbers_outside_of_their_bounds_end_with_2(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["agent.yaml", *words])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_numbers_at_their_bounds_are_taken() -> None:
    chosen = read("a.yaml", "--port", "65535", "--runs", "1000000", "--drain", "1", "--max-body", "1")
    assert (chosen.port, chosen.runs, chosen.drain_s, chosen.max_body_bytes) == (65535, 1_000_000, 1, 1 << 20)
    assert read("a.yaml", "--port", "0").port == 0


@pytest.mark.parametrize(
    ("word", "name", "target"),
    [
        ("agents/support.yaml", "support", "agents/support.yaml"),
        ("support", "support", "support"),
        *((f"a:b/support.{form}", "support", f"a:b/support.{form}") for form in ("yaml", "yml", "toml", "json")),
        ("shop.agents:buyer", "buyer", "shop.agents:buyer"),
        ("shop:team.buyer", "buyer", "shop:team.buyer"),
        ("helper=shop.agents:buyer", "helper", "shop.agents:buyer"),
        *((f"v:1/support{end}", "support", f"v:1/support{end}") for end in (".yaml", ".yml", ".toml", ".json")),
        (f"{'x' * 64}=a.yaml", "x" * 64, "a.yaml"),
    ],
)
def test_an_agent_is_named_by_its_file_or_variable_unless_a_name_is_given(word: str, name: str, target: str) -> None:
    assert read(word).agents == {name: target}


@pytest.mark.parametrize("name", ["", ".x", "a b", "x" * 65, "é"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a valid agent name: use a name such as helper=a\.yaml"):
        read(f"{name}=a.yaml")


def test_the_name_that_is_suggested_can_be_pasted_into_a_shell() -> None:
    with pytest.raises(ConfigError, match=r"such as 'helper=my agent\.yaml'"):
        read("my agent.yaml")
    with pytest.raises(ConfigError, match=r"two agents are named 'a': rename one, as in 'a2=my agent\.yaml'"):
        read("a=my agent.yaml", "a=my agent.yaml")
    with pytest.raises(ConfigError, match=r"two agents are named 'a': rename one, as in a2=other\.yaml"):
        read("a.yaml", "a=other.yaml")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"])
def test_this_machine_needs_no_token(host: str) -> None:
    assert read("a.yaml", "--host", host).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "localhost.example"])
def test_any_other_address_needs_one(host: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can be reached from other machines: pass --token-file FILE"):
        read("a.yaml", "--host", host)
    (tmp_path / "tokens").write_text(TOKEN)
    chosen = read("a.yaml", "--host", host, "--token-file", str(tmp_path / "tokens"))
    assert chosen.tokens is not None
    assert chosen.token_file == tmp_path / "tokens"


def test_names_are_allowed_beside_those_of_this_machine_unless_tokens_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(TOKEN)
    words = ("a.yaml", "--allow-host", "Agents.Example")
    assert read(*words).hosts == {"agents.example", "localhost", "127.0.0.1", "[::1]"}
    assert read(*words, "--token-file", str(tmp_path / "tokens")).hosts == {"agents.example"}


def test_a_folder_is_no_agent_and_the_file_in_it_is_named(tmp_path: Path) -> None:
    for word in (str(tmp_path), f"helper={tmp_path}"):
        with pytest.raises(ConfigError) as caught:
            read(word)
        assert str(caught.value).endswith(f"specify an agent file, such as {tmp_path / 'agent.yaml'}")


def test_variables_of_agent_files_have_names() -> None:
    assert read("a.yaml", "-p", "topic=tides=high", "--param", " x = 1").params == {"topic": "tides=high", "x": " 1"}
    for wrong in ("topic", "=tides", " =tides"):
        with pytest.raises(ConfigError, match=f"expected NAME=VALUE, as in -p topic=tides, got {wrong!r}"):
            read("a.yaml", "-p", wrong)


def test_faces_are_names_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read("a.yaml", "--face", "mcp", "--face", '{"name": "ag-ui"}').faces == ["mcp", {"name": "ag-ui"}]
    with pytest.raises(ConfigError, match="--face must be a name or a JSON object with a name and settings"):
        read("a.yaml", "--face", '{"name": ')
    assert read("a.yaml").faces[0] == "openai"
    assert serve_options._default_faces(PluginHost(paths=[])) == ["openai"]
    assert "web" in read("a.yaml").faces


def test_several_workers_need_a_store() -> None:
    with pytest.raises(ConfigError, match="multiple workers need a shared store: pass --store"):
        read("a.yaml", "--workers", "2")
    assert read("a.yaml", "--workers", "2", "--store", "sqlite").workers == 2


# --- commands that serve one face ---


def test_a_command_of_one_face_has_its_agents_and_opens_the_browser() -> None:
    chosen = read(command=COMMAND)
    assert (list(chosen.agents), chosen.faces, chosen.browser) == (["hello"], ["web"], True)
    assert read("--no-browser", command=COMMAND).browser is False
    assert list(read("x=a.yaml", command=COMMAND).agents) == ["x"]
    with pytest.raises(ConfigError, match="multiple workers need an agent file or module:agent"):
        read("--workers", "2", "--store", "sqlite", command=COMMAND)
    with pytest.raises(SystemExit):
        read("--face", "openai", command=COMMAND)


def test_its_help_has_its_own_name_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"], COMMAND)
    told = capsys.readouterr().out
    assert told.startswith("usage: jackfield web ")
    assert "Talk to agents." in told
    assert "examples:\n  jackfield web\n" in told
    assert "A token file contains one token per line" in told


def test_without_an_agent_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "specify an agent: an agent file or module:agent" in capsys.readouterr().err


def test_the_installed_faces_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--faces"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["face", "summary"]
    assert any(line.startswith("openai ") for line in lines)


# --- agents ---


def test_an_agent_of_a_module_may_be_deep_in_it_and_the_working_directory_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "from jackfield import FnCallAgent\nfrom jackfield.testing import ScriptedModel\n"
        "class team:\n    buyer = FnCallAgent(llm=ScriptedModel([]))\n"
    )
    (tmp_path / "shop_of_test_options.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path not in ("", str(tmp_path))])
    agents = load_agents(read("shop_of_test_options:team.buyer"))
    assert isinstance(agents["buyer"], FnCallAgent)
    with pytest.raises(ConfigError, match=r"cannot import 'shop_of_test_options:team.seller': "):
        load_agents(read("shop_of_test_options:team.seller"))
    for wrong in (":team", ".shop_of_test_options:team", "shop_of_test_options:", "no_shop_of_test_options:team"):
        with pytest.raises(ConfigError, match=f"cannot import '{re.escape(wrong)}': "):
            load_agents(read(f"x={wrong}"))
    with pytest.raises(ConfigError, match=r"'shop_of_test_options:team' must be an agent, got type"):
        load_agents(read("shop_of_test_options:team"))


def test_variables_and_trust_reach_the_agent_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    Path("a.yaml").write_text("llm: {model: m, base_url: https://models.example}\nsystem_message: On {{ topic }}.\n")
    words = ("a.yaml", "-p", "topic=tides")
    with pytest.raises(ConsentNeededError):
        load_agents(read(*words))
    agent = load_agents(read(*words, "--trust"))["a"]
    assert agent.system_message == "On tides."
    with pytest.raises(ConfigError, match=r"no agent file 'support': specify an existing file or module:agent"):
        load_agents(read("support"))


class _InOneProcess(HttpServer):
    name = "memo"
    paths = ("/memo",)
    one_process = "memory_file"

    def app(self, serving: Any) -> Any:
        raise AssertionError("it is never served")


def test_a_face_that_keeps_something_in_its_process_is_not_served_by_several(monkeypatch: pytest.MonkeyPatch) -> None:
    load = serve_options.load_server
    monkeypatch.setattr(
        serve_options, "load_server", lambda face, host: _InOneProcess() if face == "memo" else load(face, host)
    )
    words = ("a.yaml", "--face", "openai", "--face", "memo", "--store", "sqlite")
    message = (
        r"face 'memo' does not support multiple workers with its current settings: set memory_file, for .*\[settings"
    )
    with pytest.raises(ConfigError, match=message):
        make_app(read(*words, "--workers", "2"), {"hello": hello()})
    assert make_app(read(*words), {"hello": hello()}).paths.keys() == {"/v1", "/memo"}


def test_limits_and_tokens_of_the_options_reach_the_application(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(TOKEN)
    words = ("a.yaml", "--max-body", "2", "--runs", "7", "--token-file", str(tmp_path / "tokens"))
    app = make_app(read(*words, "--allow-host", "agents.example"), {"hello": hello()})
    assert app.checks.max_body_bytes == 2 << 20
    assert app.checks.hosts == {"agents.example"}
    assert app.checks.tokens is not None
    assert app.serving.limits.runs == 7


# --- what is printed ---


def test_addresses_are_aligned_and_it_says_who_may_use_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paths = [("openai", "/v1"), ("web", "/")]
    _describe(read("a.yaml"), "http://127.0.0.1:8000", ["a", "b\x1b"], paths)
    assert capsys.readouterr().out.splitlines() == [
        "Serving a, b\\x1b",
        "  openai  http://127.0.0.1:8000/v1",
        "  web     http://127.0.0.1:8000",
        "  Any program on this machine can connect; pass --token-file to require a token.",
        "  Runs are kept in memory; pass --store sqlite to keep them on disk.",
    ]
    (tmp_path / "tokens").write_text(TOKEN)
    chosen = read("a.yaml", "--token-file", str(tmp_path / "tokens"), "--store", "sqlite")
    _describe(chosen, "http://127.0.0.1:8000", ["a"], paths)
    assert capsys.readouterr().out.splitlines()[-1] == f"  Clients need a token from {tmp_path / 'tokens'}."


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(98, "in use"), "port 80 is in use: stop the other program, or pass --port 0 to use a free port"),
        (OSError(13, "denied"), "port 80 requires administrator rights: pass --port 1024 or higher"),
        (OSError(99, "no"), "here is not an address of this machine: pass a different --host, such as 127.0.0.1"),
        *(
            (
                socket.gaierror(number, "no"),
                "here is not an address of this machine: pass a different --host, such as 127.0.0.1",
            )
            for number in (socket.EAI_NONAME, socket.EAI_AGAIN, socket.EAI_NODATA)
        ),
        (OSError(105, "No buffer space"), "cannot listen on here port 80: No buffer space"),
        (OSError("odd"), "cannot listen on here port 80: odd"),
    ],
    ids=["in use", "reserved", "not here", "no name", "no name now", "no address", "other", "without a number"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="numbers of errors on Linux")
def test_an_address_that_cannot_be_used_is_explained(error: OSError, says: str) -> None:
    assert _why_not(error, "here", 80) == says


def test_its_descriptor_names_it() -> None:
    (spec,) = commands()
    assert (spec.name, spec.target) == ("serve", "jackfield_serve.command:main")
