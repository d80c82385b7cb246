"""Methods for subclasses of `Agent` that are written for Qwen-Agent: functions over its run, model and tools."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from jackfield import sync
from jackfield.agents import Agent, Event, Run, RunView
from jackfield.config import Lang
from jackfield.events import ResponseReplaced, RunFinished
from jackfield.jsontext import dumps
from jackfield.messages import ContentItem, FunctionCall, Message, Messages, Usage, as_messages
from jackfield.request import FunctionSchema, GenerateOptions
from jackfield.tools import PlannedCall, ToolContext


def run_of_events(agent: Agent, messages: list[Message], lang: Lang = "en", **options: Any) -> Iterator[list[Message]]:
    """The run as growing lists: each item is the whole response so far."""
    view = RunView(agent.name)
    for batch in sync.batches(agent._events(agent._make_run(as_messages(messages), lang, **options))):
        changed = [view.feed(event) for event in batch]
        if any(changed):
            yield view.messages()


_RUN: ContextVar[Run | None] = ContextVar("run", default=None)
"""The run whose `_run` is being executed, in the context of the worker thread that does so."""


def _next_in(run: Run, lists: Iterator[Any], end: list[Message]) -> Any:
    _RUN.set(run)  # in a context of its own: each call in a worker has one
    return next(lists, end)


def options_of_run(agent: Agent, given: Iterable[str]) -> list[str]:
    """The options that the `_run` of a subclass takes: its own parameters, or whatever is given if it takes all."""
    parameters = inspect.signature(type(agent)._run).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return [*given]
    return [name for name in parameters if name not in ("self", "messages")]


async def events_of_run(agent: Agent, run: Run) -> AsyncIterator[Event]:
    """The run of a subclass that writes `_run`: its lists, as events."""
    lists = agent._run(list(run.messages), lang=run.lang, **run.options)
    last: tuple[Message, ...] = ()
    end: list[Message] = []
    try:
        while (now := await sync.in_worker(_next_in, run, lists, end)) is not end:
            last = as_messages(now)
            yield ResponseReplaced(last)
    finally:
        close = getattr(lists, "close", None)
        if close is not None:
            await sync.in_worker(close)
    yield RunFinished("finished", last, Usage())


def call_llm(
    agent: Agent,
    messages: Messages,
    functions: Sequence[FunctionSchema] | None = None,
    stream: bool = True,
    extra_generate_cfg: GenerateOptions = None,
) -> Iterator[list[Message]]:
    """Ask the agent's model; growing lists, or one list if not streamed."""
    config = agent.extra_generate_cfg.merged(extra_generate_cfg)
    if stream:
        yield from agent.model.chat(messages, functions, extra_generate_cfg=config)
    else:
        yield agent.model.chat(messages, functions, stream=False, extra_generate_cfg=config)


def call_tool(
    agent: Agent, tool_name: str, tool_args: str | Mapping[str, Any] = "{}", **_: Any
) -> str | list[ContentItem]:
    """Call one of the agent's tools and wait for its result, in the form a model reads.

    In a run of the agent, the tool gets what belongs to the run (files, deps, what it keeps open), and the rules of
    agents above hold.
    """
    text = tool_args if isinstance(tool_args, str) else dumps(tool_args)
    planned = PlannedCall(0, "1", FunctionCall(tool_name, text))
    run = _RUN.get()
    if run is None or run.agent is not agent:
        return sync.run(agent.executor.finish(planned, ToolContext(workspace=agent.workspace))).message.content
    executor = agent.executor.within(run.rules)
    return sync.run(executor.finish(planned, run.context, approve=run.approve or agent.approve)).message.content


def detect_tool(_agent: Agent, message: Message) -> tuple[bool, str | None, str | None, str]:
    """Whether a message is a call, its tool's name, its arguments, and its text."""
    call = message.function_call
    if call is None:
        return False, None, None, message.get_text_content()
    return True, call.name, call.arguments, message.get_text_content()
