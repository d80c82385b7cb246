"""A service's limits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLimits:
    """The limits for each process of a service. None means unlimited.

    Attributes:
        runs: The number of concurrent runs. Further runs wait in a queue.
        runs_per_owner: The number of concurrent runs per owner, including queued ones.
        queue: The number of queued runs.
        run_s: The time limit for a run in seconds, from its start to its end or pause.
        input_bytes: The size of a request's messages as JSON, including media.
        history_bytes: The size of the conversation that a run continues.
        buffer_events: The number of live events to buffer per run. Older ones are read from the store.
        buffer_chars: The number of characters of live events to buffer per run.
        kept_runs: The number of ended runs to keep without a store. The oldest are forgotten.
        waiting_runs: The number of runs that may await human input without a store. At this number, no more runs start.
        retry_after_s: The number of seconds after which a rejected client should retry.
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
