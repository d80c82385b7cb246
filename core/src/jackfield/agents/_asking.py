"""Ask an agent, and get one result. Functions over `astream`, and methods of agents."""

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
    """The options of a run; see `Agent.astream`. Agent kinds with further options extend this."""

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
    """The options that type checkers accept for every agent. If a kind does not take one, it raises `ConfigError`."""

    knowledge: object
    """For kinds that work with documents."""


class AskOptions(KnownOptions[Deps], Generic[Deps], total=False):
    """The options of `ask` and `stream`, except `output`."""

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
    """Run, and return the events as they happen, for `async for` or plain `for`; then `result` is set.

    Arguments and errors are those of `ask`.
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
    """Ask as `ask` does, from code in an event loop."""
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
    """Ask, and wait for the result.

    Args:
        messages: A question, a message, or a whole conversation, oldest first.
        output: The form of the answer: a pydantic model or any type that pydantic can validate, or a JSON Schema; the
            value is in `result.output`. None for text.
        history: The conversation so far: the result of the last question, or its `history`.
        options: Options of the run, as for `astream`.

    Raises:
        ConfigError: The agent does not take an option, or `output` is neither a type nor a JSON Schema.
        InvalidAnswerError: None of the answers has the requested form.
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
    """Resume as `resume` does, from code in an event loop."""
    if "resume" in options:
        raise ConfigError("resume() takes no option 'resume': pass the decisions as approvals={call_id: True}")
    if "run_id" in options:
        raise ConfigError("resume() takes no option 'run_id': pass the id of the run as its first argument")
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
    """Continue a recorded run where its record ends, and return its result. Another process may have started it.

    Recorded steps are not repeated. A call that was under way when the program ended is repeated if its tool is
    `read_only` or `idempotent`; otherwise the run pauses, and `ApprovalNeeded.in_doubt` names the call.

    Args:
        run_id: The id of the run, from `RunResult.run_id` or `jackfield runs list`.
        approvals: The decisions about pending calls, by call id: True, False or `Denial(reason)`.
        output: As for `ask`. Pass it again, because it is not recorded.
        options: Options of the run, as for `astream`, without `resume` and `run_id`.

    Raises:
        ConfigError: `options` has `resume` or `run_id`, or an option that the agent does not take.
        RunNotFoundError: The store has no run with this id.
        RunBusyError: Another process or task holds the run.
        StoreError: The run's record cannot be read or written.
        JackfieldError: The run failed.
    """
    return sync.run(aresume(agent, run_id, approvals=approvals, output=output, **options))
