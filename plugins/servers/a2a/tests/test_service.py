"""Lists of tasks and the refusals of A2A, over a service that only this test has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.errors import RunNotFoundError
from jackfield.events import RunEvent, RunFinished
from jackfield.messages import Message, Usage
from jackfield.servers import RequestRefusedError
from jackfield_a2a.rpc import RpcRequest
from jackfield_a2a.service import Caller, Tasks, refused_method

ADA = Caller(agent="clerk", owner="ada")
ENDS = (
    ("ended", "finished"),
    ("waiting", "approval_needed"),
    ("ended", "cancelled"),
    ("running", ""),
    ("ended", "finished"),
)


class Runs:
    """Five runs, which changed at 50, 40, … seconds after the epoch."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.all = [
            SimpleNamespace(
                run_id=f"r{number}", session="s", agent="clerk", phase=phase, stop_reason=reason, number=7,
                changed=50.0 - 10 * number, waiting=(), error="", error_kind="",
                messages=(Message("user", f"Question {number}"),), response=(Message("assistant", "Answer."),),
            )
            for number, (phase, reason) in enumerate(ENDS)
        ]  # fmt: skip

    async def runs(self, **wanted: Any) -> list[Any]:
        self.asked.append(wanted)
        return list(self.all)

    async def run(self, run_id: str, *, owner: str) -> Any:
        self.asked.append({"owner": owner})
        for run in self.all:
            if run.run_id == run_id:
                return run
        raise RunNotFoundError("no")


def listed(runs: Runs | None = None, **params: Any) -> Any:
    service: Any = runs or Runs()
    return asyncio.run(Tasks(service).list_all(RpcRequest(id=1, method="ListTasks", params=params), ADA))


def ids(reply: Any) -> list[str]:
    return [task["id"] for task in reply["tasks"]]


def test_the_tasks_of_a_caller_are_listed_without_their_contents() -> None:
    runs = Runs()
    reply = listed(runs)
    assert (ids(reply), reply["nextPageToken"], reply["pageSize"], reply["totalSize"]) == (
        ["r0", "r1", "r2", "r3", "r4"], "", 50, 5,
    )  # fmt: skip
    assert [{*task} for task in reply["tasks"]] == [{"id", "contextId", "status"}] * 5
    assert runs.asked == [{"owner": "ada", "session": None, "agent": "clerk", "limit": 10_000}]
    listed(contextId="x" * 200)
    listed(runs, contextId=" Tälk ")
    assert runs.asked[1]["session"] == " Tälk ", "an id is kept as it is"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"status": "TASK_STATE_COMPLETED"}, ["r0", "r4"]),
        ({"status": "TASK_STATE_INPUT_REQUIRED"}, ["r1"]),
        ({"statusTimestampAfter": "1970-01-01T00:00:30Z"}, ["r0", "r1", "r2"]),
        ({"statusTimestampAfter": "1970-01-01T00:00:30.001Z"}, ["r0", "r1"]),
        ({"status": "TASK_STATE_COMPLETED", "statusTimestampAfter": "1970-01-01T00:00:20Z"}, ["r0"]),
    ],
    ids=["completed", "waiting", "since", "after", "both"],
)
def test_tasks_are_filtered_by_their_state_and_their_last_change(wanted: Any, expected: list[str]) -> None:
    reply = listed(**wanted)
    assert (ids(reply), reply["totalSize"]) == (expected, len(expected))


def test_pages_follow_each_other_and_the_last_one_names_no_next() -> None:
    pages, token = [], ""
    while not pages or token:
        reply = listed(pageSize=2, **({"pageToken": token} if token else {}))
        token = reply["nextPageToken"]
        pages.append(ids(reply))
        assert reply["totalSize"] == 5
    assert pages == [["r0", "r1"], ["r2", "r3"], ["r4"]]
    assert listed(pageSize=5)["nextPageToken"] == ""


