"""Run an agent and return a single result. `Agent` exposes these functions as methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypedDict, Unpack, overload

from typing_extensions import TypeVar

from jackfield import sync
from jackfield._resources import RunResources
from jackfield.config import Lang
from jackfield.errors import ConfigError
from jackfield.events import PreparationProgress
from jackfield.messages import Messages, as_messages
from jackfield.results import History, Output, RunResult, RunStream, Way, messages_so_far
from jackfield.runs._run import AgentLike, RunConfig
from jackfield.streams import CancelToken
from jackfield.tools._base import Deps
from jackfield.tools._rules import Approve, Ask, Decision

T = TypeVar("T", default=str)


class RunOptions(TypedDict, Generic[Deps], total=False):
    """Options for a run; see `Agent.astream`. Agent kinds with additional options extend this class."""

    lang: Lang | None
    cancel: CancelToken | None
    resources: RunResources | None
    resume: bool | Mapping[str, Decision]
    approve: Approve | None
    ask: Ask | None
    deps: Deps
    config: RunConfig
    way: Way | None
    attempts: int
    session: str
    run_id: str | None


class KnownOptions(RunOptions[Deps], Generic[Deps], total=False):
    """Options that type checkers accept for every agent. Unsupported options raise `ConfigError`."""

    knowledge: object
    """Used by kinds that work with documents."""


class AskOptions(KnownOptions[Deps], Generic[Deps], total=False):
    """Options for `ask` and `stream`, other than `output`."""

    history: History


@overload
def stream(
    agent: AgentLike[Deps], messages: Messages, *, output: Mapping[str, object], **options: Unpack[AskOptions[Deps]]
) -> RunStream[Any]: ...
@overload
def stream(
    agent: AgentLike[Deps], messages: Messages, *, output: type[T] | None = None, **options: Unpack[AskOptions[Deps]]
) -> RunStream[T]: ...
def stream(
    agent: AgentLike[Deps],
    messages: Messages,
    *,
    output: Output[Any] = None,
    history: History = (),
    **options: Unpack[KnownOptions[Deps]],
) -> RunStream[Any]:
    """Run the agent and return a stream of its events, for `async for` or plain `for`.

    The stream's `result` is set after the last event. Arguments and errors are the same as for `ask`.
    """
    asked = (*messages_so_far(history), *as_messages(messages))
    read: Callable[[str], Any] = str
    if output is None:
        events = agent.astream(asked, **options)
    else:
        from jackfield.answers import form_of

        form = form_of(output)
        events, read = agent.astream(asked, output=form, **options), form.read
    if options.get("run_id") is None:
        return RunStream(events, asked, read)
    return RunStream(events, None, read, system_text=agent.system_message)


@overload
async def aask(
    agent: AgentLike[Deps], messages: Messages, *, output: Mapping[str, object], **options: Unpack[AskOptions[Deps]]
) -> RunResult[Any]: ...
@overload
async def aask(
    agent: AgentLike[Deps], messages: Messages, *, output: type[T] | None = None, **options: Unpack[AskOptions[Deps]]
) -> RunResult[T]: ...
async def aask(
    agent: AgentLike[Deps], messages: Messages, *, output: Output[Any] = None, **options: Unpack[AskOptions[Deps]]
) -> RunResult[Any]:
    """Ask the agent from async code; see `ask`."""
    progress = None
    async with stream(agent, messages, output=output, **options) as events:
        async for event in events:
            if isinstance(event, PreparationProgress):
                if progress is None:
                    from jackfield.display import ProgressOutput

                    progress = ProgressOutput()
                progress.show(event.text)
            elif progress is not None:
                progress.clear()
    return events.result


@overload
def ask(
    agent: AgentLike[Deps], messages: Messages, *, output: Mapping[str, object], **options: Unpack[AskOptions[Deps]]
) -> RunResult[Any]: ...
@overload
def ask(
    agent: AgentLike[Deps], messages: Messages, *, output: type[T] | None = None, **options: Unpack[AskOptions[Deps]]
) -> RunResult[T]: ...
def ask(
    agent: AgentLike[Deps], messages: Messages, *, output: Output[Any] = None, **options: Unpack[AskOptions[Deps]]
) -> RunResult[Any]:
    """Ask the agent and wait for the result.

    Args:
        messages: A question, a message, or a whole conversation, oldest message first.
        output: The output type: a pydantic model, any other type that pydantic can validate, or a JSON Schema. The
            validated value is in `result.output`. If None, the answer is text.
        history: The conversation so far: the previous result, or its `history`.
        options: Additional options for the run; see `Agent.astream`.

    Raises:
        ConfigError: The agent does not support an option, or `output` is neither a type nor a JSON Schema.
        InvalidAnswerError: No answer matched `output`.
        JackfieldError: The run failed.
    """
    return sync.run(aask(agent, messages, output=output, **options))


async def aresume(
    agent: AgentLike[Deps],
    run_id: str,
    /,
    *,
    approvals: Mapping[str, Decision] | None = None,
    output: Output[Any] = None,
    **options: Unpack[KnownOptions[Deps]],
) -> RunResult[Any]:
    """Resume a recorded run from async code; see `resume`."""
    if "resume" in options:
        raise ConfigError("resume() takes no option 'resume': pass the decisions as approvals={call_id: True}")
    if "run_id" in options:
        raise ConfigError("resume() takes no option 'run_id': pass the run ID as the first argument")
    options["run_id"], options["resume"] = run_id, approvals or True
    return await aask(agent, (), output=output, **options)


def resume(
    agent: AgentLike[Deps],
    run_id: str,
    /,
    *,
    approvals: Mapping[str, Decision] | None = None,
    output: Output[Any] = None,
    **options: Unpack[KnownOptions[Deps]],
) -> RunResult[Any]:
    """Resume a recorded run and return its result. Another process may have started the run.

    The run continues where its record ends, without repeating recorded steps. A call that was in progress when the
    program exited is repeated if its tool is `read_only` or `idempotent`. Otherwise, the run pauses and lists the call
    in `ApprovalNeeded.in_doubt`.

    Args:
        run_id: The run's id, from `RunResult.run_id` or `jackfield runs list`.
        approvals: Decisions about pending calls, keyed by call id. Each is True, False or `Denial(reason)`.
        output: The output type, as for `ask`. Runs do not record it, so pass it again.
        options: Options for the run, as for `Agent.astream`, except `resume` and `run_id`.

    Raises:
        ConfigError: `options` contains `resume`, `run_id` or an option that the agent does not support.
        RunNotFoundError: The store has no run with this id.
        RunBusyError: Another process or task has locked the run.
        StoreError: The run's record cannot be read or written.
        JackfieldError: The run failed.
    """
    return sync.run(aresume(agent, run_id, approvals=approvals, output=output, **options))
