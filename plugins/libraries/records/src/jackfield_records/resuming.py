"""Go on with a recorded run: methods of agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from jackfield import sync
from jackfield.agents import Agent, RunOptions
from jackfield.results import Output, RunResult


async def aresume(
    agent: Agent,
    run_id: str,
    /,
    *,
    approvals: Mapping[str, bool] | None = None,
    output: Output[Any] = None,
    **options: Unpack[RunOptions],
) -> RunResult[Any]:
    """The same as `resume`, for code in an event loop."""
    options["run_id"], options["resume"] = run_id, approvals or True
    return await agent.aask((), output=output, **options)


def resume(
    agent: Agent,
    run_id: str,
    /,
    *,
    approvals: Mapping[str, bool] | None = None,
    output: Output[Any] = None,
    **options: Unpack[RunOptions],
) -> RunResult[Any]:
    """Go on with a run of the agent's store where its record ends, in whichever process that was; give its result.

    What is recorded is not done again. A call that was under way when the program ended is made again if its tool is
    `read_only` or `idempotent`; otherwise the run pauses, and names it in `ApprovalNeeded.in_doubt`.

    Args:
        run_id: `RunResult.run_id`, or as `jackfield runs list` shows it.
        approvals: What somebody has said to the calls that wait, by their ids.
        output: As for `ask`; a form is not recorded.
        options: Options of the run, as for `astream`.

    Raises:
        RunNotFoundError: The store has no such run.
        RunBusyError: Somebody else runs it.
        StoreError: Its record cannot be read or written.
        JackfieldError: The run failed.
    """
    return sync.run(aresume(agent, run_id, approvals=approvals, output=output, **options))
