"""Runs as a front end sees them that keeps the rules of AG-UI."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from ag_ui.core import Event
from ag_ui_validate.pytest_plugin import assert_valid_agui
from pydantic import BaseModel, TypeAdapter

from jackfield import Agent, FnCallAgent, ToolContext, tool
from jackfield.errors import ContextLengthError, ModelAuthError, RateLimitedError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    StreamReset,
    TextDelta,
)
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolResult
from jackfield_ag_ui.request import Question
from jackfield_ag_ui.runs import Runs, _Following
from jackfield_ag_ui.stream import EventFold
from jackfield_multi_agent.group import GroupChat
from jackfield_multi_agent.user import UserAgent
from jackfield_serve import Tokens, serving_app
from jackfield_serving import NotWaitingError, Serving, ServingLimits
from jackfield_testkit.faces import ServedFace

EVENT: TypeAdapter[Any] = TypeAdapter(Event)
Wire = dict[str, Any]
TOOL = {
    "name": "weather",
    "description": "Tell the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CLOCK = {"name": "clock", "description": "Tell the time.", "parameters": {"type": "object", "properties": {}}}
GATE = threading.Event()
HTTP = httpx.Client(timeout=60)
"""One for all tests: a new one reads certificates first."""


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    return f"paid {amount}"


@tool
def paint(color: str) -> ToolResult:
    """Change the color of the page."""
    return ToolResult(f"It is {color}.", metadata={"ag_ui_state": {"color": color, "a/b": 1}})


@tool
def wait_for_gate(context: ToolContext) -> str:
    """Wait."""
    context.report("waiting")
    GATE.wait(60)
    return "waited"


@tool
def break_down() -> str:
    """Fail."""
    raise OSError("no such device")


def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:  # noqa: C901 - one case for each question
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}", reasoning="Now I know.")
    match text.split()[0]:
        case "weather":
            return calls(("weather", {"city": "Bonn"}), ("weather", {"city": "Köln"}), text="I look.")
        case "clock":
            return calls(("clock", {}))
        case "pay":
            return calls(("pay", {"amount": 3}))
        case "ponder":
            return [ReasoningDelta("Hm."), *calls(("weather", {"city": "Bonn"}))]
        case "both":
            return calls(("pay", {"amount": 3}), ("weather", {"city": "Bonn"}))
        case "errand":
            return calls(("clerk", {"request": "Hi"}), ("weather", {"city": "Bonn"}))
        case "paint":
            return calls(("paint", {"color": "red"}))
        case "wait":
            return calls(("wait_for_gate", {}), text="I wait.")
        case "delegate":
            return calls(("clerk", {"request": text.partition(" ")[2]}), text="I ask the clerk.")
        case "broken":
            return calls(("break_down", {}))
        case "withdrawn":
            return [
                ReasoningDelta("Hm"), TextDelta("half an ans"), FunctionCallDelta(0, "c1", "pa"),
                StreamReset("the line broke"), ReasoningDelta("Hm again."), TextDelta("I pay."),
                FunctionCallDelta(0, "c1", "pay", '{"amount":'), FunctionCallDelta(0, arguments=" 3}"),
                ModelFinished("tool_calls"),
            ]  # fmt: skip
        case "picture":
            return [
                TextDelta("See:"),
                MediaDelta(ContentItem(image="data:image/png;base64,AA==")),
                ModelFinished("stop"),
            ]
        case "key":
            return [TextDelta("half"), ModelAuthError("the key sk-secret is not valid")]
        case "long":
            return [ContextLengthError("the context has room for 10 tokens")]
        case "busy":
            return [RateLimitedError("too many requests")]
        case "system":
            return answer(request.messages[0].get_text_content())
        case "count":
            return answer(str(len(request.messages)))
    return answer(f"You said: {text}", reasoning="Let me think. 🙂")


def make_agent() -> FnCallAgent:
    clerk = FnCallAgent([pay, break_down], llm=ScriptedModel(script), name="clerk", description="Does errands.")
    tools: list[Any] = [pay, paint, wait_for_gate, break_down, clerk.as_tool()]
    return FnCallAgent(tools, llm=ScriptedModel(script), name="helper", system_message="Be secret.")


@pytest.fixture(scope="module")
def served() -> Iterator[ServedFace]:
    with ServedFace(serving_app({"helper": make_agent(), "other": make_agent()}, faces=["ag-ui"])) as face:
        yield face


@pytest.fixture
def client(served: ServedFace) -> Iterator[Client]:
    GATE.clear()
    yield Client(served.url)
    GATE.set()


class Client:
    """A front end: it keeps messages and state as AG-UI says, and sends them with each run."""

    def __init__(self, url: str, thread: str | None = None, *, token: str = "") -> None:
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        self.url, self.thread, self.agent = url, thread or uuid.uuid4().hex, "helper"
        self.messages: list[Wire] = []
        self.state: Any = {}
        self.events: list[Wire] = []

    def ask(self, text: str, **more: Any) -> list[Wire]:
        self.messages.append({"id": uuid.uuid4().hex, "role": "user", "content": text})
        return self.run(**more)

    def run(self, path: str = "", **more: Any) -> list[Wire]:
        reply = HTTP.post(f"{self.url}/ag-ui/{self.agent}{path}", json=self.body(**more), headers=self.headers)
        assert reply.status_code == 200, reply.text
        self.events = read_events(reply.text)
        for event in self.events:
            self.apply(event)
        return self.events

    def body(self, **more: Any) -> Wire:
        messages = [message for message in self.messages if message["role"] != "activity"]
        return {"threadId": self.thread, "runId": uuid.uuid4().hex, "protocolVersion": "1.0", "messages": messages,
                "tools": [], "context": [], "state": self.state, "forwardedProps": {}, **more}  # fmt: skip

    def refused(self, path: str = "", **more: Any) -> tuple[int, Wire]:
        reply = HTTP.post(f"{self.url}/ag-ui/{self.agent}{path}", json=self.body(**more), headers=self.headers)
        EVENT.validate_python(reply.json())
        return reply.status_code, reply.json()

    def result(self, call_id: str, content: Any) -> None:
        self.messages.append({"id": uuid.uuid4().hex, "role": "tool", "toolCallId": call_id, "content": content})

    @property
    def outcome(self) -> Wire:
        end = self.events[-1]
        assert end["type"] == "RUN_FINISHED", end
        result: Wire = end["outcome"]
        return result

    @property
    def text(self) -> str:
        return str(next(one for one in reversed(self.messages) if one["role"] == "assistant").get("content"))

    def approve(self, *, approved: bool = True, **more: Any) -> list[Wire]:
        payload = {"approved": approved}
        return self.run(
            resume=[
                {"interruptId": one["id"], "status": "resolved", "payload": payload}
                for one in self.outcome["interrupts"]
            ],
            **more,
        )

    def apply(self, event: Wire) -> None:  # noqa: C901 - one case for each event
        found = next((one for one in self.messages if one["id"] == event.get("messageId")), None)
        owner = {"subagentRunId": event["subagentRunId"]} if "subagentRunId" in event else {}
        match event["type"]:
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" if found is None:
                self.messages.append({"id": event["messageId"], "role": event["role"], "content": "", **owner})
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                assert found is not None
                found["content"] = found.get("content", "") + event["delta"]
            case "TOOL_CALL_START":
                parent = next((one for one in self.messages if one["id"] == event["parentMessageId"]), None)
                if parent is None:
                    parent = {"id": event["parentMessageId"], "role": "assistant", **owner}
                    self.messages.append(parent)
                function = {"name": event["toolCallName"], "arguments": ""}
                call = {"id": event["toolCallId"], "type": "function", "function": function}
                parent.setdefault("toolCalls", []).append(call)
            case "TOOL_CALL_ARGS":
                self.call(event["toolCallId"])["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                result = {"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"]}
                error = {"error": event["metadata"]["error"]} if "metadata" in event else {}
                self.messages.append({**result, "content": event["content"], **error, **owner})
            case "MESSAGES_SNAPSHOT":
                self.messages = json.loads(json.dumps(event["messages"]))
            case "STATE_SNAPSHOT":
                self.state = event["snapshot"]
            case "STATE_DELTA":
                for change in event["delta"]:
                    key = change["path"].removeprefix("/").replace("~1", "/").replace("~0", "~")
                    self.state = {**self.state, key: change["value"]}

    def call(self, call_id: str) -> Wire:
        calls_made: list[Wire] = [call for one in self.messages for call in one.get("toolCalls", ())]
        return next(call for call in calls_made if call["id"] == call_id)


def read_events(text: str) -> list[Wire]:
    """Read events strictly: every one is as the protocol's models say, and they are in a valid order."""
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    for event in events:
        model = EVENT.validate_python(event)
        check_known(model)
        assert json.loads(model.model_dump_json(by_alias=True)) == event
    assert_valid_agui(events, max_warnings=0)
    return events


