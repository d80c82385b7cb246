"""Calls of the client's tools: their ids name the run, so that their results continue it."""

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
    """Return the id of a call in its run, and the run; the run is '' for an id that another server made."""
    call_id, separator, run_id = outer.rpartition(_SEPARATOR)
    return (call_id, run_id) if separator else (outer, "")


async def continue_run(serving: Serving, question: Question, results: Mapping[str, str], owner: str) -> RunInfo | None:
    """Continue the run that waits for the results of its calls, and return the state in which it waited.

    None if no run waits for exactly these results under the same options: it was answered before, or the client asks
    for something else. The request then stands on its own, with the whole conversation in it.
    """
    inner = {split_id(outer): result for outer, result in results.items()}
    runs = {run_id for _, run_id in inner}
    if len(runs) != 1 or "" in runs:
        return None
    (run_id,) = runs
    try:
        info = await serving.run(run_id, owner=owner)
    except RunNotFoundError:
        return None
    waiting = {call.call_id for call in info.waiting if call.kind == "client_tool"}
    if {call_id for call_id, _ in inner} != waiting or not _is_same(info, question):
        return None
    try:
        await serving.answer(run_id, {call_id: result for (call_id, _), result in inner.items()}, owner=owner)
    except NotWaitingError:
        return None
    return info


def _is_same(info: RunInfo, question: Question) -> bool:
    """Return True if a request has the options of the run, so that the run can answer it."""
    request = info.request
    return (
        info.agent == question.agent
        and dict(request.get("config") or {}) == dict(question.config)
        and request.get("output") == question.output
        and list(request.get("client_tools") or ()) == list(question.client_tools)
    )
