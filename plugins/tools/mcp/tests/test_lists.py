"""A malformed entry of a list costs only itself, and is named with its fault; pages are followed within bounds."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import sync
from jackfield.errors import ToolServiceError
from jackfield.jsonschemas import SchemaChecker, fault_of_schema
from jackfield.tools import _schema
from jackfield_mcp import wire
from jackfield_mcp.listing import Keeper
from jackfield_mcp.toolset import MCPServers
from jackfield_mcp.wire import MOST_LEVELS, TOO_DEEP, Entries, parse_message, repair_body

from .conftest import call, tools_of

INFO = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "lists", "version": "1"}}
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}}
SOUND = {"name": "sound", "inputSchema": {"type": "object", "properties": {}}}
TEMPLATE = {"uriTemplate": "t://{x}", "name": "t"}

# A server on its pipes that asks this process, over HTTP, for the line to answer with.
PIPES = """
import sys, urllib.request
for line in sys.stdin:
    if '"id"' in line:
        with urllib.request.urlopen(urllib.request.Request(sys.argv[1], line.encode())) as answer:
            sys.stdout.buffer.write(answer.read() + b"\\n")
            sys.stdout.buffer.flush()
"""

Answer = Callable[[str, dict[str, Any]], bytes]


def lists(**of: Any) -> Answer:
    """Answers each method with the pages of `of`: a list of entries in JSON, or a function of the cursor."""

    def answer(method: str, params: dict[str, Any]) -> bytes:
        name = method.removesuffix("/list").replace("resources/templates", "templates")
        key = "resourceTemplates" if name == "templates" else name
        page = of.get(name, b"[]")
        entries, cursor = page(params.get("cursor")) if callable(page) else (page, None)
        more = b"" if cursor is None else b', "nextCursor": ' + json.dumps(cursor).encode()
        return b'{"%s": %s%s}' % (key.encode(), entries, more)

    return answer


class Lists(ThreadingHTTPServer):
    """A server whose lists are what a test wants them to be.

    Attributes:
        answer: Answers a method and its parameters with the bytes of a result.
        asked: The methods that were asked for.
        is_stream: Answer with a stream of events.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Answer = lists()
        self.asked: list[str] = []
        self.is_stream = False
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"


class _Handler(BaseHTTPRequestHandler):
    server: Lists

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, own = message["method"], {"initialize": {**INFO, "capabilities": CAPABILITIES}, "ping": {}}
        self.server.asked.append(method)
        if "id" not in message:
            self._reply(202, b"")
        elif method in own:
            self._result(message["id"], json.dumps(own[method]).encode())
        elif method.endswith("/list") or method == "tools/call":
            self._result(message["id"], self.server.answer(method, message.get("params") or {}))
        else:
            error = {"code": -32601, "message": "Method not found"}
            self._reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

    def _result(self, number: int, result: bytes) -> None:
        self._reply(200, b'{"jsonrpc": "2.0", "id": %d, "result": %s}' % (number, result))

    def _reply(self, status: int, content: bytes) -> None:
        if self.server.is_stream and content:
            content = b"event: message\r\ndata: " + content + b"\r\n\r\n"
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if self.server.is_stream else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def listing() -> Iterator[Lists]:
    with Lists() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(params=["stdio", "json", "events"])
def servers(request: pytest.FixtureRequest, listing: Lists, tmp_path: Path) -> Iterator[MCPServers]:
    """The server over each transport."""
    entry: dict[str, Any] = {"url": listing.url, "type": "http"}
    if request.param == "stdio":
        entry = {"command": sys.executable, "args": ["-c", PIPES, listing.url]}
    listing.is_stream = request.param == "events"
    with MCPServers(mcpServers={"s": entry}, cache_folder=str(tmp_path)) as opened:
        yield opened


def deep(levels: int) -> str:
    return '{"type": "object", "properties": {"a": ' * levels + "{}" + "}}" * levels