@pytest.mark.parametrize("size", [1, 100])
def test_a_page_may_be_as_large_as_the_limit(size: int) -> None:
    assert listed(pageSize=size)["pageSize"] == size


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"pageSize": 0}, "pageSize must be between 1 and 100"),
        ({"pageSize": 101}, "pageSize must be between 1 and 100"),
        ({"pageToken": "other"}, "pageToken does not belong to this list"),
        ({"historyLength": -1}, "historyLength must not be negative"),
        ({"contextId": "x" * 201}, "contextId must consist of at most 200 printable characters"),
        ({"contextId": "a\nb"}, "contextId must consist of at most 200 printable characters"),
    ],
)
def test_a_list_that_cannot_be_made_is_refused_by_its_field(wanted: Any, reason: str) -> None:
    with pytest.raises(RequestRefusedError, match=reason):
        listed(**wanted)


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"historyLength": 0}, set()),
        ({"historyLength": 1}, {"history"}),
        ({"includeArtifacts": True}, {"artifacts"}),
        ({"includeArtifacts": True, "historyLength": 1}, {"artifacts", "history"}),
    ],
    ids=["none", "history", "artifacts", "both"],
)
def test_contents_are_listed_only_if_they_are_asked_for(wanted: Any, keys: set[str]) -> None:
    assert {*listed(**wanted)["tasks"][0]} == {"id", "contextId", "status"} | keys


@pytest.mark.parametrize(
    ("task", "caller", "is_there"),
    [
        ("r0", ADA, True),
        ("r9", ADA, False),
        ("r0", Caller(agent="other", owner="ada"), False),
        ("x" * 201, ADA, False),
        ("r\n", ADA, False),
    ],
    ids=["there", "unknown", "of another agent", "long", "a line"],
)
def test_a_task_is_found_by_its_agent_and_id(task: str, caller: Caller, is_there: bool) -> None:
    service: Any = Runs()
    request = RpcRequest(id=1, method="GetTask", params={"id": task, "colour": "unknown to the protocol"})
    if is_there:
        assert asyncio.run(Tasks(service).get(request, caller))["id"] == task
    else:
        with pytest.raises(RequestRefusedError) as caught:
            asyncio.run(Tasks(service).get(request, caller))
        assert (caught.value.status, caught.value.code) == (404, "not_found")
        assert len(service.asked) == (len(task) < 200 and task.isprintable()), "stores get no odd ids"


def test_a_tenant_is_refused_because_each_agent_has_its_own_address() -> None:
    service: Any = Runs()
    request = RpcRequest(id=1, method="GetTask", params={"id": "r0", "tenant": "acme"})
    with pytest.raises(RequestRefusedError, match="tenant is not supported"):
        asyncio.run(Tasks(service).get(request, ADA))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"taskId": "r0"}, "the task has ended: send the message with the task's contextId and without taskId"),
        ({"taskId": "r0", "contextId": "s"}, "the task has ended: send the message"),
        ({"taskId": "r3"}, "the task is running and accepts no messages: wait"),
        ({"taskId": "r1", "contextId": "other"}, "message.contextId does not match the task: omit contextId"),
        ({"contextId": "x" * 201}, "message.contextId must consist of at most 200"),
    ],
)
def test_a_message_to_a_task_that_takes_none_is_refused(message: Any, reason: str) -> None:
    service: Any = Runs()
    sent = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "yes"}], **message}
    with pytest.raises(RequestRefusedError, match=reason):
        asyncio.run(Tasks(service).send(RpcRequest(id=1, method="SendMessage", params={"message": sent}), ADA))


@pytest.mark.parametrize(
    ("modes", "is_taken"),
    [
        (["text/plain"], True),
        (["TEXT/PLAIN; charset=utf-8"], True),
        (["image/png", "*/*"], True),
        (["image/png"], False),
    ],
)
def test_a_client_must_take_texts(modes: list[str], is_taken: bool) -> None:
    service: Any = Runs()
    sent = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "yes"}], "taskId": "r0"}
    params = {"message": sent, "configuration": {"acceptedOutputModes": modes}}
    with pytest.raises(RequestRefusedError) as caught:
        asyncio.run(Tasks(service).send(RpcRequest(id=1, method="SendMessage", params=params), ADA))
    assert caught.value.code == ("unsupported" if is_taken else "content_type")


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("CreateTaskPushNotificationConfig", "no_push_notifications"),
        ("GetExtendedAgentCard", "no_extended_card"),
        ("Fly", "method_not_found"),
    ],
)
def test_a_method_that_does_not_work_says_why(method: str, code: str) -> None:
    assert refused_method(method).code == code


