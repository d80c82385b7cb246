"""Call tools as tasks (protocol 2025-11-25): start the task, wait until it ends, and fetch its result.

The SDK defines the messages for tasks, but cannot send them, and rejects the response that starts a task.
`wire.wrap_started_task` turns that response into a result with the task in its `_meta`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from mcp_types import (
    CallToolResult,
    CancelTaskRequest,
    CancelTaskRequestParams,
    CancelTaskResult,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    GetTaskResult,
    Request,
    Task,
)

from jackfield_mcp.wire import STARTED_TASK

if TYPE_CHECKING:
    from mcp import Client
    from mcp.shared.dispatcher import ProgressFnT

_POLL_S = 1.0  # if the server suggests nothing
_MIN_POLL_S, _MAX_POLL_S = 0.05, 30.0
_CANCEL_S = 1.0


class _TaskCall(Request[dict[str, Any], Literal["tools/call"]]):
    """A tool call with the `task` parameter, which the SDK's own request lacks."""

    method: Literal["tools/call"] = "tools/call"


def supports_tasks(client: Client) -> bool:
    """Return True if the server accepts tool calls as tasks."""
    tasks = client.server_capabilities.tasks
    requests = tasks.requests if tasks is not None else None
    return requests is not None and requests.tools is not None and requests.tools.call is not None


async def call_as_task(
    client: Client,
    name: str,
    arguments: dict[str, Any],
    *,
    progress: ProgressFnT,
    report: Callable[[str], None],
) -> CallToolResult:
    """Call a tool as a task, and wait for its result.

    If the caller is cancelled, the task is cancelled on the server on a best-effort basis, within one second.

    Args:
        client: The connected client.
        name: The server's name for the tool.
        arguments: The arguments of the call.
        progress: Receives progress notifications.
        report: Receives the task's status messages.

    Raises:
        MCPError: The server rejected a request, or the task failed without a result.
    """
    call = _TaskCall(params={"name": name, "arguments": arguments, "task": {}})
    answer = await client.session.send_request(call, CallToolResult, progress_callback=progress)
    started = (answer.meta or {}).get(STARTED_TASK)
    if started is None:  # the server answered at once
        return answer
    task = Task.model_validate(started, by_name=False)
    try:
        while task.status == "working":
            if task.status_message:
                report(task.status_message)
            await asyncio.sleep(_poll_interval_s(task))
            get = GetTaskRequest(params=GetTaskRequestParams(task_id=task.task_id))
            task = await client.session.send_request(get, GetTaskResult)
        # The result request waits for the end of a task that has a question, and delivers the question meanwhile.
        fetch = GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task.task_id))
        return await client.session.send_request(fetch, CallToolResult)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):  # the call is over for its caller, even if the server refuses
            async with asyncio.timeout(_CANCEL_S):
                cancel = CancelTaskRequest(params=CancelTaskRequestParams(task_id=task.task_id))
                await client.session.send_request(cancel, CancelTaskResult)
        raise


def _poll_interval_s(task: Task) -> float:
    suggested_s = _POLL_S if task.poll_interval is None else task.poll_interval / 1000
    return min(max(suggested_s, _MIN_POLL_S), _MAX_POLL_S)
