"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer the budget processor.

    The budget runs close to the backend: inside retries, so that every attempt is charged, and outside rate limits.
    """
    return [
        ProcessorSpec(
            name="budget",
            target="jackfield_budget.processor:Budget",
            config="jackfield_budget.config:BudgetConfig",
            summary="Reports what answers cost, from dated price tables, and stops at a limit.",
            phase="transport",
            after=("retry",),
            before=("rate_limits",),
            effects=frozenset({"files"}),
        )
    ]
