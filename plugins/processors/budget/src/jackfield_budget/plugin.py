"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Return the budget, next to the backend: inside retries, so that each attempt is paid, and outside rate limits."""
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
