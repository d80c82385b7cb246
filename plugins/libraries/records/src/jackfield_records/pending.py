"""Record runs before they begin, and add notes to waiting runs, for the process that will continue them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from jackfield.events import PluginEvent, RunFailed, RunFinished, RunStarted, ToolFinished, TurnFinished
from jackfield.messages import FUNCTION, Message, Usage
from jackfield.stores import RUNNING, StoredRun
from jackfield_records.entries import FACTS, entry_of, hide_entry
from jackfield_records.recording import AgentRecorder, PendingRun, title_of


async def record_pending(
    recorder: AgentRecorder,
    messages: Sequence[Message],
    *,
    run_id: str,
    session: str = "",
    owner: str = "",
    facts: Mapping[str, Any] | None = None,
) -> PendingRun:
    """Record a run that has not begun, and hold it.

    To other processes, the run looks interrupted, without any recorded steps.

    Args:
        recorder: A recorder for the agent and the store.
        messages: The messages that the run begins with, including the agent's system message.
        run_id: The run's id.
        session: The conversation that the run belongs to.
        owner: The identity on whose behalf the run is started.
        facts: JSON metadata for the process that will begin the run, available as `Progress.facts`.

    Raises:
        StoreError: A run with this id already exists, or the run cannot be written.
    """
    stored = StoredRun(
        run_id=run_id,
        agent=recorder.agent,
        model=recorder.model,
        session=session,
        owner=owner,
        title=title_of(messages, recorder.secrets),
        is_held=True,
    )
    entry = entry_of(RunStarted(tuple(messages)), with_texts=True)
    if facts is not None:
        entry = f'{entry[:-1]}, "{FACTS}": {json.dumps(facts) if facts else "{}"}}}'
    entries = [await hide_entry(entry, recorder.secrets)]
    hold = await recorder.store.create(stored, entries)
    return PendingRun(run=stored, messages=tuple(messages), hold=hold, entries=entries)


async def append_events(
    recorder: AgentRecorder, run_id: str, hold: int, events: Sequence[PluginEvent | RunStarted]
) -> list[str]:
    """Append notes, or messages to start again with, to a run held by this process. Return the new entries.

    Raises:
        StoreError: The events cannot be written, or the hold was lost.
    """
    entries = [await hide_entry(entry_of(event, with_texts=True), recorder.secrets) for event in events]
    await recorder.store.append(run_id, hold, entries, state=RUNNING)
    return entries


async def record_finished(
    recorder: AgentRecorder,
    messages: Sequence[Message],
    response: Sequence[Message],
    *,
    run_id: str,
    session: str = "",
    owner: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Record a run that was completed elsewhere, such as in an imported conversation.

    Args:
        recorder: A recorder for the agent and the store.
        messages: The messages that the run began with, including the agent's system message.
        response: The messages that the run produced. Each call has a result.
        run_id, session, owner, facts: See `record_pending`.

    Raises:
        StoreError: A run with this id already exists, or the run cannot be written.
    """
    pending = await record_pending(
        recorder, messages, run_id=run_id, session=session, owner=owner, facts={} if facts is None else facts
    )
    try:
        entries = [await hide_entry(entry_of(step, with_texts=True), recorder.secrets) for step in _steps_of(response)]
        await recorder.store.append(run_id, pending.hold, entries, state="finished")
    except BaseException:
        await recorder.store.release(run_id, pending.hold)
        raise


def _steps_of(response: Sequence[Message]) -> Iterator[TurnFinished | ToolFinished | RunFinished]:
    """Yield the turns, the tool results, and the end."""
    turns = index = 0
    for is_result, group in groupby(response, key=lambda message: message.role == FUNCTION):
        if is_result:
            for message in group:
                extra = message.extra or {}
                yield ToolFinished(index, message.function_id or "", message, 0.0, str(extra.get("error", "")))
                index += 1
            continue
        turns, index = turns + 1, 0
        yield TurnFinished(turns, tuple(group), Usage())
    yield RunFinished("finished", (), Usage())


async def append_failure(recorder: AgentRecorder, run_id: str, hold: int, error: BaseException) -> None:
    """Record that a run held by this process failed before it began.

    Raises:
        StoreError: The failure cannot be written, or the hold was lost.
    """
    failed = RunFailed(str(error), type(error).__name__)
    entry = await hide_entry(entry_of(failed, with_texts=True), recorder.secrets)
    await recorder.store.append(run_id, hold, [entry], state="failed")
