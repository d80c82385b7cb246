"""Tasks over HTTP+JSON, as the client of the A2A SDK sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.client.transports.rest import RestTransport
from a2a.helpers import get_artifact_text, new_text_message
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import (
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import ParseDict

from jackfield import FnCallAgent, tool
from jackfield.events import ModelEvent
from jackfield.request import ChatRequest
from jackfield.servers import Refusal
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_a2a.rest import rest_error_of
from jackfield_serve import Tokens, serving_app
from jackfield_serving import ServingLimits
from jackfield_testkit.faces import ServedFace

ADA, BOB = "tests-Zq83bXw4Rk2LpV7Tn-ada", "tests-Zq83bXw4Rk2LpV7Tn-bob"
VERSION = {"A2A-Version": "1.0"}


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    return f"paid {amount}"


def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}")
    return calls(("pay", {"amount": 3})) if text.startswith("pay") else answer(f"You said: {text}")


HTTP = httpx.Client(timeout=60)


def make_app(tokens: Tokens | None = None, limits: ServingLimits | None = None) -> Any:
    helper = FnCallAgent([pay], llm=ScriptedModel(script), name="helper")
    return serving_app({"helper": helper}, faces=["a2a"], tokens=tokens, limits=limits)


@pytest.fixture(scope="module")
def served() -> Iterator[ServedFace]:
    with ServedFace(make_app()) as face:
        yield face


def talk(served: ServedFace, work: Any, *, streaming: bool = True, token: str = "") -> Any:
    async def run() -> Any:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(timeout=60, headers=headers) as http:
            card = await http.get(f"{served.url}/a2a/helper/.well-known/agent-card.json")
            described = ParseDict(card.json(), AgentCard(), ignore_unknown_fields=True)
            config = ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=["HTTP+JSON"])
            client: Any = await create_client(described, config)
            assert isinstance(client._transport, RestTransport)
            return await work(client)

    return asyncio.run(run())


def message(text: str, **fields: Any) -> Message:
    return new_text_message(text, role=Role.ROLE_USER, **fields)


async def send(client: Any, text: str, **fields: Any) -> list[Any]:
    return [event async for event in client.send_message(SendMessageRequest(message=message(text, **fields)))]


@pytest.mark.parametrize("streaming", [True, False])
def test_a_task_is_sent_read_listed_and_refused_to_be_cancelled(served: ServedFace, streaming: bool) -> None:
    async def work(client: Any) -> None:
        first = (await send(client, "Hi"))[0].task
        task = await client.get_task(GetTaskRequest(id=first.id, history_length=1))
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        assert get_artifact_text(task.artifacts[0]) == "You said: Hi"
        listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id, include_artifacts=True))
        assert [one.id for one in listed.tasks] == [task.id]
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=task.id))
        if streaming:  # the client needs it to subscribe
            with pytest.raises(UnsupportedOperationError):
                [event async for event in client.subscribe(SubscribeToTaskRequest(id=task.id))]

    talk(served, work, streaming=streaming)


def test_an_approval_is_asked_for_and_given(served: ServedFace) -> None:
    async def work(client: Any) -> str:
        task = (await send(client, "pay please"))[0].task
        waiting = await client.get_task(GetTaskRequest(id=task.id))
        assert waiting.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        await send(client, "yes", task_id=task.id, context_id=task.context_id)
        return get_artifact_text((await client.get_task(GetTaskRequest(id=task.id))).artifacts[0])

    assert talk(served, work) == "It says: paid 3"


def test_errors_have_the_statuses_and_reasons_of_the_protocol(served: ServedFace) -> None:
    async def work(client: Any) -> None:
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id="nothing"))
        with pytest.raises(InvalidParamsError):
            await client.list_tasks(ListTasksRequest(page_size=1000))

    talk(served, work)
    url = f"{served.url}/a2a/helper"
    for verb, path, status, reason in (
        ("GET", "/tasks/x", 404, "TASK_NOT_FOUND"),
        ("POST", "/tasks/x/pushNotificationConfigs", 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("GET", "/extendedAgentCard", 400, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    ):
        reply = HTTP.request(verb, f"{url}{path}", headers=VERSION)
        error = reply.json()["error"]
        assert (reply.status_code, error["code"]) == (status, status)
        assert error["details"][0]["reason"] == reason
    assert HTTP.get(f"{url}/tasks").json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"
    assert HTTP.get(f"{served.url}/a2a/nobody/tasks", headers=VERSION).status_code == 404
    assert HTTP.post(f"{url}/message:send", headers=VERSION, content=b"{").status_code == 400


def test_the_address_says_what_a_client_that_leaves_means(served: ServedFace) -> None:
    url = f"{served.url}/a2a/helper/tasks"
    assert HTTP.get(f"{url}?on_disconnect=cancel&pageSize=1", headers=VERSION).status_code == 200
    assert HTTP.get(f"{url}?on_disconnect=stop", headers=VERSION).status_code == 400


def test_an_owner_does_not_see_tasks_of_another() -> None:
    async def begin(client: Any) -> str:
        return str((await send(client, "Hi"))[0].task.id)

    with ServedFace(make_app(Tokens([("ada", ADA), ("bob", BOB)]))) as served:
        task_id = talk(served, begin, token=ADA)
        url = f"{served.url}/a2a/helper/tasks"
        for token, status, listed in ((ADA, 200, [task_id]), (BOB, 404, [])):
            headers = {**VERSION, "authorization": f"Bearer {token}"}
            assert HTTP.get(f"{url}/{task_id}", headers=headers).status_code == status
            tasks = HTTP.get(url, headers=headers).json().get("tasks", [])
            assert [task["id"] for task in tasks] == listed
        assert HTTP.get(url, headers=VERSION).status_code == 401


PUSH = "PUSH_NOTIFICATION_NOT_SUPPORTED"
ROUTES = [
    ("GET", "/tasks/x/pushNotificationConfigs", 400, PUSH),
    ("GET", "/tasks/x/pushNotificationConfigs/y", 400, PUSH),
    ("DELETE", "/tasks/x/pushNotificationConfigs/y", 400, PUSH),
    ("POST", "/tasks/x:cancel", 404, "TASK_NOT_FOUND"),
    ("GET", "/tasks/x:subscribe", 404, "TASK_NOT_FOUND"),
    ("POST", "/tasks/x:subscribe", 404, "TASK_NOT_FOUND"),
    ("POST", "/message:send", 400, "INVALID_PARAMS"),
    ("POST", "/message:stream", 400, "INVALID_PARAMS"),
    ("GET", "/tasks?pageSize=0", 400, "INVALID_PARAMS"),
    ("GET", "/tasks?includeArtifacts=maybe", 400, "INVALID_PARAMS"),
    ("GET", "/tasks?on_disconnect=cancel&includeArtifacts=TRUE", 200, ""),
]


@pytest.mark.parametrize(("verb", "path", "status", "reason"), ROUTES)
def test_each_route_of_the_protocol_answers(served: ServedFace, verb: str, path: str, status: int, reason: str) -> None:
    reply = HTTP.request(verb, f"{served.url}/a2a/helper{path}", headers=VERSION)
    assert reply.status_code == status, reply.text
    if reason:
        assert [one["reason"] for one in reply.json()["error"]["details"]] == [reason]


@pytest.mark.parametrize(
    ("status", "code", "shown", "name"),
    [
        (400, "invalid_params", 400, "INVALID_ARGUMENT"),
        (400, "content_type", 400, "INVALID_ARGUMENT"),
        (400, "unsupported", 400, "FAILED_PRECONDITION"),
        (404, "not_found", 404, "NOT_FOUND"),
        (404, "agent_not_found", 404, "NOT_FOUND"),
        (409, "not_cancelable", 409, "FAILED_PRECONDITION"),
        (409, "session_busy", 409, "FAILED_PRECONDITION"),
        (413, "too_large", 413, "INTERNAL"),
        (429, "busy", 429, "RESOURCE_EXHAUSTED"),
        (503, "draining", 503, "INTERNAL"),
    ],
)
def test_a_refusal_keeps_its_status_and_has_the_name_of_the_protocol(
    status: int, code: str, shown: int, name: str
) -> None:
    error = rest_error_of(Refusal(status=status, code=code, message="No."))["error"]
    assert (error["code"], error["status"], error["message"]) == (shown, name, "No.")


@pytest.mark.parametrize(("wait", "header"), [(0.2, "1"), (2.6, "3"), (30.0, "30")])
def test_a_busy_server_says_in_whole_seconds_when_to_try_again_and_never_at_once(wait: float, header: str) -> None:
    limits = ServingLimits(runs_per_owner=0, retry_after_s=wait)
    with ServedFace(make_app(limits=limits)) as served:
        body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hi"}]}}
        reply = HTTP.post(f"{served.url}/a2a/helper/message:send", json=body, headers=VERSION)
    assert (reply.status_code, reply.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert reply.headers["retry-after"] == header
