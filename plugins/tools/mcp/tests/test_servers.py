"""The configuration of servers, as Qwen-Agent, Claude, VS Code and others write it."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import FnCallAgent, create_agent
from jackfield.errors import ConfigError
from jackfield.plugins import known_components
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import BaseTool
from jackfield_mcp import listing, wire
from jackfield_mcp import tools as tools_module
from jackfield_mcp.expanding import Variables
from jackfield_mcp.listing import Definition, Keeper, Listing, read_pages, sound
from jackfield_mcp.plugin import toolsets
from jackfield_mcp.servers import ServerConfig, parse_servers, read_file
from jackfield_mcp.tools import MCPTool, name_of
from jackfield_mcp.toolset import MCPServers

from .conftest import BAD, tools_of

RANDOM = "x9Kq2mVt7Rz4Lp8WbN3sYd6F"


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
    assert "'autoApprove' is a setting for other programs" in caplog.text
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
        ({}, "missing 'mcpServers'"),
        ({"mcpServers": []}, "'mcpServers' must be a dict that maps server names to settings"),
        ({"mcpServers": {"x": "npx"}}, "'x' must be a dict"),
        ({"mcpServers": {"x": {}}}, "'x'.*specify either 'command' to start the server or 'url'"),
        ({"mcpServers": {"x": {"command": "c", "url": "https://e.com"}}}, "'x'.*specify either 'command'"),
        ({"mcpServers": {"x": {"command": "c", "args": "a"}}}, "'x'.*args"),
        ({"mcpServers": {"x": {"command": "c", "comand": "d"}}}, "'x'.*unknown setting 'comand'"),
        ({"mcpServers": {"x": {"url": "ftp://e.com"}}}, "'x'.*must start with https://"),
        ({"mcpServers": {"x": {"url": "https://e.com", "type": "carrier pigeon"}}}, "'carrier pigeon' is not a valid"),
        ({"mcpServers": {"x": {"url": "https://e.com", "type": "stdio"}}}, "'stdio' requires 'command', not 'url'"),
        ({"mcpServers": {"x": {"command": "c", "type": "sse"}}}, "'sse' requires 'url', not 'command'"),
        ({"mcpServers": {}, "other": 1}, "unknown setting 'other' next to 'mcpServers'"),
        (
            {"mcpServers": {"x": {"url": "https://e.com", "oauth": {"grant": "client_credentials"}}}},
            "'client_id', 'client_secret' and",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_server(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        parse_servers(given)
    assert "invalid MCP configuration: " in str(error.value) or "MCP server 'x'" in str(error.value)


@pytest.mark.parametrize("text", ["{", "[]", None])
def test_a_file_that_holds_no_servers_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "mcp.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        read_file(file)


def test_a_set_needs_its_servers_in_one_form() -> None:
    for settings in ({}, {"mcpServers": {}, "file": "x"}):
        with pytest.raises(ConfigError, match="one of 'mcpServers', 'servers' and 'file'"):
            MCPServers(settings)


def test_an_agent_with_a_wrong_configuration_is_not_made() -> None:
    with pytest.raises(ConfigError, match=r"MCP server 'x': .*specify either"):
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


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"X-Key": "Bearer s\u00e9cret-1"}, "the header 'X-Key' contains a non-ASCII character"),
        ({"X-Key": "secret-1\nsecret-2"}, "the header 'X-Key' contains a line break or control character"),
        ({"X-Key": "secret-1\x00"}, "the header 'X-Key' contains a line break or control character"),
        ({"X-K\u00e9y": "secret-1"}, "a header name contains a non-ASCII character"),
    ],
)
def test_a_header_that_http_cannot_carry_is_named_but_not_shown(headers: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=f"headers: {text}.*: copy the value again") as caught:
        one({"url": "https://example.org/mcp", "headers": headers})
    assert "cret" not in str(caught.value)


def test_a_header_loses_the_space_around_it() -> None:
    [server] = parse_servers({"mcpServers": {"x": {"url": "https://a", "headers": {"K": " a\tb\n"}}}}).values()
    assert server.headers == {"K": "a\tb"}


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


def test_the_settings_of_a_server_have_the_defaults_of_the_readme() -> None:
    server = one({"command": "c"})
    assert (server.connect_timeout_s, server.list_timeout_s, server.call_timeout_s) == (60, 30, None)
    assert (server.close_timeout_s, server.sse_read_timeout) == (3, 300)
    assert (server.max_tools, server.max_message_bytes, server.sampling) == (500, 32 * 2**20, None)
    assert (server.resources, server.prompts, server.include, server.exclude) == (True, True, (), ())
    assert (server.transport, server.oauth, server.safety) == ("auto", None, {})


@pytest.mark.parametrize(
    ("include", "exclude", "offered"),
    [
        ([], [], {"read_a", "read_b", "Read_c", "write"}),
        (["read_*"], [], {"read_a", "read_b"}),
        (["read_*", "write"], ["*_a"], {"read_b", "write"}),
        ([], ["read_?"], {"Read_c", "write"}),
        (["read_a"], ["read_a"], set()),
    ],
)
def test_tools_are_offered_by_patterns_of_their_names(
    include: list[str], exclude: list[str], offered: set[str]
) -> None:
    server = one({"command": "c", "include": include, "exclude": exclude})
    assert {name for name in ("read_a", "read_b", "Read_c", "write") if server.offers(name)} == offered


def test_each_kind_of_access_stands_for_itself() -> None:
    secret = {"grant": "client_credentials", "client_secret": "s" * 9, "issuer": "https://i.example"}
    oauths: list[Any] = [
        True, {"client_id": "a"}, {"client_id": "b"}, {"scope": "read"}, {**secret, "client_id": "a"}
    ]  # fmt: skip
    entries = [{"url": "https://e.com", "oauth": oauth} for oauth in oauths]
    assert len({one(entry).identity() for entry in entries}) == len(entries)
    assert one({"url": "https://e.com", "oauth": False}).oauth is None


def test_the_values_of_a_file_come_after_those_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("A=1\n#B=2\n  # C=3\n export D = 'x=y' \nnonsense\nE=\"z\"\n\n")
    entry = {"command": "c", "envFile": str(tmp_path / "env"), "env": {"A": "own"}}
    assert one(entry).env == {"A": "own", "D": "x=y", "E": "z"}
    for bad in (tmp_path / "missing", tmp_path / "binary"):
        (tmp_path / "binary").write_bytes(b"\xff\xfe")
        with pytest.raises(ConfigError, match=r"MCP server 'x': cannot read the envFile '.*'"):
            one({"command": "c", "envFile": str(bad)})


def test_no_value_of_an_environment_is_shown_or_pickled() -> None:
    server = one({"command": "c", "env": {"KEY": "very-secret"}, "headers": {"A": "Bearer very-secret"}})
    for text in (repr(server.env), repr(server), str(server.model_dump()), server.model_dump_json()):
        assert "very-secret" not in text
        assert "KEY" in text
    assert pickle.loads(pickle.dumps(server.env)) == {}


def test_secrets_are_values_and_their_words_but_no_short_ones() -> None:
    oauth = {"grant": "client_credentials", "client_id": "me", "client_secret": "of-oauth", "issuer": "https://i.e"}
    entry = {"url": "https://e.com", "env": {"A": "short", "B": "just-6"}, "headers": {"C": "Bearer of-header"}}
    found = one({**entry, "oauth": oauth}).secrets()
    assert sorted(found) == ["Bearer", "Bearer of-header", "just-6", "of-header", "of-oauth"]
    # The longest goes first: a part of it would leave the rest.
    server = one({"command": "c", "env": {"A": "secret", "B": "secret-and-more"}})
    assert server.without_secrets("secret-and-more, secret") == "…, …"


@pytest.mark.parametrize(
    ("args", "secrets"),
    [
        (["--api-key", "just a text"], {"just a text"}),
        (["--api-key=just-a-text"], {"just-a-text"}),
        (["--name", "just a text"], set()),
        (["--name=plain", "plain"], set()),
        ([RANDOM], {RANDOM}),
        ([f"--to={RANDOM}"], {RANDOM, f"--to={RANDOM}"}),
    ],
)
def test_arguments_that_may_be_keys_are_secrets(args: list[str], secrets: set[str]) -> None:
    _, *found = one({"command": "c", "args": args}).secret_sources()
    assert {source.value for source in found} == secrets  # type: ignore[attr-defined]


# --- more variables ---


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${SET}", "value"),
        ("${env:SET}", "value"),
        ("${SET:-other}", "value"),
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),
        ("${MISSING:-a:-b}", "a:-b"),
        ("${env:MISSING:-}", ""),
        ("a${SET}b${SET}", "avaluebvalue"),
        ("${/}${pathSeparator}", os.sep * 2),
        ("$SET {SET} ${a${SET}}", "$SET {SET} ${avalue}"),
    ],
)
def test_each_form_of_a_variable(text: str, expanded: str) -> None:
    variables = Variables(secret={"SET": "value", "EMPTY": ""}.get)
    assert variables.expand_variables(text, "x") == expanded
    assert variables.expand_variables({"a": [text, 1], "b": (text,)}, "x") == {"a": [expanded, 1], "b": [expanded]}


def test_an_input_has_the_value_that_is_given_or_its_default() -> None:
    asked = [{"id": "a", "default": "of a"}, {"id": "b", "description": "the b"}, {"id": "c", "default": 5}]
    variables = Variables(inputs={"b": "given"}, asked=asked)
    assert variables.expand_variables("${input:a} ${input:b}", "x") == "of a given"
    for name, meant in (("c", "'c' has"), ("d", "'d' has")):
        with pytest.raises(ConfigError, match=f"^x: the input {meant} no value"):
            variables.expand_variables(f"${{input:{name}}}", "x")
    assert Variables(inputs={"a": ""}, asked=asked).expand_variables("${input:a}", "x") == ""
    given = {"inputs": asked, "servers": {"x": {"command": "${input:b}"}}, "input_values": {"b": "beside"}}
    assert parse_servers(given, variables=Variables(inputs={"b": "other"}))["x"].command == "beside"


def test_the_folder_of_a_workspace_is_the_working_directory_where_there_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert one({"command": "${workspaceFolder}"}).command == str(tmp_path)


# --- what is kept of a server ---


def definition(name: str, description: str = "d", **more: Any) -> Definition:
    return Definition(name, description, {"type": "object"}, **more)


def test_a_listing_is_kept_as_it_is(tmp_path: Path) -> None:
    tools = (definition("a", hints={"readOnlyHint": True}), definition("b", as_task=True))
    kept = Listing(tools, True, False, {"a": "digest"}, {"tool 'c'": "fault"})
    keeper = Keeper(tmp_path / "new" / "folder")
    keeper.save("i" * 64, kept)
    assert keeper.load("i" * 64) == kept
    assert keeper.load("i" * 40 + "j" * 24) is None, "of another server whose file has the same name"
    assert keeper.load("k" * 64) is None
    swapped = Listing(resources=False, prompts=True)
    keeper.save("i" * 64, swapped)
    assert keeper.load("i" * 64) == swapped


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"tools": [{"name": "a"}]}, {"tools": 5}, {"approved": None}, {"server": "other"}],
    ids=str,
)
def test_a_kept_listing_that_does_not_fit_is_not_used(tmp_path: Path, change: dict[str, Any]) -> None:
    keeper = Keeper(tmp_path)
    keeper.save("i" * 64, Listing((definition("a"),)))
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    assert keeper.load("i" * 64) is None
    file.write_text("{")
    assert keeper.load("i" * 64) is None


def test_a_folder_that_cannot_be_written_to_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    Keeper(tmp_path / "file").save("i" * 64, Listing())
    assert "cannot cache the tool list of an MCP server" in caplog.text


def test_the_folder_of_lists_is_that_of_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert Keeper().folder == tmp_path / ".cache/jackfield/mcp"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert Keeper().folder == tmp_path / "c/jackfield/mcp"
    assert Keeper("~/own").folder == tmp_path / "own"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert Keeper().folder == tmp_path / "relative/jackfield/mcp"


def test_the_first_list_is_approved_and_nothing_that_comes_later() -> None:
    first, changed = definition("a"), definition("a", "e")
    earlier = Listing((first,)).following(None)
    assert earlier.is_approved(first)
    later = Listing((changed, definition("b"))).following(earlier)
    assert not any(later.is_approved(tool) for tool in later.tools)
    assert later.approving(changed).is_approved(changed)
    assert not later.approving(changed).is_approved(definition("b"))
    assert not later.approving(changed).is_approved(first)
    assert later.tool("b") == definition("b")
    assert later.tool("c") is None


@pytest.mark.parametrize(
    "other",
    [
        Definition("b", "d", {}), Definition("a", "e", {}), Definition("a", "d", {"type": "object"}),
        Definition("a", "d", {}, {"readOnlyHint": True}),
    ],
)  # fmt: skip
def test_each_part_of_a_tool_changes_its_digest(other: Definition) -> None:
    assert Definition("a", "d", {}).digest() != other.digest()


def test_a_definition_is_made_sound() -> None:
    made = sound("a", None, {"required": ["x", 5, "y"], "properties": {"y": {"type": "string"}}}, {})
    assert made.description == ""
    assert made.parameters == {
        "type": "object", "required": ["x", "y"], "properties": {"x": {}, "y": {"type": "string"}}
    }  # fmt: skip
    assert sound("a", "x" * 16_001, {}, {}).description == "x" * 16_000
    assert sound("a", "\ud83d", {}, {}).description == "?"
    with pytest.raises(ConfigError):
        sound("a", "", {"properties": {"x": {"type": "wrong"}}}, {})


class Pages:
    """Gives pages, and notes the cursors that it is asked for."""

    def __init__(self, *pages: tuple[list[int], str | None]) -> None:
        self.pages = pages
        self.cursors: list[str | None] = []

    async def __call__(self, cursor: str | None) -> Any:
        self.cursors.append(cursor)
        entries, following = self.pages[min(len(self.cursors), len(self.pages)) - 1]
        return SimpleNamespace(entries=entries, next_cursor=following)


@pytest.mark.parametrize(
    ("pages", "most", "entries", "has_all", "cursors"),
    [
        ([([1], None)], 9, [1], True, [None]),
        ([([1], "a"), ([2], "")], 9, [1, 2], True, [None, "a"]),
        ([([1], "a"), ([2], "b"), ([3], "a")], 9, [1, 2, 3], True, [None, "a", "b"]),
        ([([1, 2], "a"), ([3], None)], 2, [1, 2, 3], True, [None, "a"]),
        ([([1, 2, 3], "a"), ([4], None)], 2, [1, 2, 3], False, [None]),
    ],
    ids=["one", "two", "repeated cursor", "just the most", "more"],
)
def test_pages_are_read_in_order_to_their_end_or_the_limit(
    pages: list[Any], most: int, entries: list[int], has_all: bool, cursors: list[str | None]
) -> None:
    fetch = Pages(*pages)
    found = asyncio.run(read_pages(fetch, lambda page: page.entries, most=most))
    assert (found, fetch.cursors) == ((entries, has_all), cursors)


def test_a_thousand_pages_are_read_at_most() -> None:
    cursors = map(str, itertools.count())

    async def fetch(_: str | None) -> Any:
        return SimpleNamespace(entries=[1], next_cursor=next(cursors))

    assert asyncio.run(read_pages(fetch, lambda page: page.entries, most=10**6)) == ([1] * 1001, False)


# --- the tools of a server ---


def made_of(entry: dict[str, Any], *names: str, **more: Any) -> dict[str, BaseTool]:
    """The tools of a server that lists some, by name."""
    source: Any = SimpleNamespace(name="s", server=one(entry))
    tools = tuple(definition(name) for name in names)
    found = Listing(tools, **{"approved": {tool.name: tool.digest() for tool in tools}, **more})
    return {tool.name: tool for tool in tools_module.tools_of(source, found)}


OF_RESOURCES, OF_PROMPTS = ["s-list_resources", "s-read_resource"], ["s-list_prompts", "s-get_prompt"]


@pytest.mark.parametrize(
    ("entry", "offers", "names"),
    [
        ({}, {}, ["s-a"]),
        ({}, {"resources": True}, ["s-a", *OF_RESOURCES]),
        ({}, {"prompts": True}, ["s-a", *OF_PROMPTS]),
        ({}, {"resources": True, "prompts": True}, ["s-a", *OF_RESOURCES, *OF_PROMPTS]),
        ({"resources": False, "prompts": False}, {"resources": True, "prompts": True}, ["s-a"]),
        ({"exclude": ["a", "get_*"]}, {"prompts": True}, ["s-list_prompts"]),
        ({"include": ["read_resource"]}, {"resources": True, "prompts": True}, ["s-read_resource"]),
    ],
)
def test_a_server_has_tools_for_what_it_offers_and_its_settings_select(
    entry: dict[str, Any], offers: dict[str, Any], names: list[str]
) -> None:
    assert [*made_of({"command": "c", **entry}, "a", **offers)] == names


def test_a_servers_own_tool_of_a_name_goes_before_ours() -> None:
    tools = made_of({"command": "c"}, "list_resources", resources=True)
    assert [*tools] == OF_RESOURCES
    assert isinstance(tools["s-list_resources"], MCPTool)
    assert not isinstance(tools["s-read_resource"], MCPTool)


def test_a_tool_has_the_effects_of_how_its_server_is_reached() -> None:
    started, remote = made_of({"command": "c"}, "a")["s-a"], made_of({"url": "https://e.com"}, "a")["s-a"]
    assert (started.effects, remote.effects) == ({"network", "files", "processes"}, {"network"})


def test_a_tool_has_time_for_its_server_to_start() -> None:
    limits = {"connect_timeout_s": 5, "list_timeout_s": 3, "call_timeout_s": 2}
    assert made_of({"command": "c", **limits}, "a")["s-a"].timeout_s == 11
    assert made_of({"command": "c"}, "a")["s-a"].timeout_s == made_of({"url": "https://e.com"}, "a")["s-a"].timeout_s


def test_only_a_tool_that_is_approved_as_it_is_needs_no_approval() -> None:
    tools = made_of({"command": "c"}, "a", "b", approved={"a": definition("a").digest(), "b": "another"})
    assert [tools[name].needs_approval for name in ("s-a", "s-b")] == [False, True]
    assert not any(tool.read_only for tool in tools.values()), "the hints of a server are not believed"
    ours = made_of({"command": "c"}, resources=True, prompts=True)
    assert all(tool.read_only and not tool.needs_approval for tool in ours.values())


@pytest.mark.parametrize(
    ("count", "has_all", "end"),
    [
        (0, True, "none"),
        (500, True, "499"),
        (501, True, "… and 1 more"),
        (501, False, "… and more, not listed"),
        (0, False, "… and more, not listed"),
    ],
)
def test_a_list_for_a_model_says_what_it_leaves_out(count: int, has_all: bool, end: str) -> None:
    result = tools_module._listing([str(number) for number in range(count)], has_all, "none", "s")
    lines = str(result.content).splitlines()
    assert lines[-1] == end
    assert len([line for line in lines if line.isdecimal()]) == min(count, 500)
    assert result.metadata == {"server": "s"}


@pytest.mark.parametrize("long", ["resources", "templates", "neither"])
def test_resources_and_templates_are_listed_together_and_either_may_be_too_long(long: str) -> None:
    async def page(kind: str, cursor: str | None) -> Any:
        count = 501 if kind == long else 1
        entries = [
            SimpleNamespace(uri=kind, uri_template=kind, title=None, name=str(number), mime_type=None)
            for number in range(count)
        ]
        next_cursor = "more" if kind == long else None
        return SimpleNamespace(resources=entries, resource_templates=entries, next_cursor=next_cursor)

    client = SimpleNamespace(
        list_resources=lambda cursor: page("resources", cursor),
        list_resource_templates=lambda cursor: page("templates", cursor),
    )

    class OneSession:
        name = "s"

        async def do(self, work: Any, **options: Any) -> Any:
            assert options["again"], "a list may be read twice"
            return await work(SimpleNamespace(client=client))

    source: Any = SimpleNamespace(name="s", server=ServerConfig(command="c"))
    made: Any = tools_module.ListResources("s-list_resources", source)
    lines = str(asyncio.run(made._call_server(OneSession(), {}, None)).content).splitlines()
    assert lines[0] == "resources: 0"
    assert (lines[-1] == "… and more, not listed") is (long != "neither")
    if long == "neither":
        assert lines == ["resources: 0", "templates: 0"]


def test_resources_and_prompts_are_a_line_each() -> None:
    resource: Any = SimpleNamespace(uri="a://b", title=None, name="b", mime_type=None)
    assert tools_module._line("a://b", resource) == "a://b: b"
    titled: Any = SimpleNamespace(title="B", name="b", mime_type="text/plain")
    assert tools_module._line("a://b", titled) == "a://b: B (text/plain)"
    arguments = [SimpleNamespace(name="x", required=True), SimpleNamespace(name="y", required=None)]
    prompt: Any = SimpleNamespace(name="p", description="Does.", arguments=arguments)
    assert tools_module._prompt_line(prompt) == "p: Does. [arguments: x, y (optional)]"
    bare: Any = SimpleNamespace(name="p", description=None, arguments=None)
    assert tools_module._prompt_line(bare) == "p"


def test_the_descriptor_states_the_effects_of_any_server() -> None:
    (spec,) = toolsets()
    assert spec.effects == {"files", "network", "processes"}


def test_as_many_entries_of_a_list_are_read_as_the_log_says() -> None:
    assert (listing._MOST_ENTRIES, listing._MOST_PAGES, wire._MOST_ENTRIES) == (10_000, 1_000, 10_000)
