"""Qwen-Agent's methods, for subclasses of `Agent` that were written for Qwen-Agent."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

from jackfield import sync
from jackfield.agents._files import file_use_of
from jackfield.config import GenerateConfig, Lang
from jackfield.events import ResponseReplaced, RunFinished, StopReason
from jackfield.jsontext import dumps
from jackfield.messages import ContentItem, FunctionCall, Message, Messages, Usage, as_messages
from jackfield.models._base import BaseChatModel
from jackfield.request import FunctionSchema, GenerateOptions
from jackfield.runs._calls import with_calls_closed
from jackfield.runs._run import Event, Run
from jackfield.runs._view import RunView
from jackfield.streams import Interrupted, closing
from jackfield.tools._base import ToolContext
from jackfield.tools._executor import ToolExecutor
from jackfield.tools._plan import PlannedCall
from jackfield.tools._workspace import Workspace

_NAMED = frozenset({"name", "read_short"})
"""File uses that `chat` does not support. As in Qwen-Agent, the model then receives names, and the tools receive the
files."""

_RUN: ContextVar[Run | None] = ContextVar("run", default=None)
"""The run whose `_run` is executing, in the context of its worker thread."""


class QwenMethods:
    """Mixin with `_run`, `_call_llm`, `_call_tool` and `_detect_tool`, as in Qwen-Agent.

    `_run` and `events` are defined in terms of each other, so an agent kind must override one of them.
    """

    name: str | None
    executor: ToolExecutor
    workspace: Workspace
    reads_files: ClassVar[bool]
    extra_generate_cfg: GenerateConfig

    @property
    def model(self) -> BaseChatModel:
        """See `Agent.model`."""
        raise NotImplementedError

    def make_run(self, history: tuple[Message, ...], lang: Lang, **options: Any) -> Run:
        """See `Agent.make_run`."""
        raise NotImplementedError

    def events(self, run: Run) -> AsyncIterator[Event]:
        """See `Agent.events`."""
        raise NotImplementedError

    def _run(self, messages: list[Message], lang: Lang = "en", **options: Any) -> Iterator[list[Message]]:
        """Yield growing lists of messages, each with the entire response so far."""
        view = RunView(self.name)
        for batch in sync.batches(self.events(self.make_run(as_messages(messages), lang, **options))):
            changed = [view.feed(event) for event in batch]
            if any(changed):
                yield view.messages()

    async def _events_of_lists(self, run: Run) -> AsyncIterator[Event]:
        """Convert the lists that `_run` yields to events."""
        lists = self._run(list(run.messages), lang=run.lang, **run.options)
        last: tuple[Message, ...] = ()
        end: list[Message] = []
        is_abandoned = False
        reason: StopReason = "finished"

        async def growing() -> AsyncIterator[tuple[Message, ...]]:
            nonlocal is_abandoned
            try:
                while (now := await sync.in_worker(_next_in, run, lists, end)) is not end:
                    yield as_messages(now)
            except asyncio.CancelledError as error:
                is_abandoned = sync.is_abandoned(error)
                raise

        try:
            async with closing(run.guarded(growing())) as responses:
                async for last in responses:
                    yield ResponseReplaced(last)
        except Interrupted:
            reason, last = run.interruption, tuple(with_calls_closed(last))
        finally:
            close = getattr(lists, "close", None)
            if close is not None and not is_abandoned:  # a running generator cannot be closed
                await sync.in_worker(close)
        yield RunFinished(reason, last, Usage())

    def _options_of_lists(self, given: Iterable[str]) -> list[str]:
        """Return the options that `_run` accepts: its parameters, or all of `given` if it has `**kwargs`."""
        parameters = inspect.signature(type(self)._run).parameters
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            return [*given]
        return [name for name in parameters if name not in ("self", "messages")]

    def _call_llm(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] | None = None,
        stream: bool = True,
        extra_generate_cfg: GenerateOptions = None,
    ) -> Iterator[list[Message]]:
        """Call the agent's model and yield growing lists of messages, or a single list if `stream` is False."""
        run = _RUN.get()
        own: object = self
        config = self.extra_generate_cfg
        if run is not None and run.agent is own and run.config is not None:
            config = run.config
        config = config.merged(extra_generate_cfg)
        if file_use_of(self.executor.tools.values(), reads_files=self.reads_files) in _NAMED:
            from jackfield.attachments import name_files  # for this form of requests only

            messages = name_files(as_messages(messages))
        if stream:
            yield from self.model.chat(messages, functions, extra_generate_cfg=config)
        else:
            yield self.model.chat(messages, functions, stream=False, extra_generate_cfg=config)

    def _call_tool(
        self, tool_name: str, tool_args: str | Mapping[str, Any] = "{}", **_: Any
    ) -> str | list[ContentItem]:
        """Call one of the agent's tools, and return the result as the model receives it.

        Within a run of the agent, the tool can access the run's files, deps and open resources, and the rules of parent
        agents apply.
        """
        text = tool_args if isinstance(tool_args, str) else dumps(tool_args)
        planned = PlannedCall(0, "1", FunctionCall(tool_name, text))
        run = _RUN.get()
        own: object = self
        if run is None or run.agent is not own:
            return sync.run(self.executor.finish(planned, ToolContext(workspace=self.workspace))).message.content
        executor = self.executor.within(run.rules)
        work = executor.finish(planned, run.context, approve=run.approve)
        return sync.run(work).message.content

    def _detect_tool(self, message: Message) -> tuple[bool, str | None, str | None, str]:
        """Return (is a call, tool name, arguments, message text)."""
        call = message.function_call
        if call is None:
            return False, None, None, message.get_text_content()
        return True, call.name, call.arguments, message.get_text_content()


def _next_in(run: Run, lists: Iterator[list[Message]], end: list[Message]) -> list[Message]:
    _RUN.set(run)  # each call in a worker thread runs in its own context
    return next(lists, end)
