"""Solve math problems with a model that writes its calculations as code blocks."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

from jackfield.agents import AgentOptions, Event, FnCallAgent, Run, RunState, Spent, ToolEntry, open_calls
from jackfield.config import GenerateConfig, LLMConfig
from jackfield.errors import ConfigError
from jackfield.events import ApprovalNeeded, RunFinished, StopReason, ToolFinished, TurnFinished
from jackfield.jsontext import dumps
from jackfield.messages import ASSISTANT, FUNCTION, USER, FunctionCall, Message, Usage, with_system_text
from jackfield.models import BaseChatModel
from jackfield.results import text_of_answer
from jackfield.streams import Interrupted, closing
from jackfield.tools import PlannedCall
from jackfield_agent_parts import GivenPrompts, Prompts

PROMPTS = Path(__file__).with_name("prompts.toml")
DEFAULT_TOOL = "code_interpreter"
OUTPUT = "```output"
_BLOCK = re.compile(r"^```(?:python|py)[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)

_STDOUT = re.compile(r"^stdout:\s*(?=^```)", re.MULTILINE)


class TIRMathAgent(FnCallAgent):
    """Agent that solves problems by running the last complete code block of each answer as Python.

    The model sees the output and continues. The history records each block as a call of the code tool, with its result.
    Approval, timeouts and tool-call limits therefore apply, and other agents can read the history.

    Args:
        function_list: The tool that runs code, with a single text parameter `code`. Defaults to `code_interpreter`.
        llm, system_message, name, description: See `Agent`.
        prompts: Prompts that override those in this package's `prompts.toml`.
        options: See `Agent`. `limits` defaults to `{"turns": 10}`.

    Raises:
        ConfigError: `function_list` does not contain exactly one tool.

    Source: Gou et al., ToRA: A Tool-Integrated Reasoning Agent for Mathematical Problem Solving, ICLR 2024.
    """

    supports_handoff: ClassVar[bool] = False
    resumable = True

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, Any] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        *,
        prompts: GivenPrompts = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        tools = [DEFAULT_TOOL] if function_list is None else list(function_list)
        if len(tools) != 1:
            raise ConfigError(f"this agent takes exactly one tool, one that runs code; got {len(tools)} tools")
        options = {"limits": {"turns": 10}, **options}
        super().__init__(tools, llm, system_message, name, description, **options)
        self._prompts = Prompts.read(PROMPTS, prompts)
        (self._tool,) = self.function_map

    async def events(self, run: Run) -> AsyncIterator[Event]:
        work = _Work(run)
        waiting = open_calls([*run.messages, *work.messages])
        if waiting and not run.resume:  # anyone who can write a history can write a call
            yield work.paused(waiting)
        elif not waiting and text_of_answer(work.messages):
            work.reason = "finished"  # interrupted after the last answer
        while work.reason is None:
            step = self._run_code(run, work, waiting) if waiting else self._answer(run, work)
            async with closing(step) as events:
                async for event in events:
                    yield event
            waiting = open_calls(work.messages)
        yield RunFinished(work.reason, tuple(work.messages), work.spent.usage)

    async def _answer(self, run: Run, work: _Work) -> AsyncIterator[Event]:
        """Ask for one answer, which stops where the model expects an output, and yield its events."""
        instructions = self._prompts.text("solve", run.lang)
        seen = with_system_text(_in_words([*run.messages, *work.messages]), instructions, first=False)
        config = (run.config or GenerateConfig()).merged({"stop": OUTPUT})
        part = replace(run, messages=seen, config=config, resume=False, start=RunState(spent=work.spent))
        end, call = RunFinished("finished", (), Usage()), list[Message]()
        async with closing(self.make_loop(functions=()).events(part)) as events:
            async for event in events:
                match event:
                    case RunFinished():
                        end = event
                        continue
                    case TurnFinished():  # together with the call, so that the record of a turn is complete
                        call = self._call_in(event, f"code_{len(work.messages)}_{run.id[:8]}")
                        yield replace(event, messages=(*event.messages, *call))
                    case _:
                        yield event
                work.spent = work.spent.plus(event)
        work.messages += [*end.messages, *call]
        if not call:
            work.reason = end.stop_reason

    def _call_in(self, turn: TurnFinished, call_id: str) -> list[Message]:
        """Return an answer's last code block as a tool call, or no message if there is no block to run."""
        code = _code_in(text_of_answer(turn.messages))
        if code is None:
            return []
        call = FunctionCall(self._tool, dumps({"code": code}))
        return [Message(ASSISTANT, "", name=self.name, function_call=call, extra={"function_id": call_id})]

    async def _run_code(self, run: Run, work: _Work, calls: Sequence[PlannedCall]) -> AsyncIterator[Event]:
        limit = run.limits.tool_calls
        if limit is not None and work.spent.tool_calls + len(calls) > limit:
            work.reason = "tool_call_limit"
            return
        executor, approve = self.executor.within(run.rules), run.approve or self.approve
        plan = await executor.plan(calls, approve=approve, answers=run.answers, in_doubt=run.start.in_doubt)
        if plan.waiting:
            yield work.paused(plan.waiting, plan.doubtful)
            return
        left: list[ToolFinished] = []
        made = executor.run(plan, run.context, left=left)
        async with closing(self._made(run, work, made, left)) as events:
            async for event in events:
                yield event

    async def _made(
        self, run: Run, work: _Work, calls: AsyncIterator[Event], left: Sequence[ToolFinished]
    ) -> AsyncIterator[Event]:
        """Run the calls, record their results in `work`, and yield the events."""
        try:
            async with closing(run.guarded(calls)) as events:
                async for event in events:
                    if isinstance(event, ToolFinished):
                        work.messages.append(event.message)
                        work.spent = work.spent.plus(event)
                    yield event
        except Interrupted:
            for result in left:
                work.messages.append(result.message)
                yield result
            work.reason = run.interruption


class _Work:
    """A run's messages and usage so far."""

    def __init__(self, run: Run) -> None:
        self.messages: list[Message] = list(run.start.made)
        self.spent: Spent = run.start.spent
        self.reason: StopReason | None = None

    def paused(self, calls: Sequence[PlannedCall], in_doubt: Collection[str] = ()) -> ApprovalNeeded:
        """Pause the run until these calls are approved or rejected."""
        self.reason = "approval_needed"
        ids = tuple(one.call_id for one in calls)
        return ApprovalNeeded(tuple(one.call for one in calls), ids, tuple(one for one in ids if one in in_doubt))


def _code_in(text: str) -> str | None:
    """Return the last complete code block, or None if there is none or the final answer (`\\boxed`) follows it."""
    text = text.partition(OUTPUT)[0]  # an invented output, if the server ignores stop sequences
    blocks = list(_BLOCK.finditer(f"{text}\n"))
    if not blocks or "\\boxed" in text[blocks[-1].end() :]:
        return None
    return blocks[-1][1]


def _without_fences(text: str) -> str:
    """Strip a code tool's own fences from its output, since they would end the surrounding block."""
    text = _STDOUT.sub("", text)
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("```"))


def _in_words(messages: Sequence[Message]) -> list[Message]:
    """Convert the conversation to this model's format, with code in its answers and each output in a block."""
    seen: list[Message] = []
    for message in messages:
        if message.role == FUNCTION:
            output = _without_fences(message.get_text_content()).strip()
            seen.append(Message(USER, f"{OUTPUT}\n{output}\n```"))
        elif not message.function_call:
            seen.append(message)
    return seen