def with_pattern(pattern: str) -> str:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
    return f'{{"name": "%s", "inputSchema": {json.dumps(schema)}}}'


# Entries of a list as a server sends them, and what is said of each; {} is where its name goes.
MALFORMED = {
    '{"name": "%s", "inputSchema": {"type": "array"}}': "inputSchema",
    '{"name": "%s"}': "inputSchema",
    '{"name": "%s", "inputSchema": 5}': "inputSchema",
    '{"name": "%s", "inputSchema": {"type": "object", "required": 5}}': "required",
    '{"name": "%s", "inputSchema": {"type": "object", "properties": {"a": 5}}}': "properties",
    '{"name": "%s", "inputSchema": {"type": "object"}, "description": ["a"]}': "description",
    '{"name": "%s", "inputSchema": {"type": "object"}, "annotations": "x"}': "annotations",
    '{"name": "%s", "inputSchema": ' + deep(120) + "}": f"nested more than {MOST_LEVELS} levels deep",
    '{"name": "%s", "inputSchema": ' + deep(20_000) + "}": f"nested more than {MOST_LEVELS} levels deep",
    '{"name": "%s", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}': "called as a task",
    with_pattern(r"(?<!b)a"): "pattern",
    with_pattern(r"(a+)\1"): "pattern",
    with_pattern("a{1,1000}{1,1000}"): "pattern",
    '{"inputSchema": {"type": "object"}, "title": "%s"}': "name",
    '{"name": {"%s": 1}, "inputSchema": {"type": "object"}}': "name",
    '["%s"]': "",
    '"%s"': "",
    "null": "",
}


def test_a_malformed_tool_costs_only_itself_and_is_named_with_its_fault(
    servers: MCPServers, listing: Lists, caplog: pytest.LogCaptureFixture
) -> None:
    entries = [text.replace("%s", f"bad_{at}") for at, text in enumerate(MALFORMED)]
    listing.answer = lists(tools=f"[{', '.join([*entries, json.dumps(SOUND)])}]".encode())
    with caplog.at_level(logging.WARNING, "jackfield_mcp"):
        assert list(tools_of(servers)) == ["s-sound"]
    told = [record.getMessage() for record in caplog.records]
    for at, (text, fault) in enumerate(MALFORMED.items()):
        name = f"'bad_{at}'" if '"name": "%s"' in text else f"'{at}'"
        assert any(f"MCP server 's': skipped the tool {name}: " in line and fault in line for line in told), text[:80]
    (part,) = servers.fixed_tools()
    kept = Keeper(servers.config.cache_folder).load(part._identity)  # type: ignore[union-attr]
    assert kept is not None
    assert len(kept.left_out) == len(MALFORMED)
    told.clear()
    assert list(tools_of(MCPServers(servers.config))) == ["s-sound"]  # from what was kept


