"""The limits of a service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLimits:
    """The limits of each process of a service. None means unlimited.

    Attributes:
        runs: Runs at the same time; others wait in a queue.
        runs_per_owner: Runs of one owner at the same time, those in the queue included.
        queue: Runs that wait for their turn.
        run_s: The time limit of a run in seconds, from its start to its end or pause.
        input_bytes: The size of the messages of one request as JSON, media included.
        history_bytes: The size of the conversation that a run continues.
        buffer_events: The live events that a run keeps for its readers. Beyond that, old ones are read from the store.
        buffer_chars: The characters of live events that a run keeps for its readers.
        kept_runs: Runs that have ended, in a service without a store; the oldest are forgotten.
        waiting_runs: Runs that wait for a person, in a service without a store. At this number, no more runs start.
        retry_after_s: The time after which a refused client should retry.
    """

    runs: int = 500
    runs_per_owner: int | None = None
    queue: int = 500
    run_s: float | None = None
    input_bytes: int = 20_000_000
    history_bytes: int = 50_000_000
    buffer_events: int = 2_000
    buffer_chars: int = 1_000_000
    kept_runs: int = 1_000
    waiting_runs: int = 10_000
    retry_after_s: float = 5.0
