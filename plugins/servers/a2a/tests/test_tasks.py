"""Tasks as the client of the A2A SDK sees them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import get_artifact_text, new_data_message, new_text_message
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a_lint.validator import validate_card
from google.protobuf.json_format import ParseDict

from jackfield import FnCallAgent, ToolContext, tool
from jackfield.errors import ModelAuthError
from jackfield.events import MediaDelta, ModelEvent, ModelFinished, StreamReset, TextDelta
from jackfield.messages import ContentItem, FunctionCall
from jackfield.request import ChatRequest
from jackfield.servers import Refusal
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_a2a.messages import question_of
from jackfield_a2a.rpc import error_of
from jackfield_multi_agent.group import GroupChat
from jackfield_multi_agent.user import UserAgent
from jackfield_serve import Tokens, serving_app
from jackfield_serving import RunInfo, WaitingCall
from jackfield_testkit.faces import HttpRequest, ServedFace

GATE = threading.Event()
STARTED = threading.Event()
ADA, BOB = "tests-Zq83bXw4Rk2LpV7Tn-ada", "tests-Zq83bXw4Rk2LpV7Tn-bob"
HTTP = httpx.Client(timeout=60)
"""One for all tests: a new one reads certificates first."""


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    return f"paid {amount}"


@tool
def wait_for_gate(context: ToolContext) -> str:
    """Wait."""
    STARTED.set()
    GATE.wait(60)
    return "waited"


def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}")
    match text.split()[0]:
        case "pay":
            return calls(("pay", {"amount": 3}), text="I pay.")
        case "twice":
            return calls(("pay", {"amount": 1}), ("pay", {"amount": 2}))
        case "wait":
            return calls(("wait_for_gate", {}), text="I wait.")
        case "delegate":
            return calls(("clerk", {"request": text.partition(" ")[2]}))
        case "withdrawn":
            return [TextDelta("half an ans"), StreamReset("the line broke"), *answer("The answer.")]
        case "picture":
            picture = ContentItem(image="data:image/png;base64,AA==")
            return [TextDelta("See:"), MediaDelta(picture), ModelFinished("stop")]
        case "key":
            return [TextDelta("half"), ModelAuthError("the key sk-secret is not valid")]
        case "count":
            return answer(str(sum(message.role == "user" for message in request.messages)))
    return answer(f"You said: {text}", reasoning="Let me think.")


def make_app(tokens: Tokens | None = None, store: Any = None) -> Any:
    clerk = FnCallAgent([pay], llm=ScriptedModel(script), name="clerk", description="Does errands.")
    helper = FnCallAgent([pay, wait_for_gate, clerk.as_tool()], llm=ScriptedModel(script), name="helper")
    agents = {"helper": helper, "other": FnCallAgent(llm=ScriptedModel(script), name="other")}
    return serving_app(agents, faces=["a2a"], tokens=tokens, store=store)


@pytest.fixture(scope="module")
def served() -> Iterator[ServedFace]:
    with ServedFace(make_app()) as face:
        yield face


@pytest.fixture(autouse=True)
def gate() -> Iterator[None]:
    GATE.clear()
    STARTED.clear()
    yield
    GATE.set()


class Peer:
    """Another agent, which asks the helper."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def send(self, request: SendMessageRequest | str, **fields: Any) -> list[StreamResponse]:
        if isinstance(request, str):
            request = SendMessageRequest(message=message(request, **fields))
        events = [event async for event in self.client.send_message(request)]
        for event in events:
            check(event)
        return events

    async def ask(self, request: SendMessageRequest | str, **fields: Any) -> Task:
        """Send a message, and return the task at the end."""
        return folded(await self.send(request, **fields))

    async def get(self, task_id: str) -> Task:
        task = await self.client.get_task(GetTaskRequest(id=task_id))
        validate_proto_required_fields(task)
        return task


def message(text: str, **fields: Any) -> Message:
    return new_text_message(text, role=Role.ROLE_USER, **fields)


def check(event: StreamResponse) -> None:
    """Every event says all that A2A requires."""
    validate_proto_required_fields(event)
    assert event.WhichOneof("payload") is not None