class Followed(Runs):
    """Runs that are followed and cancelled."""

    def __init__(self, phase: str) -> None:
        super().__init__()
        self.all[0].phase = phase
        self.cancelled: list[str] = []
        self.ways: list[bool] = []
        self.events: list[Any] = []

    async def start(self, *_: Any, **__: Any) -> str:
        return "r0"

    async def attach(self, run_id: str, *, cancel_on_leave: bool = False, **_: Any) -> AsyncIterator[Any]:
        self.ways.append(cancel_on_leave)
        for event in self.events:
            yield SimpleNamespace(event=RunEvent(run_id, 1, "clerk", 0, event))

    async def cancel(self, run_id: str, *, owner: str) -> None:
        self.cancelled.append(run_id)


@pytest.mark.parametrize("phase", ["queued", "running", "waiting", "ended"])
def test_every_task_that_has_not_ended_can_be_cancelled_and_followed(phase: str) -> None:
    runs: Any = Followed(phase)
    request = RpcRequest(id=1, method="", params={"id": "r0"})
    caller = Caller(agent="clerk", owner="ada", is_left=True)

    async def follow() -> list[str]:
        updates = await Tasks(runs).subscribe(request, caller)
        return [next(iter(update)) async for update in updates]

    if phase == "ended":
        for call in (Tasks(runs).cancel(request, caller), follow()):
            with pytest.raises(RequestRefusedError) as caught:
                asyncio.run(call)
            assert caught.value.status == 409
        assert runs.cancelled == []
        return
    assert asyncio.run(Tasks(runs).cancel(request, caller))["id"] == "r0"
    assert runs.cancelled == ["r0"]
    runs.ways.clear()
    assert asyncio.run(follow()) == ["task", "statusUpdate"]
    assert runs.ways == [False], "only the client that began a task can end it by leaving"


@pytest.mark.parametrize("is_left", [False, True])
def test_a_client_that_begins_a_task_may_end_it_by_leaving(is_left: bool) -> None:
    runs: Any = Followed("running")
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hi"}]}
    request = RpcRequest(id=1, method="", params={"message": message})
    caller = Caller(agent="clerk", owner="ada", is_left=is_left)

    async def begin() -> None:
        await Tasks(runs).send(request, caller)
        assert [update async for update in await Tasks(runs).send_streaming(request, caller)]

    asyncio.run(begin())
    assert runs.ways == [is_left] * 2


def followed(runs: Any) -> list[Any]:
    async def follow() -> list[Any]:
        updates = await Tasks(runs).subscribe(RpcRequest(id=1, method="", params={"id": "r0"}), ADA)
        return [update async for update in updates]

    return asyncio.run(follow())


def test_an_answer_that_the_task_has_is_not_sent_again_at_its_end() -> None:
    runs = Followed("running")
    runs.events = [RunFinished("finished", (Message("assistant", "Answer."),), Usage())]
    assert [[*update] for update in followed(runs)] == [["task"], ["statusUpdate"]]


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_waiting_task_is_shown_as_working_once_it_is_answered(
    is_answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Followed("waiting")

    async def run(run_id: str, *, owner: str) -> Any:
        found = await Runs.run(runs, run_id, owner=owner)
        return SimpleNamespace(**{**vars(found), "number": 7 + is_answered * (len(runs.asked) > 1)})

    monkeypatch.setattr(runs, "run", run)
    state = followed(runs)[0]["task"]["status"]["state"]
    assert state == ("TASK_STATE_WORKING" if is_answered else "TASK_STATE_INPUT_REQUIRED")
