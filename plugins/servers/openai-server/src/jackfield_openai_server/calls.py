"""Identify pending calls by ids that include the run, so answers can continue it."""

from __future__ import annotations

from collections.abc import Mapping

from jackfield.errors import RunNotFoundError
from jackfield_openai_server.question import Question
from jackfield_serving import NotWaitingError, RunInfo, Serving

_SEPARATOR = "."


def outer_id(call_id: str, run_id: str) -> str:
    """Return the call id that clients see."""
    return f"{call_id}{_SEPARATOR}{run_id}"


def split_id(outer: str) -> tuple[str, str]:
    """Split a client's call id into the call id within the run and the run id, '' for ids issued elsewhere."""
    call_id, separator, run_id = outer.rpartition(_SEPARATOR)
    return (call_id, run_id) if separator else (outer, "")


async def continue_run(
    serving: Serving, question: Question, answers: Mapping[str, str | bool], owner: str
) -> RunInfo | None:
    """Continue the run that waits for these answers, and return its prior state.

    Return None if no run waits for all of these answers with the same options, for example because they have been given
    already. The request then starts a new run.
    """
    info = await waiting_run(serving, answers, owner)
    if info is None or not _is_same(info, question):
        return None
    inner = {split_id(outer)[0]: answer for outer, answer in answers.items()}
    try:
        await serving.answer(info.run_id, inner, owner=owner)
    except NotWaitingError:
        return None
    return info


async def waiting_run(serving: Serving, answers: Mapping[str, object], owner: str) -> RunInfo | None:
    """Return the run that waits for these answers, or None."""
    inner = {split_id(outer) for outer in answers}
    runs = {run_id for _, run_id in inner}
    if len(runs) != 1 or "" in runs:
        return None
    try:
        info = await serving.run(runs.pop(), owner=owner)
    except RunNotFoundError:
        return None
    waiting = {call.call_id: call.kind for call in info.waiting}
    fits = all(
        waiting.get(call_id)
        == ("approval" if isinstance(answers[outer_id(call_id, info.run_id)], bool) else "client_tool")
        for call_id, _ in inner
    )
    return info if fits else None


def _is_same(info: RunInfo, question: Question) -> bool:
    """Return True if the request has the run's agent, options, output schema and tools."""
    request = info.request
    return (
        info.agent == question.agent
        and dict(request.get("config") or {}) == dict(question.config)
        and request.get("output") == question.output
        and list(request.get("client_tools") or ()) == list(question.client_tools)
    )
