"""Answers, errors and progress in the form of the protocol, for every way in which a run can go."""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamReader
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequestFormParams,
    ElicitResult,
    FormElicitationCapability,
    JSONRPCRequest,
    ResourceLink,
    UrlElicitationCapability,
)

from jackfield import FnCallAgent, tool
from jackfield.errors import ConfigError, RateLimitedError
from jackfield.events import (
    HandedOff,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RetryScheduled,
    RunEvent,
    TextDelta,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.results import Source
from jackfield.servers import Refusal, RequestRefusedError
from jackfield.testing import ScriptedModel
from jackfield_mcp_server.errors import BUSY, error_data, errors_of_protocol
from jackfield_mcp_server.face import McpServer
from jackfield_mcp_server.pipes import open_pipes
from jackfield_mcp_server.progress import Progress
from jackfield_mcp_server.questions import Asker, read_answers, requests_of
from jackfield_mcp_server.results import refused_arguments, result_of, result_of_call
from jackfield_mcp_server.tools import AgentTools, DirectTool, _read_state
from jackfield_serving import RunInfo, Serving, ToolInfo, WaitingCall

PIXEL = "data:image/png;base64,iVBO"
SOUND = "data:audio/wav;base64,UklG"


def run(text: str = "", response: Sequence[Message] = (), **facts: Any) -> RunInfo:
    fields: dict[str, Any] = {
        "run_id": "r1", "agent": "a", "session": "", "owner": "", "phase": "ended", "stop_reason": "finished",
        "title": "", "parent": "", "began": 0.0, "changed": 0.0, "text": text, "response": tuple(response),
    }  # fmt: skip
    return RunInfo(**{**fields, **facts})


def shown(result: Any) -> list[str]:
    """Return the blocks of a result, each as its type and its value."""
    blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    return [f"{one['type']}:{one.get('text') or one.get('uri') or one.get('mimeType', '')}" for one in blocks]


def test_an_answer_has_its_text_then_media_then_sources_then_notes() -> None:
    media = Message("assistant", [ContentItem(text="Low."), ContentItem(image=PIXEL), ContentItem(audio=SOUND)])
    old = Message("assistant", [ContentItem(image="data:image/gif;base64,R0lG")])
    sources = [Source("https://example.org/a"), Source("/srv/secret.pdf"), Source("https://example.org/a")]
    passage = ResourceLink(uri="jackfield://runs/r1/sources/1", name="a.pdf")
    result = result_of(run("Low.", [old, media]), sources, ["A note."], [passage])
    assert shown(result) == [
        "text:Low.", "image:image/png", "audio:audio/wav", "resource_link:https://example.org/a",
        "resource_link:jackfield://runs/r1/sources/1", "text:A note.",
    ]  # fmt: skip
    assert (result.structured_content, bool(result.is_error)) == ({"text": "Low.", "conversation": "r1"}, False)
    assert result.content[1].data == "iVBO"
    assert shown(result_of(run("Low.", [media, Message("function", media.items, name="look")]), [], [])) == [
        "text:Low."
    ]


ENDS: list[tuple[dict[str, Any], list[str], bool]] = [
    ({"stop_reason": "finished"}, ["text:Low.", "text:note"], False),
    ({"stop_reason": "empty_reply", "text": ""}, ["text:note"], False),
    ({"stop_reason": "turn_limit"}, ["text:Low.", "text:note", "text:The run ended early: turn_limit."], True),
    ({"stop_reason": "cancelled"}, ["text:Low.", "text:note", "text:The run ended early: cancelled."], True),
]


@pytest.mark.parametrize(("facts", "blocks", "is_error"), ENDS, ids=str)
def test_a_run_that_did_not_finish_is_an_error_with_what_it_wrote(
    facts: dict[str, Any], blocks: list[str], is_error: bool
) -> None:
    result = result_of(run(**{"text": "Low.", **facts}), [], ["note"])
    assert (shown(result), bool(result.is_error)) == (blocks, is_error)
    assert (result.structured_content is None) == is_error


def test_a_failure_shows_no_internal_text_but_every_note() -> None:
    result = result_of(run("half", error="the key sk-secret", error_kind="ZeroDivisionError"), [], ["note"])
    assert result.is_error
    assert len(result.content) == 2
    assert shown(result)[-1] == "text:note"
    assert "sk-secret" not in "".join(shown(result))
    assert "half" not in "".join(shown(result))


def test_an_answer_without_content_is_an_empty_text_and_surrogates_are_replaced() -> None:
    assert shown(result_of(run(""), [], [])) == ["text:"]
    result = result_of(run("a\ud800b"), [], [])
    assert (shown(result), result.structured_content["text"]) == (["text:a?b"], "a?b")


@pytest.mark.parametrize("is_failed", [False, True])
def test_the_result_of_a_call_is_that_of_the_last_tool_message(is_failed: bool) -> None:
    items = [ContentItem(text="rain"), ContentItem(image=PIXEL), ContentItem(file="/srv/secret.pdf")]
    response = [
        Message("assistant", "", function_call=FunctionCall("weather", "{}")),
        Message("function", "old", name="weather"),
        Message("function", items, name="weather"),
    ]
    result = result_of_call(run("x", response), [Source("http://example.org")], ["note"], is_failed=is_failed)
    assert shown(result) == ["text:rain", "image:image/png", "resource_link:http://example.org", "text:note"]
    assert bool(result.is_error) == is_failed
    failed = result_of_call(run("x", response, error="no", error_kind="E"), [], [], is_failed=False)
    assert (failed.is_error, "text:rain" in shown(failed)) == (True, False)
    early = result_of_call(run("", response[:1], stop_reason="cancelled"), [], [], is_failed=False)
    assert (early.is_error, shown(early)) == (True, ["text:The run ended early: cancelled."])


ARGUMENTS: list[tuple[Mapping[str, Any], str]] = [
    ({"message": "Hi"}, ""),
    ({"message": "Hi", "conversation": "r1"}, ""),
    ({"message": " \n"}, "`message`"),
    ({"message": 1}, "`message`"),
    ({}, "`message`"),
    ({"message": "Hi", "conversation": None}, "`conversation`"),
    ({"message": "Hi", "b": 1, "a": 1}, "'a'"),
]


@pytest.mark.parametrize(("arguments", "name"), ARGUMENTS, ids=str)
def test_arguments_that_do_not_fit_are_refused_by_their_name(arguments: Mapping[str, Any], name: str) -> None:
    reason = refused_arguments(arguments)
    assert bool(reason) == bool(name)
    assert not reason or name in reason[0].text  # type: ignore[union-attr]


CODES: list[tuple[int, str, float | None, int | None, int, dict[str, object]]] = [
    (400, "x", None, None, INVALID_REQUEST, {"code": "x"}),
    (400, "x", None, INVALID_PARAMS, INVALID_PARAMS, {"code": "x"}),
    (400, "invalid_json", None, INVALID_PARAMS, PARSE_ERROR, {"code": "invalid_json"}),
    (429, "busy", 2.6, INVALID_PARAMS, BUSY, {"code": "busy", "retryAfter": 3}),
    (503, "busy", 0.1, None, BUSY, {"code": "busy", "retryAfter": 1}),
    (429, "busy", 0.0, INVALID_PARAMS, BUSY, {"code": "busy", "retryAfter": 1}),
    (499, "y", None, None, INVALID_REQUEST, {"code": "y"}),
    (500, "internal", None, INVALID_PARAMS, INTERNAL_ERROR, {"code": "internal"}),
]


@pytest.mark.parametrize(("status", "code", "retry_after_s", "wanted", "expected", "data"), CODES)
def test_an_error_has_the_code_that_hosts_act_on(
    status: int, code: str, retry_after_s: float | None, wanted: int | None, expected: int, data: dict[str, object]
) -> None:
    error = error_data(Refusal(status=status, code=code, message="no", retry_after_s=retry_after_s), code=wanted)
    assert (error.code, error.message, error.data) == (expected, "no", data)


@pytest.mark.parametrize(
    ("error", "code", "is_logged"),
    [
        (RequestRefusedError("no", status=404, code="z"), INVALID_PARAMS, False),
        (RateLimitedError("full"), BUSY, False),
        (ZeroDivisionError("sk-secret"), INTERNAL_ERROR, True),
        (MCPError(7, "own"), 7, False),
    ],
    ids=str,
)
def test_only_unexpected_errors_are_logged_and_none_shows_its_text(
    error: Exception, code: int, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(MCPError) as caught, errors_of_protocol():
        raise error
    assert caught.value.error.code == code
    assert "sk-secret" not in str(caught.value)
    assert bool(caplog.records) == is_logged


class Session:
    """Takes the reports of one call."""

    def __init__(self) -> None:
        self.reports: list[tuple[float, str]] = []

    async def report_progress(self, progress: float, *, message: str) -> None:
        self.reports.append((progress, message))


def test_progress_names_each_step_and_counts_it() -> None:
    session = Session()
    progress = Progress(session, "served")  # type: ignore[arg-type]
    events: list[tuple[int, Any]] = [
        (0, TurnStarted(1)),
        (0, TextDelta("x" * 999)),
        (0, ReasoningDelta("x")),  # the thousandth character
        (0, TextDelta("x" * 999)),
        (0, TextDelta("x")),
        (0, TextDelta("x" * 999)),
        (0, TurnStarted(2)),
        (0, TextDelta("x" * 999)),  # each turn counts anew
        (0, ToolStarted(0, "c", FunctionCall("look_up", "{}"))),
        (1, TurnStarted(1)),
        (0, RetryScheduled(1, 0.5, "busy")),
        (0, HandedOff("inner", "clerk")),
        (0, ToolProgress(0, "c", "half done")),
        (0, PreparationProgress("parsed", 1, 2)),
        (0, PluginEvent("x", {"note": "a \ud800 note"})),
        (0, PluginEvent("x", {"other": "silent"})),
        (0, PluginEvent("x", {"note": 7})),
    ]

    async def main() -> None:
        for depth, event in events:
            await progress.report(RunEvent("r", 1, "inner", depth, event))

    asyncio.run(main())
    assert [message for _, message in session.reports] == [
        "served thinks", "served writes", "served writes", "served thinks", "served calls look_up", "inner thinks",
        "served tries again", "clerk takes over", "half done", PreparationProgress("parsed", 1, 2).text, "a ? note",
    ]  # fmt: skip
    assert [count for count, _ in session.reports] == list(range(1, 12))


FORM = {"type": "object", "properties": {"size": {"type": "string"}}}


def waiting(kind: Any, arguments: Any = "{}", **more: Any) -> WaitingCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return WaitingCall(call_id="c:1", call=FunctionCall("pay", text), kind=kind, **more)


FORMS: list[tuple[WaitingCall, str, str, str]] = [
    (waiting("approval", {"amount": 3}), "approval:c:1", 'Allow the call pay {"amount": 3}?', "allow"),
    (waiting("approval", agent="cl\nerk"), "approval:c:1", "cl\\nerk wants to call pay {}?", "allow"),
    (
        waiting("approval", in_doubt=True), "approval:c:1",
        "Allow the call pay {}? The call may already have been made.", "allow",
    ),
    (waiting("approval", {"form": FORM}), "approval:c:1", f"Allow the call pay {json.dumps({'form': FORM})}?", "allow"),
    (waiting("approval", "{\n}"), "approval:c:1", "Allow the call pay {\\n}?", "allow"),
    (waiting("question", "no JSON"), "question:c:1", "Allow the call pay no JSON?", "allow"),
    (waiting("question", "[1]"), "question:c:1", "Allow the call pay [1]?", "allow"),
    (waiting("question", {"form": FORM}), "form:c:1", "pay requests these values.", "size"),
    (waiting("question", {"form": FORM, "message": "Which\nsize?"}), "form:c:1", "Which\\nsize?", "size"),
    (waiting("input"), "input:c:1", "The agent is waiting for your message.", "message"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "key", "message", "field"), FORMS, ids=str)
def test_a_question_is_a_form_whose_answer_is_read_by_its_kind(
    call: WaitingCall, key: str, message: str, field: str
) -> None:
    ((name, request),) = requests_of([call]).items()
    form = request.params
    assert isinstance(form, ElicitRequestFormParams)
    assert (name, form.message, list(form.requested_schema["properties"])) == (key, message, [field])


VALUES: list[tuple[str, str, dict[str, Any] | None, Any]] = [
    ("approval", "accept", {"allow": True}, True),
    ("approval", "accept", {"allow": False}, False),
    ("approval", "accept", {"allow": "yes"}, False),
    ("approval", "accept", None, False),
    ("approval", "decline", {"allow": True}, False),
    ("approval", "cancel", {"allow": True}, False),
    ("question", "accept", {"allow": True}, True),
    ("form", "accept", {"size": "L"}, {"size": "L"}),
    ("form", "accept", None, {}),
    ("form", "decline", {"size": "L"}, False),
    ("input", "accept", {"message": "Go on"}, "Go on"),
    ("input", "accept", {"message": 7}, None),
    ("input", "decline", {"message": "Go on"}, None),
]


@pytest.mark.parametrize(("kind", "action", "content", "expected"), VALUES)
def test_only_an_accepted_form_allows_anything(
    kind: str, action: Any, content: dict[str, Any] | None, expected: Any
) -> None:
    answers = read_answers({f"{kind}:c:1": ElicitResult(action=action, content=content)})
    assert answers == ({} if expected is None else {"c:1": expected})


MODES: list[tuple[ElicitationCapability | None, bool]] = [
    (None, False),
    (ElicitationCapability(), True),
    (ElicitationCapability(form=FormElicitationCapability()), True),
    (ElicitationCapability(url=UrlElicitationCapability()), False),
    (ElicitationCapability(form=FormElicitationCapability(), url=UrlElicitationCapability()), True),
]


@pytest.mark.parametrize(("elicitation", "can_ask"), MODES, ids=["none", "unnamed", "form", "url", "both"])
@pytest.mark.parametrize("can_send", [True, False])
def test_only_a_client_that_shows_forms_is_asked(
    elicitation: ElicitationCapability | None, can_ask: bool, can_send: bool
) -> None:
    asked: list[str] = []

    async def elicit_form(message: str, *_: Any) -> ElicitResult:
        asked.append(message)
        return ElicitResult(action="accept", content={"allow": True})

    session = SimpleNamespace(
        client_capabilities=ClientCapabilities(elicitation=elicitation),
        can_send_request=can_send,
        elicit_form=elicit_form,
    )
    context: Any = SimpleNamespace(session=session, request_id=1)
    asker = Asker(context)
    assert asker.can_ask == can_ask
    answers, notes = asyncio.run(asker.ask([waiting("approval")]))
    is_asked = can_ask and can_send
    assert (answers, len(asked), len(notes)) == ({"c:1": is_asked}, is_asked, not is_asked)


# --- lines ---


class Sent:
    """A stream to a client that leaves after the first message."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line)

    async def drain(self) -> None:
        if len(self.lines) > 1:
            raise BrokenPipeError


LINES: list[tuple[bytes, int | None]] = [
    (b" \n", None),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "a"}\n', None),
    (b"no JSON\n", PARSE_ERROR),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "a", "id": 2}\n', PARSE_ERROR),
    (b'{"jsonrpc": "2.0", "id": []}\n', INVALID_REQUEST),
    (b'{"a": "' + b"x" * 3000 + b'"}\n', INVALID_REQUEST),
]


@pytest.mark.parametrize(("line", "code"), LINES, ids=lambda value: str(value)[:40])
def test_each_line_is_a_message_or_an_error_and_the_next_one_is_read(line: bytes, code: int | None) -> None:
    async def main() -> list[Any]:
        reader, sent = StreamReader(limit=1000), Sent()
        reader.feed_data(line + b'{"jsonrpc": "2.0", "id": 2, "method": "b"}\n')
        reader.feed_eof()
        writer: Any = sent
        async with asyncio.timeout(10), open_pipes(reader, writer) as (incoming, outgoing), outgoing:
            methods = [message.message.method async for message in incoming]  # type: ignore[union-attr]
        assert methods == (["a", "b"] if b'"a"}' in line else ["b"])
        return [json.loads(one)["error"]["code"] for one in sent.lines]

    assert asyncio.run(main())[:1] == ([] if code is None else [code])


def test_a_connection_that_breaks_ends_the_messages() -> None:
    async def main() -> None:
        reader = StreamReader()
        reader.set_exception(ConnectionResetError())
        writer: Any = Sent()
        async with asyncio.timeout(10), open_pipes(reader, writer) as (incoming, outgoing), outgoing:
            assert [message async for message in incoming] == []

    asyncio.run(main())


def test_nothing_is_written_to_a_client_that_has_left() -> None:
    async def main() -> int:
        reader, sent = StreamReader(), Sent()
        writer: Any = sent
        async with asyncio.timeout(10), open_pipes(reader, writer) as (incoming, outgoing):
            for _ in range(4):
                await outgoing.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="a")))
            outgoing.close()
            reader.feed_eof()
            assert [message async for message in incoming] == []
        return len(sent.lines)

    assert asyncio.run(main()) == 2


# --- names and states ---


@tool
def look() -> str:
    """Look."""
    return "seen"


def agent(*tools: Any) -> Any:
    return FnCallAgent(list(tools), ScriptedModel([]))


@pytest.mark.parametrize(
    ("names", "tools", "reason"),
    [
        (["a b"], False, "'a b' is not a valid MCP tool name"),
        (["x" * 129], False, "is not a valid MCP tool name"),
        (["look"], True, "an agent and a tool are both named 'look'"),
        (["a", "a__look"], True, "an agent and a tool are both named 'a__look'"),
        (["x" * 128, "a.b_c-D"], False, ""),
        (["a__look"], True, ""),
    ],
    ids=["a space", "long", "its own tool", "another's tool", "valid", "one agent has plain names"],
)
def test_names_of_agents_are_names_of_tools_and_each_names_one(names: list[str], tools: bool, reason: str) -> None:
    serving = Serving({name: agent(look) for name in names})
    face = McpServer({"tools": tools})
    if not reason:
        face.app(serving)
        return
    with pytest.raises(ConfigError, match=reason):
        face.app(serving)


def test_sessions_end_when_the_settings_say_so() -> None:
    face = McpServer({"idle_s": 7})
    face.app(Serving({"a": agent()}))
    assert face._manager is not None
    assert face._manager.session_idle_timeout == 7


@pytest.mark.parametrize("read_only", [False, True])
def test_a_tool_is_offered_with_what_its_agent_says_of_it(read_only: bool) -> None:
    info = ToolInfo(name="look", description="Look.", parameters={"type": "object"}, read_only=read_only)
    serving: Any = SimpleNamespace(agents={})
    nobody: Any = None
    listed = asyncio.run(AgentTools(serving, {"a__look": DirectTool("a", info)}).list_tools(nobody, None))
    [shown_tool] = listed.tools
    assert (shown_tool.name, shown_tool.description) == ("a__look", "Look.")
    assert shown_tool.annotations is not None
    assert shown_tool.annotations.read_only_hint is read_only


@pytest.mark.parametrize("state", ["", "r", "r.", ".7", "r.x", "r.-1", f"r.{'1' * 21}"])
def test_a_state_of_another_server_is_refused(state: str) -> None:
    with pytest.raises(MCPError, match="requestState was not issued by this server"):
        _read_state(state)
    assert _read_state("conv.r.7") == ("conv.r", 7)
