"""Convert runs to A2A tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from jackfield.events import RunFailed
from jackfield.messages import ContentItem, Message
from jackfield.servers import failure_of
from jackfield_a2a.messages import agent_message, context_of, history_of, messages_of, question_of, show_part
from jackfield_a2a.rpc import Wire
from jackfield_serving import RunInfo, RunSummary

ARTIFACT = "answer"
"""Id of a task's artifact, which is the agent's answer."""
BETWEEN = "\n\n"
"""Separator between the texts of two turns."""
_ENDS = {"finished": "TASK_STATE_COMPLETED", "empty_reply": "TASK_STATE_COMPLETED", "cancelled": "TASK_STATE_CANCELED"}
_PHASES = {"queued": "TASK_STATE_SUBMITTED", "running": "TASK_STATE_WORKING", "waiting": "TASK_STATE_INPUT_REQUIRED"}


def state_of(run: RunSummary) -> str:
    """Return a task's state. A run that reached a limit counts as failed."""
    return _PHASES.get(run.phase) or _ENDS.get(run.stop_reason, "TASK_STATE_FAILED")


def task_object(info: RunInfo, *, history_length: int | None = None, has_artifacts: bool = True) -> Wire:
    """Return a task.

    Args:
        info: The run.
        history_length: The maximum number of messages in the history. If None, all messages are included.
        has_artifacts: True to include the artifacts.
    """
    task: Wire = {"id": info.run_id, "contextId": context_of(info), "status": status_of(info)}
    if has_artifacts and (parts := answer_parts(messages_of(info))):
        task["artifacts"] = [artifact_object(parts)]
    if history := history_of(info, history_length):
        task["history"] = history
    return task


def listed_task(run: RunSummary) -> Wire:
    """Return a task as a list entry, without history and artifacts."""
    return {
        "id": run.run_id,
        "contextId": context_of(run),
        "status": {"state": state_of(run), "timestamp": timestamp_of(run.changed)},
    }


def status_of(info: RunInfo) -> Wire:
    """Return a task's status, including the question to the client or the reason for its failure."""
    status: Wire = {"state": state_of(info), "timestamp": timestamp_of(info.changed)}
    if info.waiting:
        status["message"] = question_of(info)
    elif status["state"] == "TASK_STATE_FAILED":
        reason = f"the run reached a limit: {info.stop_reason}"
        if info.error or info.error_kind:
            reason = str(failure_of(RunFailed(info.error, info.error_kind)))
        status["message"] = agent_message(info, [{"text": reason}])
    return status


def artifact_object(parts: Sequence[Wire]) -> Wire:
    """Return a task's artifact with the given parts."""
    return {"artifactId": ARTIFACT, "name": "Answer", "parts": list(parts)}


def answer_parts(messages: Sequence[Message]) -> list[Wire]:
    """Return the agent's text as one part, followed by one part per media item."""
    text = text_of(messages)
    return [*([{"text": text}] if text else []), *(show_part(item) for item in media_of(messages))]


def text_of(messages: Sequence[Message]) -> str:
    """Join the agent's texts with blank lines."""
    return BETWEEN.join(text for message in messages if message.role == "assistant" and (text := _text_in(message)))


def media_of(messages: Sequence[Message]) -> list[ContentItem]:
    """Return the agent's media items."""
    return [item for message in messages if message.role == "assistant" for item in message.items if item.text is None]


def timestamp_of(seconds: float) -> str:
    """Format a Unix time as an A2A timestamp."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text_in(message: Message) -> str:
    return "".join(item.text for item in message.items if item.text)