def folded(events: Sequence[StreamResponse]) -> Task:
    """Return the task that its updates make."""
    task = Task()
    for event in events:
        match event.WhichOneof("payload"):
            case "task":
                task.CopyFrom(event.task)
            case "status_update":
                task.status.CopyFrom(event.status_update.status)
            case "artifact_update":
                update = event.artifact_update
                assert (update.task_id, update.context_id) == (task.id, task.context_id)
                if not update.append:
                    del task.artifacts[:]
                    task.artifacts.add().CopyFrom(update.artifact)
                    continue
                (artifact,) = task.artifacts
                for part in update.artifact.parts:
                    if part.HasField("text") and artifact.parts[-1].HasField("text"):
                        artifact.parts[-1].text += part.text
                    else:
                        artifact.parts.add().CopyFrom(part)
    return task


def text_of(task: Task) -> str:
    return get_artifact_text(task.artifacts[0]) if task.artifacts else ""


@pytest.mark.parametrize("in_doubt", [True, False])
def test_the_question_says_that_a_call_may_have_been_made(in_doubt: bool) -> None:
    call = WaitingCall(call_id="c1", call=FunctionCall("pay", '{"amount": 3}'), in_doubt=in_doubt)
    text, data = question_of(RunInfo(run_id="r", agent="helper", waiting=(call,)))["parts"]
    assert ("may already have been made" in text["text"], data["data"]["approval"]["inDoubt"]) == (in_doubt, in_doubt)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (429, "busy", -32603),
        (503, "unavailable", -32603),
        (500, "internal", -32603),
        (401, "unauthorized", -32600),
        (409, "not_waiting", -32004),
    ],
)
def test_errors_of_the_server_are_no_errors_of_the_request(status: int, code: str, expected: int) -> None:
    refusal = Refusal(status=status, code=code, message="Wait.", retry_after_s=3.0 if status >= 429 else None)
    error = error_of(refusal, 7)["error"]
    assert (error["code"], error["message"]) == (expected, "Wait.")
    assert error["data"][0]["metadata"].get("retryAfterSeconds") == ("3" if status >= 429 else None)


@asynccontextmanager
async def peer(url: str, *, streaming: bool = True, token: str = "", query: str = "") -> AsyncIterator[Peer]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(timeout=60, headers=headers) as http:
        config = ClientConfig(streaming=streaming, httpx_client=http)
        card = await http.get(f"{url}/a2a/helper/.well-known/agent-card.json")
        described = ParseDict(card.json(), AgentCard(), ignore_unknown_fields=True)
        described.supported_interfaces[0].url += query
        yield Peer(await create_client(described, config))


def run(served: ServedFace, work: Callable[[Peer], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with peer(served.url, **options) as one:
            await work(one)

    asyncio.run(main())


# --- cards ---


def test_the_card_is_valid_and_names_the_address(served: ServedFace) -> None:
    card = HTTP.get(f"{served.url}/a2a/helper/.well-known/agent-card.json").json()
    known = {key: value for key, value in card.items() if key not in ("url", "protocolVersion")}
    described = ParseDict(known, AgentCard())
    validate_proto_required_fields(described)
    assert described.supported_interfaces[0].url == f"{served.url}/a2a/helper"
    assert not [finding for finding in validate_card(card) if finding["level"] == "error"]
    reply = HTTP.get(f"{served.url}/.well-known/agent-card.json")
    assert reply.status_code == 404
    assert "/a2a/helper/.well-known/agent-card.json" in reply.json()["error"]["message"]


def test_the_card_of_the_only_agent_is_at_the_root() -> None:
    agent = FnCallAgent(llm=ScriptedModel(script), name="helper")
    with ServedFace(serving_app({"helper": agent}, faces=["a2a"])) as served:
        assert HTTP.get(f"{served.url}/.well-known/agent-card.json").json()["name"] == "helper"


# --- tasks ---


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Hi", "You said: Hi"),
        ("delegate Hi", "It says: You said: Hi"),
        ("withdrawn", "The answer."),
        ("picture", "See:"),
    ],
)
def test_a_task_is_the_same_streamed_and_whole(served: ServedFace, question: str, text: str, streaming: bool) -> None:
    async def work(one: Peer) -> None:
        task = await one.ask(question)
        assert (task.status.state, text_of(task)) == (TaskState.TASK_STATE_COMPLETED, text)
        kept = await one.get(task.id)
        assert kept.artifacts == task.artifacts
        assert kept.status == task.status
        assert kept.history[0].parts[0].text == question
        if question == "picture":
            assert task.artifacts[0].parts[1].media_type == "image/png"

    run(served, work, streaming=streaming)


