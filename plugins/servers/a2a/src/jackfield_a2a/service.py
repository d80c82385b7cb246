"""Implement the A2A methods on top of agent runs."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)

from jackfield.errors import RunNotFoundError
from jackfield.events import RunFailed, RunFinished
from jackfield.servers import RequestRefusedError
from jackfield.streams import closing
from jackfield_a2a.messages import context_of, messages_of, read_answers, read_message
from jackfield_a2a.rpc import RpcRequest, Wire, invalid_params, read_params
from jackfield_a2a.tasks import listed_task, state_of, status_of, task_object
from jackfield_a2a.updates import AnswerFold
from jackfield_serving import RunInfo, Serving

_MAX_ID = 200
_NO_PUSH = "no_push_notifications"
_PAGE, _MAX_PAGE = 50, 100
_MAX_LISTED = 10_000
_OUTPUTS = frozenset({"text/plain", "text/*", "*/*", "text", "text/markdown"})


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The context of a request.

    Attributes:
        agent: The agent that the request addresses.
        owner: The identity that sent the request.
        is_left: True to cancel a run when the client that started it disconnects.
    """

    agent: str
    owner: str
    is_left: bool = False


class Tasks:
    """The A2A methods. A task is a run with the same id, and a context is a session.

    Args:
        serving: The agents and their runs.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    # --- methods with one reply ---

    async def send(self, request: RpcRequest, caller: Caller) -> Wire:
        """Start or answer a task, and return it once it has ended or needs input."""
        params = read_params(request, SendMessageRequest())
        _check_configuration(params.configuration)
        info = await self._begin(params, caller)
        if not params.configuration.return_immediately:
            async with closing(self._attach(info, caller)) as events:
                async for _ in events:
                    pass
            info = await self._serving.run(info.run_id, owner=caller.owner)
        return {"task": task_object(info, history_length=_history_length(params.configuration))}

    async def get(self, request: RpcRequest, caller: Caller) -> Wire:
        """Return a task."""
        params = read_params(request, GetTaskRequest())
        return task_object(await self._find(params.id, caller), history_length=_history_length(params))

    async def list_all(self, request: RpcRequest, caller: Caller) -> Wire:
        """Return a page of the caller's tasks, newest first."""
        params = read_params(request, ListTasksRequest())
        size = params.page_size if params.HasField("page_size") else _PAGE
        if not 1 <= size <= _MAX_PAGE:
            raise invalid_params(f"pageSize must be between 1 and {_MAX_PAGE}")
        context = _check_id(params.context_id, "contextId") if params.context_id else None
        runs = await self._serving.runs(owner=caller.owner, session=context, agent=caller.agent, limit=_MAX_LISTED)
        if params.status != TaskState.TASK_STATE_UNSPECIFIED:
            runs = [run for run in runs if state_of(run) == TaskState.Name(params.status)]
        if params.HasField("status_timestamp_after"):
            after = params.status_timestamp_after.ToDatetime(UTC).timestamp()
            runs = [run for run in runs if run.changed >= after]
        first = 0
        if params.page_token:
            ids = [run.run_id for run in runs]
            if params.page_token not in ids:
                raise invalid_params("pageToken does not belong to this list: start with the first page")
            first = ids.index(params.page_token) + 1
        page = runs[first : first + size]
        length = _history_length(params) or 0
        tasks = []
        for run in page:
            if params.include_artifacts or length:
                info = await self._serving.run(run.run_id, owner=caller.owner)
                tasks.append(task_object(info, history_length=length, has_artifacts=params.include_artifacts))
            else:
                tasks.append(listed_task(run))
        token = page[-1].run_id if page and first + size < len(runs) else ""
        return {"tasks": tasks, "nextPageToken": token, "pageSize": size, "totalSize": len(runs)}

    async def cancel(self, request: RpcRequest, caller: Caller) -> Wire:
        """Cancel a task, wait until it has ended, and return it."""
        info = await self._find(read_params(request, CancelTaskRequest()).id, caller)
        if info.phase == "ended":
            raise RequestRefusedError("the task has already ended", status=409, code="not_cancelable")
        await self._serving.cancel(info.run_id, owner=caller.owner)
        events = self._serving.attach(info.run_id, after=info.number, owner=caller.owner)
        async with closing(events):
            async for _, placed in events:
                event = placed.event
                is_pause = isinstance(event, RunFinished) and event.stop_reason.endswith("_needed")
                if not placed.depth and isinstance(event, RunFinished | RunFailed) and not is_pause:
                    break
        return task_object(await self._serving.run(info.run_id, owner=caller.owner))

    # --- methods with a stream of replies ---

    async def send_streaming(self, request: RpcRequest, caller: Caller) -> AsyncIterator[Wire]:
        """Start or answer a task, and return an iterator over its updates."""
        params = read_params(request, SendMessageRequest())
        _check_configuration(params.configuration)
        info = await self._begin(params, caller)
        return self._follow(info, caller, history_length=_history_length(params.configuration))

    async def subscribe(self, request: RpcRequest, caller: Caller) -> AsyncIterator[Wire]:
        """Return an iterator over an existing task and its updates."""
        info = await self._find(read_params(request, SubscribeToTaskRequest()).id, caller)
        if info.phase == "ended":
            raise RequestRefusedError("the task has ended: read it with GetTask", status=409, code="unsupported")
        return self._follow(info, Caller(agent=caller.agent, owner=caller.owner))

    # --- runs ---

    async def _begin(self, params: SendMessageRequest, caller: Caller) -> RunInfo:
        """Start a run, or continue the one that awaits this message; return its current state."""
        message = params.message
        if message.task_id:
            info = await self._find(message.task_id, caller)
            if message.context_id and message.context_id != context_of(info):
                raise invalid_params("message.contextId does not match the task: omit contextId")
            if info.phase != "waiting":
                if info.phase == "ended":
                    reason = "has ended: send the message with the task's contextId and without taskId"
                else:
                    reason = f"is {info.phase} and accepts no messages: wait until it finishes"
                raise RequestRefusedError(f"the task {reason}", code="unsupported")
            await self._serving.answer(info.run_id, read_answers(message, info), owner=caller.owner)
            return info
        asked = read_message(message)
        context = _check_id(message.context_id, "message.contextId") if message.context_id else uuid.uuid4().hex
        previous = await self._serving.runs(owner=caller.owner, session=context, limit=1)
        run_id = await self._serving.start(
            caller.agent,
            [asked],
            owner=caller.owner,
            session=context,
            continues=previous[0].run_id if previous else "",
        )
        return await self._serving.run(run_id, owner=caller.owner)

    async def _find(self, task_id: str, caller: Caller) -> RunInfo:
        not_found = RequestRefusedError("no such task", status=404, code="not_found")
        if not task_id.isprintable() or len(task_id) > _MAX_ID:
            raise not_found
        try:
            info = await self._serving.run(task_id, owner=caller.owner)
        except RunNotFoundError:
            raise not_found from None
        if info.agent != caller.agent:
            raise not_found
        return info

    def _attach(self, info: RunInfo, caller: Caller) -> AsyncIterator[Any]:
        return self._serving.attach(info.run_id, after=info.number, owner=caller.owner, cancel_on_leave=caller.is_left)

    async def _follow(self, info: RunInfo, caller: Caller, *, history_length: int | None = None) -> AsyncIterator[Wire]:
        """Yield a task, then its updates."""
        place = {"taskId": info.run_id, "contextId": context_of(info)}
        fold = AnswerFold(messages_of(info), has_turns=bool(info.response))
        is_waiting = info.phase == "waiting"
        first = task_object(info, history_length=history_length)
        if is_waiting and await self._is_answered(info, caller):
            first["status"] = {"state": "TASK_STATE_WORKING", "timestamp": first["status"]["timestamp"]}
        yield {"task": first}
        async with closing(self._attach(info, caller)) as events:
            async for numbered in events:
                for update in fold.feed(numbered.event):
                    yield {"artifactUpdate": {**place, **update}}
        info = await self._serving.run(info.run_id, owner=caller.owner)
        yield {"statusUpdate": {**place, "status": status_of(info)}}

    async def _is_answered(self, info: RunInfo, caller: Caller) -> bool:
        return (await self._serving.run(info.run_id, owner=caller.owner)).number != info.number