@pytest.mark.timeout(90)
def test_the_pattern_of_an_output_schema_is_matched_in_bounded_time(
    servers: MCPServers, listing: Lists, caplog: pytest.LogCaptureFixture
) -> None:
    def with_output(name: str, pattern: str) -> dict[str, Any]:
        return {**SOUND, "name": name, "outputSchema": {"properties": {"x": {"pattern": pattern}}}}

    tools = lists(tools=json.dumps([with_output("slow", "^(a+)+$"), with_output("odd", "(?<!b)a")]).encode())
    result = json.dumps({"content": [], "structuredContent": {"x": "a" * 60 + "!"}}).encode()
    listing.answer = lambda method, params: result if method == "tools/call" else tools(method, params)
    with pytest.raises(ToolServiceError, match=r"the result does not match the output schema: .*does not match"):
        call(servers, "s-slow")
    with caplog.at_level(logging.WARNING, "jackfield_mcp"):
        assert call(servers, "s-odd").metadata["structured_content"] == {"x": "a" * 60 + "!"}
    assert any("output schema of tool 'odd'" in text for text in [*caplog.messages, *_left_out(servers)])


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object"}, {"x": "y" * 20_000}),
        ({"properties": {"x": {"pattern": "y+$"}}}, {"x": "y"}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}, {"x": "y"}),
        ({"unevaluatedProperties": {}}, {"x": "y"}),
    ],
    ids=["large", "pattern", "reference", "unevaluated"],
)
def test_the_event_loop_goes_on_while_a_result_is_checked(
    schema: dict[str, Any], value: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = entries_with(schema)
    has_turned = threading.Event()

    def check(_: SchemaChecker, value: object) -> list[str]:
        assert has_turned.wait(20), "the event loop is held up"
        return [repr(value)]

    async def check_beside_another_task() -> list[str]:
        checking = asyncio.ensure_future(entries.misfits_of_output("sound", value))
        for _ in range(10):
            await asyncio.sleep(0)
        has_turned.set()
        return await checking

    monkeypatch.setattr(SchemaChecker, "misfits", check)
    assert asyncio.run(check_beside_another_task()) == [repr(value)]


def test_a_small_result_is_checked_without_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = entries_with({"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]})

    async def no_worker(*_: object) -> None:
        pytest.fail("a thread costs a third as much as the whole call")

    monkeypatch.setattr(sync, "in_worker", no_worker)
    assert asyncio.run(entries.misfits_of_output("sound", {"result": 1})) == []
    assert asyncio.run(entries.misfits_of_output("sound", {"result": "1"})) == ["result: '1' is not of type 'integer'"]


def test_a_tool_that_is_listed_again_has_the_schema_of_the_last_list_only() -> None:
    entries = entries_with({"type": "object", "required": ["a"]})
    for schema, misfits in (({"type": "object", "required": ["b"]}, 1), (None, 0)):
        entries._take_output_schema({**SOUND, "outputSchema": schema} if schema else {**SOUND})
        assert len(asyncio.run(entries.misfits_of_output("sound", {"a": 1}))) == misfits


def entries_with(output_schema: dict[str, Any]) -> Entries:
    entries = Entries()
    entries._take_output_schema({**SOUND, "outputSchema": output_schema})
    entries.check_output_schemas()
    assert not entries.left_out
    return entries


def test_no_schema_of_a_list_is_checked_on_the_event_loop(
    servers: MCPServers, listing: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[object] = []

    def fault_outside_of_loops(schema: Mapping[str, Any], *, ignore_patterns: bool = False) -> str:
        assert asyncio._get_running_loop() is None, "a schema of 10,000 values takes a second"
        checked.append(schema["title"])
        return fault_of_schema(schema, ignore_patterns=ignore_patterns)

    monkeypatch.setattr(_schema, "fault_of_schema", fault_outside_of_loops)
    monkeypatch.setattr(wire, "fault_of_schema", fault_outside_of_loops)
    schemas = {name: {"type": "object", "title": name} for name in ("inputSchema", "outputSchema")}
    listing.answer = lists(tools=json.dumps([{"name": "sound", **schemas}]).encode())
    assert list(tools_of(servers)) == ["s-sound"]
    assert checked == ["inputSchema", "outputSchema"]


def _left_out(servers: MCPServers) -> list[str]:
    (part,) = servers.fixed_tools()
    kept = Keeper(servers.config.cache_folder).load(part._identity)  # type: ignore[union-attr]
    return [*kept.left_out] if kept else []


def test_halves_of_characters_and_duplicates_cost_no_list(
    servers: MCPServers, listing: Lists, caplog: pytest.LogCaptureFixture
) -> None:
    half = rb'{"name": "half", "description": "\ud800", "inputSchema": {"type": "object"}}'
    twice = json.dumps({**SOUND, "description": "another"}).encode()
    listing.answer = lists(tools=b"[%s, %s, %s]" % (half, json.dumps(SOUND).encode(), twice))
    tools = tools_of(servers)
    assert list(tools) == ["s-half", "s-sound"]
    assert tools["s-half"].description == "?"
    assert tools["s-sound"].description == "sound"
    assert "skipped the tool 'sound': another tool has the same name" in caplog.text


def test_a_huge_description_is_cut(servers: MCPServers, listing: Lists) -> None:
    listing.answer = lists(tools=json.dumps([{**SOUND, "description": "x" * 1_000_000}]).encode())
    assert len(str(tools_of(servers)["s-sound"].description)) == 16_000


def test_pages_of_resources_and_prompts_are_followed(servers: MCPServers, listing: Lists) -> None:
    def numbered(form: str) -> Any:
        def page(cursor: str | None) -> tuple[bytes, str | None]:
            number = int(cursor or 0)
            return b"[%s]" % (form % {"n": number}).encode(), str(number + 1) if number < 4 else None

        return page

    resource = '{"uri": "a://%(n)d", "name": "r%(n)d"}, {"uri": 7, "name": "bad"}'
    template = '{"uriTemplate": "t://%(n)d/{x}", "name": "t%(n)d"}'
    listing.answer = lists(
        tools=numbered('{"name": "tool%(n)d", "inputSchema": {"type": "object"}}'),
        resources=numbered(resource),
        templates=numbered(template),
        prompts=numbered('{"name": "p%(n)d"}'),
    )
    assert [name for name in tools_of(servers) if "tool" in name] == [f"s-tool{n}" for n in range(5)]
    resources = [f"a://{n}: r{n}" for n in range(5)] + [f"t://{n}/{{x}}: t{n}" for n in range(5)]
    assert call(servers, "s-list_resources").content.splitlines() == resources
    assert call(servers, "s-list_prompts").content.splitlines() == [f"p{n}" for n in range(5)]


@pytest.mark.parametrize(("cursors", "entries", "asked"), [("same", 1, 2), ("new", 1, 21), ("new", 0, 31)])
def test_endless_pages_end(
    cursors: str, entries: int, asked: int, servers: MCPServers, listing: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_mcp.tools._MOST_LISTED", 20)
    monkeypatch.setattr("jackfield_mcp.listing._MOST_PAGES", 30)

    def page(cursor: str | None) -> tuple[bytes, str]:
        found = b", ".join([b'{"uri": "a://b", "name": "b"}'] * entries)
        return b"[%s]" % found, "1" if cursors == "same" else str(int(cursor or 0) + 1)

    listing.answer = lists(
        tools=json.dumps([SOUND]).encode(), templates=json.dumps([TEMPLATE]).encode(), resources=page
    )
    tools_of(servers)
    listing.asked.clear()
    lines = call(servers, "s-list_resources").content.splitlines()
    assert listing.asked.count("resources/list") == asked
    assert ("… and more, not listed" in lines) is (cursors == "new")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_repaired_body_means_the_same(value: object) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"value": value}}).encode()
    assert json.loads(repair_body(body)) == json.loads(body)


@given(st.integers(0, 400), st.text(alphabet='[]{}"\\a', max_size=5))
def test_what_is_nested_too_deeply_is_cut_off_and_the_rest_is_kept(levels: int, text: str) -> None:
    result = '{"before": %s, "deep": %s1%s, "after": %s}'
    result %= (json.dumps(text), "[" * levels, "]" * levels, json.dumps(text))
    message = parse_message(f'{{"jsonrpc": "2.0", "id": 1, "result": {result}}}'.encode())
    assert message is not None
    value: Any = message.message.result  # type: ignore[union-attr]
    assert (value["before"], value["after"]) == (text, text)
    found = value["deep"]
    while isinstance(found, list):
        (found,) = found
    assert found == 1 if levels < MOST_LEVELS - 2 else found in (1, TOO_DEEP)


def test_the_fault_of_a_whole_list_is_no_entrys() -> None:
    entries = Entries()
    message = parse_message(b'{"jsonrpc": "2.0", "id": 1, "result": {"nextCursor": 5, "tools": [{"name": 1}]}}')
    entries.sift(message)
    assert list(entries.left_out) == ["tool '0'"]