def test_a_context_continues_a_conversation(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        first = await one.ask("Hi")
        second = await one.ask("count", context_id=first.context_id)
        assert (second.context_id, text_of(second)) == (first.context_id, "2")
        own = await one.ask("count", context_id=uuid.uuid4().hex)
        assert text_of(own) == "1"

    run(served, work)


def test_messages_have_data_and_media(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        task = await one.ask(SendMessageRequest(message=new_data_message({"a": [1, True]}, role=Role.ROLE_USER)))
        assert '"a"' in text_of(task)

    run(served, work)


def test_a_run_that_fails_is_a_failed_task_without_secrets(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        task = await one.ask("key")
        assert task.status.state == TaskState.TASK_STATE_FAILED
        assert "ModelAuthError" in task.status.message.parts[0].text
        assert "sk-secret" not in str(task)

    run(served, work)


# --- approvals ---


@pytest.mark.parametrize("question", ["pay please", "delegate pay please"])
@pytest.mark.parametrize(("word", "text"), [("Yes.", "paid 3"), ("no", "not")])
def test_an_approval_continues_the_task(served: ServedFace, question: str, word: str, text: str) -> None:
    async def work(one: Peer) -> None:
        asked = await one.ask(question)
        assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert "Answer yes or no" in asked.status.message.parts[0].text
        before = text_of(asked)
        events = await one.send(word, task_id=asked.id)
        task = folded(events)
        assert events[0].task.status.state != TaskState.TASK_STATE_INPUT_REQUIRED
        assert (task.id, task.status.state) == (asked.id, TaskState.TASK_STATE_COMPLETED)
        assert text in text_of(task)
        assert text_of(task).startswith(before)
        assert (await one.get(task.id)).artifacts == task.artifacts
        with pytest.raises(UnsupportedOperationError):
            await one.send("yes", task_id=asked.id)

    run(served, work)


def test_calls_are_decided_one_by_one_and_once(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        asked = await one.ask("twice")
        ids = [part.data.struct_value["approval"]["id"] for part in asked.status.message.parts if part.HasField("data")]

        def decide(identity: str, decision: bool | str | float, task: str = asked.id) -> SendMessageRequest:
            answers = {"approvals": {identity: decision}}
            return SendMessageRequest(message=new_data_message(answers, task_id=task, role=Role.ROLE_USER))

        for wrong in (
            decide("x", True),
            decide(ids[0], 1.5),
            SendMessageRequest(message=message("hm", task_id=asked.id)),
        ):
            with pytest.raises((UnsupportedOperationError, InvalidParamsError)):
                await one.send(wrong)
        again = await one.ask(decide(ids[0], "too dear"))
        assert again.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        with pytest.raises(UnsupportedOperationError):
            await one.send(decide(ids[1], True))  # of the pause before
        task = await one.ask("yes", task_id=asked.id)
        assert text_of(task) == "It says: paid 2"

    run(served, work)


def test_one_of_two_answers_at_once_counts(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        asked = await one.ask("pay please")
        answers = [one.ask("yes", task_id=asked.id) for _ in range(2)]
        results = await asyncio.gather(*answers, return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["Task", "UnsupportedOperationError"]

    run(served, work)


# --- viewers ---


def begin(served: ServedFace, query: str = "") -> str:
    """Start a task that waits, leave its stream, and return its id."""
    body = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": "wait please"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": body}}
    with HTTP.stream("POST", f"{served.url}/a2a/helper{query}", json=call, headers={"a2a-version": "1.0"}) as reply:
        lines = reply.iter_lines()  # with it, the connection would be closed
        line = next(line for line in lines if line.startswith("data: "))
        assert STARTED.wait(60)
        return str(json.loads(line[6:])["result"]["task"]["id"])


def test_a_task_outlives_its_viewer_and_is_seen_again(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        task_id = begin(served)
        assert (await one.get(task_id)).status.state == TaskState.TASK_STATE_WORKING
        with pytest.raises(UnsupportedOperationError):
            await one.send("and?", task_id=task_id)
        viewer = one.client.subscribe(SubscribeToTaskRequest(id=task_id))
        await anext(viewer)
        await viewer.aclose()
        await asyncio.sleep(0.2)
        assert (await one.get(task_id)).status.state == TaskState.TASK_STATE_WORKING
        events = []
        async for event in one.client.subscribe(SubscribeToTaskRequest(id=task_id)):
            check(event)
            events.append(event)
            GATE.set()
        task = folded(events)
        assert text_of(task) == "I wait.\n\nIt says: waited"
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        with pytest.raises(UnsupportedOperationError):
            [event async for event in one.client.subscribe(SubscribeToTaskRequest(id=task_id))]

    run(served, work)


def test_a_task_can_be_cancelled_once(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        for question in ("wait", "pay please"):
            task_id = begin(served) if question == "wait" else (await one.ask(question)).id
            task = await one.client.cancel_task(CancelTaskRequest(id=task_id))
            assert task.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(TaskNotCancelableError):
                await one.client.cancel_task(CancelTaskRequest(id=task_id))

    run(served, work)


def test_a_client_that_leaves_ends_its_task_if_it_says_so(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        task_id = begin(served, "?on_disconnect=cancel")
        for _ in range(500):
            if (await one.get(task_id)).status.state == TaskState.TASK_STATE_CANCELED:
                return
            time.sleep(0.02)
        pytest.fail("the task goes on")

    run(served, work)


def test_a_client_need_not_wait(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        request = SendMessageRequest(message=message("wait please"))
        request.configuration.return_immediately = True
        task = await one.ask(request)
        assert task.status.state in (TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_SUBMITTED)
        GATE.set()
        for _ in range(500):
            if (await one.get(task.id)).status.state == TaskState.TASK_STATE_COMPLETED:
                return
            time.sleep(0.02)
        pytest.fail("the task does not end")

    run(served, work, streaming=False)


# --- lists ---


def test_tasks_are_listed_by_pages(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        context = uuid.uuid4().hex
        ids = [(await one.ask("Hi", context_id=context)).id for _ in range(5)][::-1]
        request = ListTasksRequest(context_id=context, page_size=2)
        seen: list[str] = []
        while True:
            page = await one.client.list_tasks(request)
            seen += [task.id for task in page.tasks]
            assert page.total_size == 5
            assert not any(task.artifacts or task.history for task in page.tasks)
            assert bool(page.next_page_token) == (len(seen) < 5)
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        assert seen == ids
        whole = ListTasksRequest(context_id=context, include_artifacts=True, history_length=1)
        tasks = (await one.client.list_tasks(whole)).tasks
        assert all(text_of(task) == "You said: Hi" and len(task.history) == 1 for task in tasks)
        none = ListTasksRequest(context_id=context, status=TaskState.TASK_STATE_FAILED)
        assert (await one.client.list_tasks(none)).total_size == 0
        for wrong in ({"page_size": 101}, {"page_size": 0}, {"page_token": "x"}, {"history_length": -1}):
            with pytest.raises(InvalidParamsError):
                await one.client.list_tasks(ListTasksRequest(context_id=context, **wrong))

    run(served, work)


# --- owners and errors ---


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_a_client_that_waits_for_the_whole_answer_ends_its_task_as_well(served: ServedFace, binding: str) -> None:
    params = {"message": {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": "wait please"}]}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    path, body = ("/a2a/helper", call) if binding == "JSONRPC" else ("/a2a/helper/message:send", params)
    sent = HttpRequest(
        path=f"{path}?on_disconnect=cancel", headers={"a2a-version": "1.0"}, body=json.dumps(body).encode()
    )
    with served.connect() as connection:
        connection.sendall(sent.encode())
        assert STARTED.wait(60)
    url = f"{served.url}/a2a/helper/tasks?pageSize=1"
    for _ in range(500):
        (task,) = HTTP.get(url, headers={"a2a-version": "1.0"}).json()["tasks"]
        if task["status"]["state"] == "TASK_STATE_CANCELED":
            return
        time.sleep(0.02)
    pytest.fail("the task goes on")


def test_the_card_of_a_service_with_tokens_says_that_one_is_needed() -> None:
    with ServedFace(make_app(Tokens([("ada", ADA)]))) as served:
        url = f"{served.url}/a2a/helper/.well-known/agent-card.json"
        card = HTTP.get(url, headers={"authorization": f"Bearer {ADA}"}).json()
    assert card["securitySchemes"] == {"token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}


def test_tasks_of_others_are_not_found(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="jackfield")
    with ServedFace(make_app(Tokens([("ada", ADA), ("bob", BOB)]))) as served:
        mine = ""

        async def ada(one: Peer) -> None:
            nonlocal mine
            task = await one.ask("pay please")
            mine = task.id
            assert (await one.client.list_tasks(ListTasksRequest())).total_size == 1

        async def bob(one: Peer) -> None:
            with pytest.raises(TaskNotFoundError):
                await one.get(mine)
            with pytest.raises(TaskNotFoundError):
                await one.client.cancel_task(CancelTaskRequest(id=mine))
            with pytest.raises(TaskNotFoundError):
                await one.ask("yes", task_id=mine)
            with pytest.raises(TaskNotFoundError):
                [event async for event in one.client.subscribe(SubscribeToTaskRequest(id=mine))]
            assert (await one.client.list_tasks(ListTasksRequest())).total_size == 0

        run(served, ada, token=ADA)
        run(served, bob, token=BOB)
        card = HTTP.get(
            f"{served.url}/a2a/helper/.well-known/agent-card.json", headers={"authorization": f"Bearer {ADA}"}
        ).json()
        assert card["securitySchemes"]
        assert HTTP.get(f"{served.url}/a2a/helper/.well-known/agent-card.json").status_code == 401
    assert ADA not in caplog.text
    assert BOB not in caplog.text


def test_tasks_of_other_agents_are_not_found(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        task = await one.ask("Hi")
        reply = call(served, "GetTask", {"id": task.id}, agent="other")
        assert reply["error"]["code"] == -32001

    run(served, work)


def call(served: ServedFace, method: str, params: Any, *, agent: str = "helper", version: str = "1.0") -> Any:
    body = {"jsonrpc": "2.0", "id": "r", "method": method, "params": params}
    headers = {"a2a-version": version} if version else {}
    reply = HTTP.post(f"{served.url}/a2a/{agent}", content=json.dumps(body), headers=headers)
    assert reply.status_code == 200
    result = reply.json()
    assert (result["jsonrpc"], result["id"]) == ("2.0", "r")
    return result


def sent(**fields: Any) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hi"}], **fields}}


REFUSED: list[tuple[str, Any, int]] = [
    ("NoSuchMethod", {}, -32601),
    ("message/send", {}, -32601),
    ("SendMessage", {}, -32602),
    ("SendMessage", [], -32602),
    ("SendMessage", sent(messageId=""), -32602),
    ("SendMessage", sent(parts=[]), -32602),
    ("SendMessage", sent(parts=[{}]), -32602),
    ("SendMessage", sent(parts=[{"raw": "?"}]), -32602),
    ("SendMessage", sent(parts=[{"url": "file:///etc/passwd"}]), -32602),
    ("SendMessage", sent(role="ROLE_AGENT"), -32602),
    ("SendMessage", sent(contextId="a\u0000b"), -32602),
    ("SendMessage", sent(contextId="x" * 500), -32602),
    ("SendMessage", sent(parts=[{"text": "\ud800"}]), -32602),
    ("SendMessage", sent(taskId="nope"), -32001),
    ("SendMessage", sent(taskId="a\u0000b"), -32001),
    ("SendMessage", sent(referenceTaskIds=["x"]), -32004),
    ("SendMessage", {**sent(), "tenant": "x"}, -32602),
    ("SendMessage", {**sent(), "configuration": {"historyLength": -1}}, -32602),
    ("SendMessage", {**sent(), "configuration": {"acceptedOutputModes": ["image/png"]}}, -32005),
    ("SendMessage", {**sent(), "configuration": {"taskPushNotificationConfig": {"url": "https://x"}}}, -32003),
    ("GetTask", {"id": ""}, -32602),
    ("GetTask", {"id": "x"}, -32001),
    ("CancelTask", {"id": "x"}, -32001),
    ("SubscribeToTask", {"id": "x"}, -32001),
    ("ListTaskPushNotificationConfigs", {"taskId": "x"}, -32003),
    ("GetExtendedAgentCard", {}, -32007),
]


@pytest.mark.parametrize(("method", "params", "code"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_not_supported_is_refused_in_the_form_of_the_protocol(
    served: ServedFace, method: str, params: Any, code: int
) -> None:
    error = call(served, method, params)["error"]
    assert error["code"] == code, error
    assert error["data"][0]["reason"]


@pytest.mark.parametrize("version", ["", "0.3", "0.3.0", "2.0", "x"])
def test_other_versions_are_refused(served: ServedFace, version: str) -> None:
    assert call(served, "SendMessage", sent(), version=version)["error"]["code"] == -32009


@pytest.mark.parametrize(
    "body", [{"id": 1, "method": "GetTask"}, {"jsonrpc": "2.0", "method": "GetTask"}, {"jsonrpc": "2.0", "id": True}]
)
def test_what_is_no_request_of_json_rpc_is_refused(served: ServedFace, body: Any) -> None:
    reply = HTTP.post(f"{served.url}/a2a/helper", json=body, headers={"a2a-version": "1.0"})
    assert reply.json()["error"]["code"] == -32600


def test_the_client_reads_errors_as_typed(served: ServedFace) -> None:
    async def work(one: Peer) -> None:
        request = SendMessageRequest(message=message("Hi"))
        request.configuration.accepted_output_modes.append("image/png")
        with pytest.raises(ContentTypeNotSupportedError):
            await one.send(request)
        request = SendMessageRequest(message=message("Hi"))
        request.configuration.task_push_notification_config.url = "https://example.com"
        with pytest.raises(PushNotificationNotSupportedError):
            await one.send(request)

    run(served, work)


# --- people ---


def test_a_person_takes_part_in_a_group_chat() -> None:
    ann = FnCallAgent(llm=ScriptedModel(script), name="ann", description="Answers.")
    chat = GroupChat([ann, UserAgent(name="kim", description="A person.")], agent_selection_method="round_robin")

    async def work(one: Peer) -> None:
        asked = await one.ask("Hello")
        assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert "your turn" in asked.status.message.parts[0].text
        task = await one.ask("I am Kim.", task_id=asked.id)
        assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert "You said" in text_of(task)
        assert (await one.get(task.id)).artifacts == task.artifacts

    with ServedFace(serving_app({"helper": chat}, faces=["a2a"])) as served:
        run(served, work)


# --- processes ---


def test_another_process_shows_answers_and_continues_a_task(tmp_path: Path) -> None:
    store = {"name": "sqlite", "path": str(tmp_path / "runs.db")}
    with ServedFace(make_app(store=store)) as first, ServedFace(make_app(store=store)) as second:
        tasks: list[Task] = []

        async def ask(one: Peer) -> None:
            tasks.extend([await one.ask("pay please"), await one.ask("withdrawn")])

        async def go_on(one: Peer) -> None:
            assert (await one.get(tasks[1].id)).artifacts == tasks[1].artifacts
            asked = await one.get(tasks[0].id)
            assert asked.status == tasks[0].status
            paid = await one.ask("yes", task_id=asked.id)
            assert text_of(paid) == "I pay.\n\nIt says: paid 3"
            again = await one.ask("count", context_id=paid.context_id)
            assert text_of(again) == "2"

        run(first, ask)
        run(second, go_on)
