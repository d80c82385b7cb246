"""Folders in the Agent Plugins format: their skills, and what of their MCP servers is handed on."""

from __future__ import annotations

import json
import logging
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.config import ComponentSettings, Config
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost, ToolsetSpec, hook
from jackfield.settings import Settings
from jackfield.testing import ScriptedModel
from jackfield.tools import BaseTool, Toolset
from jackfield_skills import toolset

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/{}.schema.json"
STDIO = {"type": "stdio", "command": "server"}
handed_on: list[Mapping[str, Any]] = []


class ServersConfig(Config):
    """As of the set `mcp`."""

    mcpServers: ComponentSettings  # noqa: N815


class Servers(Toolset):
    """Stands for the set `mcp`: it notes what it is given."""

    config_class = ServersConfig
    config: ServersConfig

    def fixed_tools(self) -> Sequence[BaseTool]:
        handed_on.append(self.config.mcpServers)
        return []

    async def tools_of_run(self, context: Any) -> Sequence[BaseTool]:
        return []


@hook.toolsets
def toolsets() -> list[ToolsetSpec]:
    """The set."""
    target = f"{__name__}:Servers"
    return [ToolsetSpec(name="mcp", target=target, summary="Of a test.", config=f"{target}Config")]


@pytest.fixture(autouse=True)
def _of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_on.clear()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "plugin"
    (folder / "skills/greet").mkdir(parents=True)
    (folder / "skills/greet/SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
    (folder / "plugin.json").write_text(json.dumps({"$schema": SCHEMA.format("plugin"), "name": "my-plugin"}))
    return folder


def host(*, with_mcp: bool = True) -> PluginHost:
    # Whatever is installed here: only the one of this test.
    made = PluginHost(Settings(allow=frozenset({"jackfield-skills", "mcp@code"})))
    if with_mcp:
        made.register(sys.modules[__name__], name="mcp")
    return made


def tools(root: Path, *, with_mcp: bool = True, **more: Any) -> set[str]:
    entry = {"name": "skills", "folders": [str(root)], **more}
    return set(FnCallAgent([entry], ScriptedModel([]), host=host(with_mcp=with_mcp)).function_map)


def write_servers(root: Path, servers: object, **more: object) -> None:
    table = {"$schema": SCHEMA.format("mcp"), "mcpServers": servers, **more}
    (root / "mcp.json").write_text(json.dumps(table))


def test_the_skills_of_a_plugin_are_skills(root: Path) -> None:
    assert tools(root, with_mcp=False) == {"skill"}


def test_a_server_is_handed_on_with_its_paths_in_place(root: Path, tmp_path: Path) -> None:
    write_servers(
        root,
        {
            "local": {
                "type": "stdio",
                "command": "./bin/server",
                "args": ["--data", "${PLUGIN_DATA}/x", "$HOME"],
                "env": {"CONFIG": "${PLUGIN_ROOT}/config.json"},
                "cwd": "${PLUGIN_DATA}/work",
            },
            "remote": {"type": "streamable-http", "url": "https://acme.example/mcp", "headers": {"X-Tenant": "a"}},
        },
    )
    assert tools(root) == {"skill"}
    (servers,) = handed_on
    data = servers["local"]["env"]["PLUGIN_DATA"]
    assert Path(data).parent == tmp_path / "data/jackfield/agent-plugins"
    assert Path(data).is_dir()
    assert servers["local"] == {
        "type": "stdio",
        "command": str(root / "bin/server"),
        "args": ["--data", f"{data}/x", "$HOME"],
        "env": {"CONFIG": f"{root}/config.json", "PLUGIN_ROOT": str(root), "PLUGIN_DATA": data},
        "cwd": f"{data}/work",
    }
    assert servers["remote"] == {
        "type": "streamable-http",
        "url": "https://acme.example/mcp",
        "headers": {"X-Tenant": "a"},
    }


def test_without_the_tool_for_servers_the_error_says_what_to_install(root: Path) -> None:
    write_servers(root, {"local": STDIO})
    says = r"MCP servers \(local\), but .*run: pip install jackfield-mcp\. To ignore the servers, set `mcp: false`"
    with pytest.raises(ConfigError, match=says):
        tools(root, with_mcp=False)
    assert tools(root, with_mcp=False, mcp=False) == {"skill"}


def test_two_servers_of_one_name_are_refused_because_one_would_be_lost(root: Path, tmp_path: Path) -> None:
    write_servers(root, {"local": STDIO})
    other = tmp_path / "other"
    shutil.copytree(root, other)
    (other / "skills/greet").rename(other / "skills/welcome")
    (other / "skills/welcome/SKILL.md").write_text("---\nname: welcome\ndescription: Greets.\n---\nSay hello.\n")
    says = f"two MCP servers are named 'local': {re.escape(f'{root} and {other}')}. Remove one of the folders"
    with pytest.raises(ConfigError, match=says):
        tools(root, folders=[str(root), str(other)])
    assert tools(root, folders=[str(root), str(other)], mcp=False) == {"skill"}


def test_servers_can_be_left_out(root: Path) -> None:
    write_servers(root, {"local": STDIO})
    assert tools(root, mcp=False) == {"skill"}
    assert handed_on == []


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ("text", "must be an object"),
        ({}, "got None"),
        ({"type": "websocket"}, "got 'websocket'"),
        ({"type": "stdio"}, "command must be a string"),
        ({**STDIO, "command": "../bin/x"}, "must be a bare name or a path"),
        ({**STDIO, "command": "/bin/sh"}, "must be a bare name or a path"),
        ({**STDIO, "command": "./../../bin/sh"}, "outside the workspace"),
        ({**STDIO, "command": "./linked"}, "through a link"),
        ({**STDIO, "command": "bin\\x"}, "must be a bare name or a path"),
        ({**STDIO, "command": ""}, "must be a bare name or a path"),
        ({**STDIO, "command": "${KEY}"}, "unsupported variable"),
        ({**STDIO, "url": "https://x.example"}, "field 'url'"),
        ({**STDIO, "args": "x"}, "args must be a list"),
        ({**STDIO, "args": [1]}, "args must be a string"),
        ({**STDIO, "args": ["${OPENAI_API_KEY}"]}, "unsupported variable"),
        ({**STDIO, "env": {"A": "${env:OPENAI_API_KEY}"}}, "unsupported variable"),
        ({**STDIO, "env": {"A": "${${PLUGIN_ROOT}OPENAI_API_KEY}"}}, "unsupported variable"),
        ({**STDIO, "env": {"PLUGIN_ROOT": "x"}}, "must not set the reserved variable PLUGIN_ROOT"),
        ({**STDIO, "env": {"plugin_data": "x"}}, "must not set the reserved variable plugin_data"),
        ({**STDIO, "env": {"A": 1}}, "env must be an object whose values are strings"),
        ({**STDIO, "cwd": "data"}, "must start with ./"),
        ({**STDIO, "cwd": "${PLUGIN_ROOT}-x"}, "must start with ./"),
        ({**STDIO, "cwd": "./../.."}, "outside the workspace"),
        ({**STDIO, "cwd": "${PLUGIN_DATA}/../.."}, "outside the workspace"),
        ({"type": "sse", "url": "https://acme.example", "command": "x"}, "field 'command'"),
        ({"type": "sse", "url": "http://acme.example"}, "must start with https://"),
        ({"type": "sse", "url": "https://u:p@acme.example"}, "must have a host, and no user"),
        ({"type": "sse", "url": "https://@acme.example"}, "must have a host, and no user"),
        ({"type": "sse", "url": "https://acme.example/#a"}, "and no user or fragment"),
        ({"type": "sse", "url": "https:///mcp"}, "must have a host, and no user"),
        ({"type": "sse", "url": "https://${KEY}.acme.example"}, "unsupported variable"),
        (
            {"type": "sse", "url": "https://acme.example", "headers": {"A": "${KEY}"}},
            "unsupported variable",
        ),
        (
            {"type": "sse", "url": "https://acme.example", "headers": {"${KEY}": "A"}},
            "unsupported variable",
        ),
    ],
)
def test_a_server_that_does_not_fit_is_left_out_and_the_others_stay(
    root: Path, caplog: pytest.LogCaptureFixture, server: object, says: str
) -> None:
    (root / "linked").symlink_to("/bin/sh")
    write_servers(root, {"bad": server, "good": STDIO})
    with caplog.at_level(logging.WARNING):
        tools(root)
    assert [list(one) for one in handed_on] == [["good"]]
    assert says in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        json.dumps({"$schema": SCHEMA.format("mcp")}),
        json.dumps({"mcpServers": {"a": STDIO}}),
        json.dumps({"$schema": SCHEMA.format("mcp").replace("1.0.0", "1.1.0"), "mcpServers": {"a": STDIO}}),
        json.dumps({"$schema": SCHEMA.format("plugin"), "mcpServers": {"a": STDIO}}),
    ],
)
def test_servers_that_cannot_be_read_are_left_out_and_the_skills_stay(
    root: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    (root / "mcp.json").write_text(content)
    with caplog.at_level(logging.WARNING):
        assert tools(root) == {"skill"}
    assert handed_on == []
    assert "skipping the MCP servers of my-plugin" in caplog.text


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ("{", "cannot be used"),
        ("[]", "must be an object"),
        (json.dumps({"name": "x"}), "$schema must be an Agent Plugins 1.x schema"),
        (json.dumps({"$schema": SCHEMA.format("plugin").replace("1.0.0", "2.0.0"), "name": "x"}), "$schema must be"),
        (json.dumps({"$schema": SCHEMA.format("plugin")}), "None is not a valid name"),
        (json.dumps({"$schema": SCHEMA.format("plugin"), "name": "a..b"}), "'a..b' is not a valid name"),
        (json.dumps({"$schema": SCHEMA.format("plugin"), "name": "A"}), "'A' is not a valid name"),
        (json.dumps({"$schema": SCHEMA.format("plugin"), "name": "a b"}), "'a b' is not a valid name"),
    ],
)
def test_a_manifest_that_does_not_fit_is_an_error(root: Path, manifest: str, says: str) -> None:
    (root / "plugin.json").write_text(manifest)
    with pytest.raises(ConfigError) as caught:
        tools(root)
    assert says in str(caught.value)


