"""The configuration of servers, as Qwen-Agent, Claude, VS Code and others write it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, create_agent
from jackfield.errors import ConfigError
from jackfield.plugins import known_components
from jackfield.testing import ScriptedModel, answer
from jackfield_mcp.expanding import Variables
from jackfield_mcp.servers import ServerConfig, parse_servers, read_file
from jackfield_mcp.tools import name_of
from jackfield_mcp.toolset import MCPServers

from .conftest import BAD, tools_of


def one(entry: Any, shape: str = "mcpServers", **more: Any) -> ServerConfig:
    return parse_servers({shape: {"x": entry}, **more})["x"]


# --- in each form ---


def test_the_form_of_qwen_agent() -> None:
    servers = parse_servers(
        {
            "mcpServers": {
                "memory": {"command": "npx", "args": ["-y", "server-memory"], "env": {"LEVEL": 3}},
                "web": {
                    "url": "http://127.0.0.1:1/sse",
                    "headers": {"Authorization": "Bearer t"},
                    "sse_read_timeout": 9,
                },
                "new": {"type": "streamable-http", "url": "https://example.com/mcp"},
            }
        }
    )
    assert servers["memory"].args == ("-y", "server-memory")
    assert servers["memory"].env == {"LEVEL": "3"}
    assert servers["web"].transport == "auto"
    assert servers["web"].headers == {"Authorization": "Bearer t"}
    assert servers["web"].sse_read_timeout == 9
    assert servers["new"].transport == "http"


def test_the_form_of_vs_code(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# a comment\nexport TOKEN='abc def'\nEMPTY=\n")
    given = {
        "inputs": [
            {"type": "promptString", "id": "key", "description": "API key", "password": True},
            {"type": "promptString", "id": "region", "default": "eu"},
        ],
        "servers": {
            "x": {
                "type": "stdio",
                "command": "${workspaceFolder}/server",
                "args": ["--region", "${input:region}"],
                "env": {"KEY": "${input:key}"},
                "envFile": "${workspaceFolder}/.env",
            },
            "y": {"type": "http", "url": "https://example.com/mcp"},
        },
    }
    with pytest.raises(ConfigError, match=r"MCP server 'x'.env.KEY: the input 'key' \(API key\) has no value"):
        parse_servers(given, variables=Variables(folder=tmp_path))
    variables = Variables(inputs={"key": "k"}, folder=tmp_path)
    server = parse_servers(given, variables=variables)["x"]
    assert server.command == f"{tmp_path}/server"
    assert server.args == ("--region", "eu")
    assert server.env == {"TOKEN": "abc def", "EMPTY": "", "KEY": "k"}


def test_what_other_programs_say_to_themselves_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = one({"command": "c", "autoApprove": ["rm"], "trust": True, "timeout": 5, "description": "d"})
    assert server == ServerConfig(command="c")
    assert "'autoApprove' is a setting of other programs" in caplog.text
    assert parse_servers({"mcpServers": {"x": {"command": "c", "disabled": True}, "y": {"command": "d"}}}).keys() == {
        "y"
    }
    assert one({"httpUrl": "https://e.com"}).transport == "http"
    assert one({"serverUrl": "https://e.com"}).url == "https://e.com"
    assert one({"command": "c", "includeTools": ["a"], "excludeTools": ["b"]}).include == ("a",)


def test_a_file_is_read_beside_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("\ufeff" + json.dumps({"mcpServers": {"bad": {**BAD, "cwd": "${workspaceFolder}"}}}))
    with MCPServers(file=str(file), cache_folder=str(tmp_path / "kept")) as servers:
        assert "bad-echo" in tools_of(servers)
        assert servers.fixed_tools()[0].server.cwd == str(tmp_path)  # type: ignore[union-attr]


# --- variables ---


def test_variables_are_replaced_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0k")
    monkeypatch.delenv("NOWHERE", raising=False)
    server = one(
        {
            "url": "https://${NOWHERE:-example.com}/${env:TOKEN}",
            "headers": {"Authorization": "Bearer ${TOKEN}", "X": "${NOWHERE:-}"},
        }
    )
    assert server.url == "https://example.com/t0k"
    assert server.headers == {"Authorization": "Bearer t0k", "X": ""}
    assert one({"command": "${userHome}"}).command == str(Path.home())
    with pytest.raises(ConfigError, match=r"MCP server 'x'.env.K: the environment variable 'NOWHERE' is not set"):
        one({"command": "c", "env": {"K": "${NOWHERE}"}})


def test_values_of_variables_are_not_expanded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "${INNER}")
    monkeypatch.setenv("INNER", "secret")
    assert one({"command": "${OUTER}"}).command == "${INNER}"


# --- what is refused ---


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "needs 'mcpServers'"),
        ({"mcpServers": []}, "must be a dict of servers"),
        ({"mcpServers": {"x": "npx"}}, "'x' must be a dict"),
        ({"mcpServers": {"x": {}}}, "'x'.*needs either 'command', to start it, or 'url'"),
        ({"mcpServers": {"x": {"command": "c", "url": "https://e.com"}}}, "'x'.*needs either"),
        ({"mcpServers": {"x": {"command": "c", "args": "a"}}}, "'x'.*args"),
        ({"mcpServers": {"x": {"command": "c", "comand": "d"}}}, "'x'.*unknown setting 'comand'"),
        ({"mcpServers": {"x": {"url": "ftp://e.com"}}}, "'x'.*begins with https://"),
        ({"mcpServers": {"x": {"url": "https://e.com", "type": "carrier pigeon"}}}, "'carrier pigeon' is not a valid"),
        ({"mcpServers": {"x": {"url": "https://e.com", "type": "stdio"}}}, "'stdio' is for servers with a 'command'"),
        ({"mcpServers": {"x": {"command": "c", "type": "sse"}}}, "'sse' is for servers with a 'url'"),
        ({"mcpServers": {}, "other": 1}, "unknown setting 'other' beside 'mcpServers'"),
        (
            {"mcpServers": {"x": {"url": "https://e.com", "oauth": {"grant": "client_credentials"}}}},
            "'client_id', 'client_secret' and",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_server(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        parse_servers(given)
    assert "Config of mcpservers is not valid" in str(error.value) or "MCP server 'x'" in str(error.value)


@pytest.mark.parametrize("text", ["{", "[]", None])
def test_a_file_that_holds_no_servers_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "mcp.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        read_file(file)


def test_a_set_needs_its_servers_in_one_form() -> None:
    for settings in ({}, {"mcpServers": {}, "file": "x"}):
        with pytest.raises(ConfigError, match="one of 'mcpServers', 'servers' or 'file'"):
            MCPServers(settings)


def test_an_agent_with_a_wrong_configuration_is_not_made() -> None:
    with pytest.raises(ConfigError, match="Config of mcpservers is not valid: MCP server 'x'"):
        FnCallAgent([{"name": "mcp", "mcpServers": {"x": {}}}], ScriptedModel([answer("hi")]))


def test_secrets_are_in_no_error_and_no_text() -> None:
    secret = "sk-very-secret"
    given = {"command": "c", "env": {"KEY": secret}, "args": ["--token", secret], "oops": secret}
    with pytest.raises(ConfigError) as error:
        one(given)
    assert secret not in str(error.value)
    del given["oops"]
    assert secret not in repr(one(given))
    assert secret not in repr(one({"url": f"https://u:{secret}@e.com/", "headers": {"A": f"Bearer {secret}"}}))
    assert one({"command": "c", "env": {"KEY": secret}}).without_secrets(f"no {secret} here") == "no … here"


# --- what stands for a server ---


def test_each_configuration_stands_for_itself() -> None:
    same = [one({"command": "c", "env": {"A": "1", "B": "2"}}), one({"env": {"B": "2", "A": "1"}, "command": "c"})]
    assert len({server.identity() for server in same}) == 1
    different: list[dict[str, Any]] = [
        {"command": "c"},
        {"command": "c", "args": ["x"]},
        {"command": "c", "env": {"A": "1"}},
        {"command": "c", "env": {"A": "2"}},
        {"command": "c", "cwd": "/"},
        {"url": "https://e.com"},
        {"url": "https://e.com", "type": "sse"},
        {"url": "https://e.com", "headers": {"A": "1"}},
        {"url": "https://e.com", "oauth": True},
    ]
    assert len({one(entry).identity() for entry in different}) == len(different)


def test_names_are_those_of_qwen_agent_as_far_as_providers_take_them() -> None:
    assert name_of("memory", "create_entities") == "memory-create_entities"
    assert name_of("my server", "read/file") == "my_server-read_file"
    long = name_of("server", "x" * 100)
    assert len(long) == 64
    assert long != name_of("server", "x" * 101)
    assert name_of("a", "b", {"a-b": 1}) != "a-b"
    assert name_of("服务", "读") == "_-_"


def test_settings_of_a_server_apply_to_its_tools(tmp_path: Path) -> None:
    entry = {**BAD, "include": ["echo", "pid"], "approval": "always", "timeout_s": 7, "call_timeout_s": 3}
    with MCPServers(mcpServers={"bad": entry}, cache_folder=str(tmp_path)) as servers:
        tools = tools_of(servers)
    assert set(tools) == {"bad-echo", "bad-pid"}
    safety = tools["bad-echo"].safety()
    assert safety.needs_approval
    assert safety.timeout_s == 7
    assert safety.effects == {"network", "files", "processes"}
    assert not safety.read_only


def test_a_dict_with_mcp_servers_and_no_name_means_this_set(tmp_path: Path) -> None:
    if "tool.mcp" not in known_components():
        pytest.skip("the core's index of known packages does not have this one yet: make known")
    entry = {"mcpServers": {"bad": {**BAD, "disabled": True}}}
    assert FnCallAgent([entry], ScriptedModel([answer("hi")])).ask("hello").text == "hi"
    assert create_agent({"function_list": [entry]}, llm=ScriptedModel([answer("hi")])).function_map == {}