def check_known(value: object) -> None:
    """Fail if a model has a field that the protocol does not know."""
    if isinstance(value, BaseModel):
        assert not value.model_extra, value
        for name in type(value).model_fields:
            check_known(getattr(value, name))
    elif isinstance(value, list):
        for part in value:
            check_known(part)


def types(events: Sequence[Wire]) -> list[str]:
    """The types of the events; a text that comes in pieces counts once."""
    kinds = [event["type"] for event in events]
    return [kind for index, kind in enumerate(kinds) if kinds[index - 1 : index] != [kind]]


# --- texts, calls and agents ---

QUESTIONS = (
    "Hi",
    "weather please",
    "pay please",
    "both please",
    "paint it",
    "delegate Hi",
    "delegate broken",
    "broken",
    "withdrawn",
    "picture",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_viewer_that_comes_late_sees_what_one_saw_that_watched(client: Client, question: str) -> None:
    client.ask(question, tools=[TOOL])
    late = Client(client.url, client.thread)
    late.run("/connect")
    assert late.state == client.state
    assert late.messages == client.messages
    assert late.outcome == client.outcome
    assert late.events[1]["type"] == "MESSAGES_SNAPSHOT"


def test_text_and_reasoning_are_streamed_as_messages(client: Client) -> None:
    events = client.ask("Hi", parentRunId="p")
    assert (events[0]["threadId"], events[0]["parentRunId"]) == (client.thread, "p")
    assert types(events) == [
        "RUN_STARTED", "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END", "REASONING_END", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]  # fmt: skip
    assert [one["content"] for one in client.messages[1:]] == ["Let me think. 🙂", "You said: Hi"]
    assert events[0]["protocolVersion"] == "1.0"
    assert client.outcome == {"type": "success"}
    assert events[-1]["usage"][0]["totalTokens"] == 2


def test_the_conversation_is_what_the_client_sends(client: Client) -> None:
    client.ask("Hi")
    client.messages.append({"id": "a1", "role": "activity", "activityType": "PLAN", "content": {}})
    client.messages.append({"id": "s1", "role": "assistant", "content": "from below", "subagentRunId": "x"})
    client.ask("count")
    assert client.text == "5"  # the system message, the question, two answers, and this one


def test_calls_of_the_agents_own_tools_are_shown_with_their_results(client: Client) -> None:
    client.ask("broken")
    (call,) = client.messages[1]["toolCalls"]
    assert call["function"] == {"name": "break_down", "arguments": "{}"}
    assert client.messages[2]["toolCallId"] == call["id"]
    assert client.messages[2]["error"]


def test_a_nested_agent_is_shown_below_its_call(client: Client) -> None:
    events = client.ask("delegate Hi")
    (started,) = [event for event in events if event["type"] == "SUBAGENT_STARTED"]
    (call,) = [call for one in client.messages for call in one.get("toolCalls", ())]
    assert (started["name"], started["parentToolCallId"]) == ("clerk", call["id"])
    nested = [one["content"] for one in client.messages if one.get("subagentRunId") == started["subagentRunId"]]
    assert nested[-1] == "You said: Hi"
    assert client.text == "It says: You said: Hi"


def test_what_was_withdrawn_is_taken_back(client: Client) -> None:
    client.ask("withdrawn")
    assert [one.get("content") for one in client.messages[1:]] == ["Hm again.", "I pay."]
    assert client.messages[-1]["toolCalls"][0]["function"] == {"name": "pay", "arguments": '{"amount": 3}'}
    client.approve()
    assert client.text == "It says: paid 3"


def test_a_picture_of_the_model_is_an_image_in_the_text(client: Client) -> None:
    client.ask("picture")
    assert client.text == "See:![image](data:image/png;base64,AA==)"


# --- state and context ---


def test_a_tool_changes_the_state_and_the_model_reads_it(client: Client) -> None:
    client.ask("paint it")
    assert client.state == {"color": "red", "a/b": 1}
    client.state["size"] = 3
    client.ask("paint it")
    assert client.state == {"color": "red", "a/b": 1, "size": 3}
    assert "STATE_DELTA" in types(client.events)
    client.ask("system", context=[{"description": "The page", "value": "home"}])
    assert "The page:\nhome" in client.text
    assert '"size":3' in client.text


def test_the_agents_own_instructions_are_not_shown(client: Client) -> None:
    client.messages.append({"id": "s", "role": "system", "content": "Be kind."})
    client.ask("Hi")
    late = Client(client.url, client.thread)
    late.run("/connect")
    assert late.messages[0] == {"id": "s", "role": "system", "content": "Be kind."}
    assert "secret" not in json.dumps(late.messages)


@pytest.mark.parametrize(("state", "shown"), [({}, []), ([], [[]]), ({"a": 0}, [{"a": 0}])], ids=["none", "empty", "a"])
def test_a_late_viewer_gets_the_state_if_there_is_one(client: Client, state: Any, shown: list[Any]) -> None:
    client.state = state
    client.ask("Hi")
    late = Client(client.url, client.thread).run("/connect")
    assert [one["snapshot"] for one in late if one["type"] == "STATE_SNAPSHOT"] == shown


# --- interrupts ---


@pytest.mark.parametrize("question", ["pay please", "delegate pay please"])
@pytest.mark.parametrize(("approved", "text"), [(True, "paid 3"), (False, "not")])
def test_an_approval_continues_the_run(client: Client, question: str, approved: bool, text: str) -> None:
    client.ask(question)
    (interrupt,) = client.outcome["interrupts"]
    assert interrupt["reason"] == "tool_call"
    assert client.call(interrupt["toolCallId"])["function"]["arguments"] == '{"amount": 3}'
    client.approve(approved=approved)
    assert text in client.text
    assert client.outcome == {"type": "success"}
    late = Client(client.url, client.thread)
    late.run("/connect")
    assert late.text == client.text


def test_an_interrupt_that_is_abandoned_refuses_the_call(client: Client) -> None:
    client.ask("pay please")
    client.run(resume=[{"interruptId": client.outcome["interrupts"][0]["id"], "status": "cancelled"}])
    assert "paid" not in client.text


def test_the_model_reads_why_a_call_is_refused(client: Client) -> None:
    client.ask("pay please")
    identity = client.outcome["interrupts"][0]["id"]
    payload = {"approved": False, "reason": "too dear"}
    client.run(resume=[{"interruptId": identity, "status": "resolved", "payload": payload}])
    assert "too dear" in client.text


def test_an_approval_is_answered_once(client: Client) -> None:
    client.ask("pay please")
    resume = [
        {"interruptId": one["id"], "status": "resolved", "payload": {"approved": True}}
        for one in client.outcome["interrupts"]
    ]
    assert client.refused("/connect", resume=resume)[0] == 400
    events = client.run(resume=resume)
    assert events[-1]["usage"][0]["totalTokens"] == 2  # of this run alone
    status, error = client.refused(resume=resume)
    assert (status, error["code"]) == (409, "not_waiting")


def test_a_late_viewer_can_answer(client: Client) -> None:
    client.ask("pay please")
    late = Client(client.url, client.thread)
    late.run("/connect")
    late.approve()
    assert late.text == "It says: paid 3"


def test_a_thread_belongs_to_one_agent(client: Client) -> None:
    client.ask("pay please")
    resume = [{"interruptId": client.outcome["interrupts"][0]["id"], "status": "cancelled"}]
    other = Client(client.url, client.thread)
    other.agent = "other"
    refusals = [other.refused("/connect"), other.refused(resume=resume), other.refused()]
    stopped = HTTP.post(f"{client.url}/ag-ui/other/stop", json={"threadId": client.thread})
    assert [(status, error["code"]) for status, error in [*refusals, (stopped.status_code, stopped.json())]] == [
        (404, "not_found"), (409, "not_waiting"), (400, "invalid_request"), (404, "not_found"),
    ]  # fmt: skip
    client.agent = "nobody-of-this-name"
    status, error = client.refused()
    assert (status, error["code"]) == (404, "agent_not_found")
    assert "'nobody-of-this-name'; available: helper, other" in error["message"]


def test_a_conversation_of_instructions_only_is_refused(client: Client) -> None:
    client.messages.append({"id": "s", "role": "system", "content": "Be kind."})
    status, error = client.refused()
    assert (status, "messages must not be empty" in error["message"]) == (400, True)


@pytest.mark.parametrize("question", ["pay please", "both please"])
def test_a_thread_that_waits_for_an_approval_takes_no_other_question(client: Client, question: str) -> None:
    client.ask(question, tools=[TOOL])
    client.messages.append({"id": "x", "role": "user", "content": "Hi"})
    status, error = client.refused()
    assert (status, error["code"]) == (409, "interrupted")
    assert HTTP.post(f"{client.url}/ag-ui/helper/stop", json={"threadId": client.thread}).status_code == 200
    for _ in range(500):
        if HTTP.post(f"{client.url}/ag-ui/helper", json=client.body()).status_code == 200:
            return
        time.sleep(0.02)
    pytest.fail("the thread stays busy")


# --- tools of the front end ---


def test_the_result_of_a_front_end_tool_continues_the_run(client: Client) -> None:
    client.ask("weather please", tools=[TOOL])
    pending = client.outcome["pendingToolCallIds"]
    assert [json.loads(client.call(one)["function"]["arguments"])["city"] for one in pending] == ["Bonn", "Köln"]
    for call_id in pending:
        client.result(call_id, "rain")
    own = [one["id"] for one in client.messages if one["role"] == "tool"]
    events = client.run(tools=[TOOL])
    assert client.text == "It says: rain"
    assert client.messages[-1]["id"].endswith(pending[0].rpartition(".")[2])
    assert "TOOL_CALL_RESULT" not in types(events)
    assert [one["id"] for one in client.messages if one["role"] == "tool"] == own
    assert events[-1]["usage"][0]["totalTokens"] == 2  # of this run alone


def test_every_front_end_tool_is_left_to_the_front_end(client: Client) -> None:
    client.ask("clock please", tools=[TOOL, CLOCK])
    late = Client(client.url, client.thread)
    late.run("/connect")
    [pending] = client.outcome["pendingToolCallIds"]
    assert late.outcome == client.outcome
    client.result(pending, "noon")
    client.run(tools=[TOOL, CLOCK])
    assert client.text == "It says: noon"
    assert client.messages[-1]["id"].endswith(pending.rpartition(".")[2])


@pytest.mark.parametrize(("question", "key"), [("errand please", "subagentRunId"), ("ponder it", "reasoning")])
def test_nested_agents_and_reasoning_do_not_keep_a_run_from_going_on(client: Client, question: str, key: str) -> None:
    client.ask(question, tools=[TOOL])
    assert any(key in message or message["role"] == key for message in client.messages)
    [pending] = client.outcome["pendingToolCallIds"]
    client.result(pending, "rain")
    client.messages[-1]["error"] = "It is wet."
    client.run(tools=[TOOL])
    assert client.text == "It says: rain\nError: It is wet."
    assert client.messages[-1]["id"].endswith(pending.rpartition(".")[2])


def test_a_run_that_another_client_has_answered_leaves_the_results_to_a_new_one(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer_late(*_: Any, **__: Any) -> None:
        raise NotWaitingError("it was answered")

    client.ask("ponder it", tools=[TOOL])
    [pending] = client.outcome["pendingToolCallIds"]
    client.result(pending, "rain")
    monkeypatch.setattr(Serving, "answer", answer_late)
    client.run(tools=[TOOL])
    assert client.text == "It says: rain"
    assert not client.messages[-1]["id"].endswith(pending.rpartition(".")[2])


def test_only_a_result_of_text_continues_a_run(client: Client) -> None:
    client.ask("ponder it", tools=[TOOL])
    [pending] = client.outcome["pendingToolCallIds"]
    client.result(pending, [{"type": "text", "text": "rain"}])
    client.run(tools=[TOOL])
    assert client.text == "It says: rain"
    assert not client.messages[-1]["id"].endswith(pending.rpartition(".")[2])


def test_a_new_question_takes_the_place_of_a_front_end_call(client: Client) -> None:
    client.ask("weather please", tools=[TOOL])
    for call_id in client.outcome["pendingToolCallIds"]:
        client.result(call_id, "rain")
    client.ask("Hi again", tools=[TOOL])
    assert client.text == "You said: Hi again"


@pytest.mark.parametrize(
    "change",
    [{"state": {"a": 1}}, {"context": [{"description": "a", "value": "b"}]}, {"tools": [{**TOOL, "name": "w"}]}],
)
def test_results_with_another_request_begin_a_run_of_their_own(client: Client, change: dict[str, Any]) -> None:
    client.ask("weather please", tools=[TOOL])
    for call_id in client.outcome["pendingToolCallIds"]:
        client.result(call_id, "rain")
    client.run(**{"tools": [TOOL], **change})
    assert client.text == "It says: rain"
    assert not client.messages[-1]["id"].endswith(client.messages[1]["id"].rpartition(".")[2])


def test_results_without_the_state_of_the_run_begin_a_run_of_their_own(client: Client) -> None:
    client.ask("ponder it", tools=[TOOL], state={"a": 1})
    [pending] = client.outcome["pendingToolCallIds"]
    client.result(pending, "rain")
    client.run(tools=[TOOL], state={})
    assert not client.messages[-1]["id"].endswith(pending.rpartition(".")[2])


def test_an_approval_and_a_front_end_tool_are_answered_together_or_one_after_the_other(client: Client) -> None:
    client.ask("both please", tools=[TOOL])
    calls_made = client.messages[-1]["toolCalls"]
    client.approve(tools=[TOOL])
    assert client.outcome["pendingToolCallIds"] == [calls_made[1]["id"]]
    client.result(calls_made[1]["id"], "rain")
    run_id = calls_made[1]["id"].rpartition(".")[2]
    client.run(tools=[TOOL])
    assert client.text == "It says: rain"
    assert client.messages[-1]["id"].endswith(run_id)
    client.ask("both please", tools=[TOOL])
    client.result(client.messages[-1]["toolCalls"][1]["id"], "snow")
    client.approve(tools=[TOOL])
    assert client.text == "It says: snow"


# --- viewers ---


def begin(client: Client, query: str = "") -> None:
    """Ask, and leave once the run waits for the gate."""
    client.messages.append({"id": "w", "role": "user", "content": "wait please"})
    with HTTP.stream("POST", f"{client.url}/ag-ui/helper{query}", json=client.body()) as reply:
        for line in reply.iter_lines():
            if "jackfield.progress" in line:
                return
    pytest.fail("the run did not wait")


def test_a_run_outlives_its_viewer_and_is_seen_again(client: Client) -> None:
    begin(client)
    status, error = client.refused()
    assert (status, error["code"]) == (409, "session_busy")
    late = Client(client.url, client.thread)
    with HTTP.stream("POST", f"{client.url}/ag-ui/helper/connect", json=late.body()) as reply:
        lines = reply.iter_lines()
        shown = []
        for line in lines:
            shown.append(line)
            if "TOOL_CALL_END" in line:
                break
        GATE.set()
        shown += lines
    for event in read_events("\n".join(shown)):
        late.apply(event)
    assert late.messages[0] == {"id": "w", "role": "user", "content": "wait please"}
    assert late.text == "It says: waited"


@pytest.mark.parametrize("cancels", [False, True])
@pytest.mark.parametrize("way", ["setting", "address"])
def test_a_client_that_leaves_ends_a_run_in_each_of_its_parts_or_in_none(
    monkeypatch: pytest.MonkeyPatch, way: str, cancels: bool
) -> None:
    parts: list[bool] = []
    attach = Serving.attach

    def noted(serving: Serving, run_id: str, **options: Any) -> Any:
        parts.extend([options["cancel_on_leave"]] if "cancel_on_leave" in options else [])
        return attach(serving, run_id, **options)

    monkeypatch.setattr(Serving, "attach", noted)
    stated, other = ("cancel", "continue") if cancels else ("continue", "cancel")
    face = {"name": "ag-ui", "on_disconnect": stated if way == "setting" else other}
    with ServedFace(serving_app({"helper": make_agent()}, faces=[face])) as served:
        client = Client(served.url)
        query = "" if way == "setting" else f"?on_disconnect={stated}"
        client.messages.append({"id": "m", "role": "user", "content": "both please"})
        client.run(query, tools=[TOOL])
        resume = [{"interruptId": client.outcome["interrupts"][0]["id"], "status": "cancelled"}]
        client.run(query, tools=[TOOL], resume=resume)
        client.result(client.outcome["pendingToolCallIds"][0], "rain")
        client.run(query, tools=[TOOL])
    assert parts == [cancels] * 3


def test_a_run_that_waits_for_its_turn_is_followed(client: Client) -> None:
    app = serving_app({"helper": make_agent()}, faces=["ag-ui"], limits=ServingLimits(runs=1))
    with ServedFace(app) as served:
        first, second = Client(served.url), Client(served.url)
        begin(first)
        second.messages.append({"id": "m", "role": "user", "content": "Hi"})
        for path in ("", "/connect"):
            url = f"{served.url}/ag-ui/helper{path}"
            with HTTP.stream("POST", url, json=second.body(), timeout=30) as reply:  # less than the other run waits
                assert "RUN_STARTED" in next(reply.iter_lines())
        GATE.set()


@pytest.mark.parametrize("is_internal", [False, True])
def test_an_unexpected_error_is_raised_again_for_the_log(is_internal: bool) -> None:
    error = ZeroDivisionError("sk-secret") if is_internal else NotWaitingError("it was answered")

    async def attach(*_: Any, **__: Any) -> Any:
        raise error
        yield

    async def follow() -> list[str]:
        serving: Any = SimpleNamespace(attach=attach)
        following = _Following(run_id="r", owner="", fold=EventFold("r"))
        pieces = []
        with pytest.raises(ZeroDivisionError) if is_internal else nullcontext():
            async for piece in Runs(serving)._pieces(following, Question(thread="t", run="r")):
                pieces.append(piece.decode())  # noqa: PERF401 - they end with an error
        return pieces

    started, ended = asyncio.run(follow())
    assert "RUN_STARTED" in started
    assert "RUN_ERROR" in ended
    assert "sk-secret" not in ended


@pytest.mark.parametrize("query", ["/stop", "?on_disconnect=cancel"])
def test_a_run_is_cancelled_if_the_client_says_so(client: Client, query: str) -> None:
    begin(client, query if query.startswith("?") else "")
    if query == "/stop":
        stopped = HTTP.post(f"{client.url}/ag-ui/helper/stop", json={"threadId": client.thread})
        assert stopped.json() == {"threadId": client.thread}
    late = Client(client.url, client.thread)
    for _ in range(500):
        if late.run("/connect")[-1].get("outcome") == {"type": "cancelled"}:
            return
        time.sleep(0.02)
    pytest.fail("the run goes on")


# --- errors ---


@pytest.mark.parametrize(
    ("question", "code"),
    [("key", "server_error"), ("long", "context_length_exceeded"), ("busy", "rate_limit_exceeded")],
)
def test_a_run_that_fails_ends_with_an_error_without_secrets(client: Client, question: str, code: str) -> None:
    events = client.ask(question)
    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", code)
    assert "sk-secret" not in json.dumps(events)


def user(**source: str) -> dict[str, Any]:
    """A request with an image."""
    part = {"type": "image", "source": source}
    return {"messages": [{"id": "1", "role": "user", "content": [part]}]}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"foo": 1}, "foo"),
    ({"forwardedProps": {"temperature": 1}}, "forwardedProps"),
    ({"messages": []}, "messages"),
    ({"threadId": ""}, "threadId"),
    ({"threadId": "a\u0000"}, "threadId"),
    ({"runId": "\ud800"}, "runId"),
    ({"threadId": 3}, "threadId"),
    ({"messages": [{"id": "1", "role": "user", "content": "Hi", "foo": 1}]}, "messages.0.foo"),
    ({"messages": [{"id": "1", "role": "king", "content": "Hi"}]}, "messages.0"),
    ({"messages": [{"id": "1", "role": "assistant", "content": "Hi", "encryptedValue": "x"}]}, "encryptedValue"),
    ({"messages": [{"id": "1", "role": "tool", "toolCallId": "x", "content": "Hi"}]}, "messages.0.toolCallId"),
    (user(type="file", value="f"), "source.type"),
    (user(type="url", value="/etc/passwd"), "source.value"),
    (user(type="data", value="?", mimeType="image/png"), "source.value"),
    ({"tools": [{"name": "a b", "description": ""}]}, "a b"),
    ({"tools": [{"name": "pay", "description": ""}]}, "pay"),
    ({"tools": [{"name": "w", "description": "", "parameters": 3}]}, "tools.0.parameters"),
    ({"resume": [{"interruptId": "x", "status": "resolved", "payload": True}]}, "resume"),
    ({"resume": [{"interruptId": "x", "status": "resolved"}]}, "resume.0.payload"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "name"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_not_supported_is_refused_by_its_name(client: Client, change: dict[str, Any], name: str) -> None:
    body = {**client.body(messages=[{"id": "1", "role": "user", "content": "Hi"}]), **change}
    reply = HTTP.post(f"{client.url}/ag-ui/helper", content=json.dumps(body))
    assert reply.status_code in (400, 409), reply.text
    assert name in reply.json()["message"]
    EVENT.validate_python(reply.json())


def test_an_answer_that_does_not_fit_is_refused_and_the_run_waits_on(client: Client) -> None:
    client.ask("pay please")
    identity = client.outcome["interrupts"][0]["id"]
    for payload in (
        True,
        {"approved": "yes"},
        {"approved": True, "editedArgs": {}},
        {"approved": True, "reason": "x"},
        {},
        "yes",
    ):
        status, error = client.refused(resume=[{"interruptId": identity, "status": "resolved", "payload": payload}])
        assert (status, "payload" in error["message"]) == (400, True)
    news = [*client.messages, {"id": "n", "role": "user", "content": "and more"}]
    status, _ = client.refused(
        messages=news, resume=[{"interruptId": identity, "status": "resolved", "payload": {"approved": True}}]
    )
    assert status == 400
    other = Client(client.url)
    status, _ = other.refused(resume=[{"interruptId": identity, "status": "cancelled"}])
    assert status == 409
    client.approve()
    assert client.text == "It says: paid 3"


def test_agents_are_listed_with_their_capabilities(served: ServedFace) -> None:
    from ag_ui.core import AgentCapabilities

    agents = HTTP.get(f"{served.url}/ag-ui").json()["agents"]
    check_known(AgentCapabilities.model_validate(agents["helper"]))


# --- owners ---


def test_owners_have_threads_of_their_own() -> None:
    ada, bob = (f"tests-Zq83bXw4Rk2LpV7Tn-{name}" for name in ("ada", "bob"))
    tokens = Tokens([("ada", ada), ("bob", bob)])
    with ServedFace(serving_app({"helper": make_agent()}, faces=["ag-ui"], tokens=tokens)) as served:
        clients = [Client(served.url, "thread", token=token) for token in (ada, bob)]
        for client, question in zip(clients, ("pay please", "Hi"), strict=True):
            client.ask(question)
        resume = [{"interruptId": clients[0].outcome["interrupts"][0]["id"], "status": "cancelled"}]
        assert clients[1].refused(resume=resume)[0] == 409
        late = Client(served.url, "thread", token=ada)
        late.run("/connect")
        late.approve()
        assert late.text == "It says: paid 3"
        late.ask("both please", tools=[TOOL])
        late.result(late.messages[-1]["toolCalls"][1]["id"], "snow")
        late.approve(tools=[TOOL])
        assert late.text == "It says: snow"
        late = Client(served.url, "thread", token=bob)
        late.run("/connect")
        assert late.text == "You said: Hi"


def test_interrupts_of_two_runs_are_not_answered_together(client: Client, served: ServedFace) -> None:
    other = Client(served.url)
    for one in (client, other):
        one.ask("pay please")
    ids = [one.outcome["interrupts"][0]["id"] for one in (client, other)]
    assert client.refused(resume=[{"interruptId": one, "status": "cancelled"} for one in ids])[0] == 409


# --- agents that yield lists of messages ---


class Lister(Agent):
    """Yields its whole response again and again, as agents of Qwen-Agent do."""

    def _run(self, messages: list[Message], lang: str = "en", **kwargs: Any) -> Iterator[list[Message]]:
        one, two = Message("assistant", "One"), Message("assistant", "Two")
        yield [Message("assistant", "O")]
        yield [one]
        yield [one, Message("assistant", "T")]
        yield [one, two]
        yield [one, Message("assistant", "Other")]


def test_lists_of_messages_grow_and_are_replaced() -> None:
    with ServedFace(serving_app({"helper": Lister(name="lister")}, faces=["ag-ui"])) as served:
        client = Client(served.url)
        events = client.ask("Hi")
        assert [one["content"] for one in client.messages[1:]] == ["One", "Other"]
        assert "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT").startswith("One")
        late = Client(served.url, client.thread)
        late.run("/connect")
        assert [one["content"] for one in late.messages[1:]] == ["One", "Other"]