def test_a_plugin_without_skills_has_its_servers(root: Path) -> None:
    (root / "skills/greet/SKILL.md").unlink()
    (root / "skills/greet").rmdir()
    (root / "skills").rmdir()
    write_servers(root, {"local": STDIO})
    assert tools(root) == set()
    assert len(handed_on) == 1


def test_a_server_starts_in_the_folder_of_its_plugin_unless_it_says_otherwise(root: Path) -> None:
    write_servers(root, {"one": STDIO, **{f"{number}": {**STDIO, "cwd": cwd} for number, cwd in enumerate(CWDS)}})
    tools(root)
    (servers,) = handed_on
    data = Path(servers["one"]["env"]["PLUGIN_DATA"])
    assert servers["one"] == {
        "type": "stdio", "command": "server", "args": [], "cwd": str(root),
        "env": {"PLUGIN_ROOT": str(root), "PLUGIN_DATA": str(data)},
    }  # fmt: skip
    assert [servers[f"{number}"]["cwd"] for number in range(3)] == [str(root / "a"), str(root / "b"), str(data)]


CWDS = ("./a", "${PLUGIN_ROOT}/b", "${PLUGIN_DATA}")


@pytest.mark.parametrize("url", ["http://localhost:1/mcp", "http://127.0.0.1/mcp", "http://[::1]:1/mcp"])
def test_a_server_of_this_machine_needs_no_tls(root: Path, url: str) -> None:
    write_servers(root, {"own": {"type": "sse", "url": url}})
    tools(root)
    assert handed_on == [{"own": {"type": "sse", "url": url, "headers": {}}}]


def test_plugins_of_one_name_keep_their_data_apart(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_servers(root, {"local": STDIO})
    shutil.copytree(root, tmp_path / "other")
    (tmp_path / "link").symlink_to(root)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME")
    for folder in (root, tmp_path / "other"):
        tools(folder)
    monkeypatch.setenv("XDG_DATA_HOME", "")
    tools(tmp_path / "link")
    first, other, again = (Path(one["local"]["env"]["PLUGIN_DATA"]) for one in handed_on)
    assert first == again != other
    assert {one.parent for one in (first, other)} == {tmp_path / "home/.local/share/jackfield/agent-plugins"}
    assert first.name.startswith("my-plugin-")


def test_servers_of_a_folder_that_nobody_named_are_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_servers(root, {"local": STDIO})
    monkeypatch.setattr(toolset, "_of_project", lambda _: root)
    assert set(FnCallAgent(["skills"], ScriptedModel([]), host=host()).function_map) == {"skill"}
    assert handed_on == []
