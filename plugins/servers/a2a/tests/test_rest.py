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


def make_app(tokens: Tokens | None = None) -> Any:
    return serving_app(
        {"helper": FnCallAgent([pay], llm=ScriptedModel(script), name="helper")}, faces=["a2a"], tokens=tokens
    )


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
        reply = httpx.request(verb, f"{url}{path}", headers=VERSION)
        error = reply.json()["error"]
        assert (reply.status_code, error["code"]) == (status, status)
        assert error["details"][0]["reason"] == reason
    assert httpx.get(f"{url}/tasks").json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"
    assert httpx.get(f"{served.url}/a2a/nobody/tasks", headers=VERSION).status_code == 404
    assert httpx.post(f"{url}/message:send", headers=VERSION, content=b"{").status_code == 400


def test_the_address_says_what_a_client_that_leaves_means(served: ServedFace) -> None:
    url = f"{served.url}/a2a/helper/tasks"
    assert httpx.get(f"{url}?on_disconnect=cancel&pageSize=1", headers=VERSION).status_code == 200
    assert httpx.get(f"{url}?on_disconnect=stop", headers=VERSION).status_code == 400


def test_an_owner_does_not_see_tasks_of_another() -> None:
    async def begin(client: Any) -> str:
        return str((await send(client, "Hi"))[0].task.id)

    with ServedFace(make_app(Tokens([("ada", ADA), ("bob", BOB)]))) as served:
        task_id = talk(served, begin, token=ADA)
        url = f"{served.url}/a2a/helper/tasks"
        for token, status, listed in ((ADA, 200, [task_id]), (BOB, 404, [])):
            headers = {**VERSION, "authorization": f"Bearer {token}"}
            assert httpx.get(f"{url}/{task_id}", headers=headers).status_code == status
            tasks = httpx.get(url, headers=headers).json().get("tasks", [])
            assert [task["id"] for task in tasks] == listed
        assert httpx.get(url, headers=VERSION).status_code == 401


def test_a_busy_server_says_when_to_try_again() -> None:
    body = rest_error_of(Refusal(status=429, code="busy", message="Wait.", retry_after_s=3.0))
    assert (body["error"]["code"], body["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