def _check_configuration(configuration: SendMessageConfiguration) -> None:
    """Refuse unsupported options.

    Raises:
        RequestRefusedError: The configuration contains an unsupported option.
    """
    if configuration.HasField("task_push_notification_config"):
        raise refused_method("CreateTaskPushNotificationConfig")
    modes = [mode.partition(";")[0].strip().lower() for mode in configuration.accepted_output_modes]
    if modes and not _OUTPUTS.intersection(modes):
        raise RequestRefusedError("the agent only answers in text/plain: accept this output mode", code="content_type")


def _history_length(params: Any) -> int | None:
    if not params.HasField("history_length"):
        return None
    if params.history_length < 0:
        raise invalid_params("historyLength must not be negative")
    return int(params.history_length)


def _check_id(identity: str, param: str) -> str:
    """Refuse ids that stores cannot handle."""
    if len(identity) > _MAX_ID or not identity.isprintable():
        raise invalid_params(f"{param} must consist of at most {_MAX_ID} printable characters")
    return identity


def refused_method(method: str) -> RequestRefusedError:
    """Return the error for an unsupported or unknown method."""
    if "PushNotification" in method:
        return RequestRefusedError("push notifications are not supported: subscribe to the task", code=_NO_PUSH)
    if method == "GetExtendedAgentCard":
        return RequestRefusedError(
            "the agent has no extended card: its public card is complete", code="no_extended_card"
        )
    return RequestRefusedError(f"unknown method {method[:100]!r}", code="method_not_found")