# --- people ---


def test_a_person_takes_part_in_a_group_chat() -> None:
    ann = FnCallAgent(llm=ScriptedModel(script), name="ann", description="Answers.")
    chat = GroupChat([ann, UserAgent(name="kim", description="A person.")], agent_selection_method="round_robin")
    with ServedFace(serving_app({"helper": chat}, faces=["ag-ui"])) as served:
        client = Client(served.url)
        client.ask("Hello")
        (interrupt,) = client.outcome["interrupts"]
        assert (interrupt["reason"], interrupt["responseSchema"]["type"]) == ("input_required", "string")
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": ""}
        assert client.refused(resume=[entry])[0] == 400
        client.run(resume=[{**entry, "payload": "I am Kim."}])
        assert [one["content"] for one in client.messages if one["role"] == "user"] == ["Hello", "I am Kim."]
        assert client.refused(resume=[{**entry, "payload": "again"}])[0] == 409
        late = Client(served.url, client.thread)
        late.run("/connect")
        assert [one.get("content") for one in late.messages] == [one.get("content") for one in client.messages]
        (interrupt,) = late.outcome["interrupts"]
        late.run(resume=[{"interruptId": interrupt["id"], "status": "cancelled"}])
        assert late.outcome == {"type": "cancelled"}


# --- processes ---


def test_another_process_shows_the_same_messages(tmp_path: Path) -> None:
    store = {"name": "sqlite", "path": str(tmp_path / "runs.db")}
    apps = [serving_app({"helper": make_agent()}, faces=["ag-ui"], store=store) for _ in range(2)]
    with ServedFace(apps[0]) as first, ServedFace(apps[1]) as second:
        for question in QUESTIONS:
            client = Client(first.url)
            client.ask(question, tools=[TOOL])
            late = Client(second.url, client.thread)
            late.run("/connect")
            # The record has neither answers that were withdrawn nor what nested agents said.
            own = [message for message in client.messages if "subagentRunId" not in message]
            assert [message for message in late.messages if "subagentRunId" not in message] == json.loads(
                re.sub(r"r1\.", ".", json.dumps(own))
            )
            if client.outcome["type"] == "interrupt":
                client.url = second.url
                client.approve(tools=[TOOL])
                assert client.outcome["type"] == "success"
