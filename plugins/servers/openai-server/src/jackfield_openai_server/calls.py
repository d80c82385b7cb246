"""Calls that a run waits for. Their ids name the run, so that answers continue it."""

from __future__ import annotations

from collections.abc import Mapping

from jackfield.errors import RunNotFoundError
from jackfield_openai_server.question import Question
from jackfield_serving import NotWaitingError, RunInfo, Serving

_SEPARATOR = "."


def outer_id(call_id: str, run_id: str) -> str:
    """Return the id under which a client sees a call of a run."""
    return f"{call_id}{_SEPARATOR}{run_id}"


def split_id(outer: str) -> tuple[str, str]:
    """Return the id of a call in its run, and the run; the run is '' for an id from another server."""
    call_id, separator, run_id = outer.rpartition(_SEPARATOR)
    return (call_id, run_id) if separator else (outer, "")


async def continue_run(
    serving: Serving, question: Question, answers: Mapping[str, str | bool], owner: str
) -> RunInfo | None:
    """Continue the run that waits for answers, and return the state in which it waited.

    None if no run waits for exactly these answers under the same options, because it was already answered or the client
    asks for something else. The request is then independent.
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
    """Return the run that waits for these answers; None if there is none."""
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
    """Return True if a request has the options of the run, so that the run can answer it."""
    request = info.request
    return (
        info.agent == question.agent
        and dict(request.get("config") or {}) == dict(question.config)
        and request.get("output") == question.output
        and list(request.get("client_tools") or ()) == list(question.client_tools)
    )
