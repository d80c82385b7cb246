"""Calls of agents and tools, with a service whose runs go as each test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, ClientCapabilities, ElicitationCapability, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from jackfield.citations import CITATIONS
from jackfield.events import PluginEvent, RunEvent, ToolFinished, ToolProgress
from jackfield.messages import FunctionCall, Message
from jackfield_mcp_server.tools import AgentTools, DirectTool
from jackfield_serving import NotWaitingError, RunInfo, ToolInfo, WaitingCall

MODERN, OLDER = sorted(MODERN_PROTOCOL_VERSIONS)[-1], "2025-06-18"
LOOK = {"look": DirectTool("a", ToolInfo(name="look", description="Look.", parameters={}, read_only=True))}


def run(*waiting: str, phase: str = "", response: tuple[Message, ...] = ()) -> RunInfo:
    """Return a run that waits for the approval of calls of these tools, or has ended."""
    calls = [WaitingCall(call_id=name, call=FunctionCall(name, "{}"), kind="approval") for name in waiting]
    return RunInfo(
        run_id="r", agent="a", session="", owner="", phase=phase or ("waiting" if waiting else "ended"), title="",
        stop_reason="" if waiting else "finished", parent="", began=0.0, changed=0.0, text="Done.", response=response,
        waiting=tuple(calls),
    )  # type: ignore[arg-type] # fmt: skip


class Service:
    """A service with one run, which goes on with each answer."""

    def __init__(self, *parts: tuple[list[Any], Any]) -> None:
        self.agents, self.parts, self.part = {"a": None}, parts, 0
        self.started: Mapping[str, Any] = {}
        self.answers: list[Mapping[str, Any]] = []
        self.cancelled: list[str] = []
        self.is_answered = False

    async def start(self, _agent: str, _messages: Any, **options: Any) -> None:
        self.started = options

    async def attach(self, _run_id: str, *, after: int, owner: str) -> AsyncIterator[tuple[int, RunEvent]]:
        events = [event for some, _ in self.parts[: self.part + 1] for event in some]
        for number, event in enumerate(events, 1):
            if number > after:
                yield number, event if isinstance(event, RunEvent) else RunEvent("r", 1, "a", 0, event)

    async def run(self, _run_id: str, *, owner: str) -> RunInfo:
        found: RunInfo | Exception = self.parts[self.part][1]
        if isinstance(found, Exception):
            raise found
        return found

    async def answer(self, _run_id: str, answers: Mapping[str, Any], *, owner: str) -> None:
        self.answers.append(answers)
        if self.is_answered:
            self.part += len(self.answers) > 1
            raise NotWaitingError("another client was faster")
        self.part += 1

    async def cancel(self, run_id: str, *, owner: str) -> None:
        self.cancelled.append(run_id)


def call(
    service: Service, *, tool: str = "a", asks: bool = False, version: str = OLDER, **more: Any
) -> tuple[Any, list[str]]:
    """Call a tool, and return the result and the progress that was reported."""
    reports: list[str] = []

    async def report_progress(_count: float, *, message: str) -> None:
        reports.append(message)

    session = SimpleNamespace(
        client_capabilities=ClientCapabilities(elicitation=ElicitationCapability() if asks else None),
        can_send_request=True,
        report_progress=report_progress,
    )
    context: Any = SimpleNamespace(session=session, request=None, request_id=1, protocol_version=version)
    params = CallToolRequestParams(name=tool, **{"arguments": {"message": "Hi"}, **more})
    serving: Any = service
    return asyncio.run(AgentTools(serving, LOOK).call_tool(context, params)), reports


def texts(result: Any) -> list[str]:
    return [getattr(block, "text", None) or str(block.uri) for block in result.content]


def result_of(name: str, error: str = "", depth: int = 0, **metadata: Any) -> RunEvent:
    finished = ToolFinished(0, "c", Message("function", "seen", name=name), 0.1, error, metadata)
    return RunEvent("r", 1, "a", depth, finished)


def test_every_call_that_nobody_can_approve_is_noted() -> None:
    service = Service(([], run("pay")), ([], run("send")), ([], run()))
    result, _ = call(service)
    assert texts(result)[0] == "Done."
    assert [name in text for name, text in zip(("pay", "send"), texts(result)[1:], strict=True)] == [True, True]
    assert service.answers == [{"pay": False}, {"send": False}]


@pytest.mark.parametrize(("own", "nested"), [("", "ValueError"), ("ValueError", "")])
def test_a_direct_call_fails_if_the_tool_itself_does(own: str, nested: str) -> None:
    response = (Message("function", "seen", name="look"),)
    events = [result_of("inner", nested, 1), result_of("look", own), result_of("inner", nested, 1)]
    service = Service((events, run(response=response)))
    result, _ = call(service, tool="look", arguments={"conversation": "r0"})
    assert (texts(result), bool(result.is_error)) == (["seen"], bool(own))
    assert service.started["continues"] == "", "its arguments are the tool's own"


def test_sources_and_passages_are_those_of_all_parts_of_a_run() -> None:
    entry = {"mark": "1", "location": "a.pdf", "page": 1, "passage": "low at six", "answer_ranges": []}
    before = [result_of("look", sources=["https://example.org/a"]), PluginEvent("x", {CITATIONS: [entry]})]
    after = [PluginEvent("x", {"sources": ["https://example.org/b"]})]
    result, _ = call(Service((before, run("pay")), (after, run())))
    uris = ["https://example.org/a", "https://example.org/b", "jackfield://runs/r/sources/1"]
    assert texts(result)[1:4] == uris


def test_a_repeated_call_reports_only_what_is_new_but_has_all_sources() -> None:
    service = Service(([result_of("look", sources=["https://example.org/a"]), ToolProgress(0, "c", "old")], run("pay")))
    asked, reports = call(service, asks=True, version=MODERN)
    assert (reports, service.started["takes_questions"]) == (["old"], True)
    assert isinstance(asked, InputRequiredResult)
    service = Service(*service.parts, ([ToolProgress(0, "c", "new")], run()))
    service.part = 1
    result, reports = call(service, asks=True, version=MODERN, request_state=asked.request_state)
    assert (texts(result), reports) == (["Done.", "https://example.org/a"], ["new"])


def test_a_client_without_forms_is_never_asked_for_input() -> None:
    service = Service(([], run("pay")), ([], run()))
    result, _ = call(service, version=MODERN)
    assert (texts(result)[0], service.started["takes_questions"]) == ("Done.", False)


@pytest.mark.parametrize("more", [{}, {"request_state": "r.0"}], ids=["new", "repeated"])
def test_a_call_that_fails_cancels_its_run(more: dict[str, Any]) -> None:
    service = Service(([], ZeroDivisionError("broken")))
    with pytest.raises(MCPError):
        call(service, **more)
    assert len(service.cancelled) == 1
    assert service.cancelled == ["r"] or not more


def test_an_empty_state_is_refused() -> None:
    with pytest.raises(MCPError, match="requestState was not issued by this server"):
        call(Service(([], run())), request_state="")


def test_an_answer_that_came_too_late_twice_leaves_the_run_to_the_other_client() -> None:
    service = Service(([], run("pay")), ([], run()))
    service.is_answered = True
    result, _ = call(service)
    assert texts(result)[0] == "Done."
    assert service.answers == [{"pay": False}] * 2
