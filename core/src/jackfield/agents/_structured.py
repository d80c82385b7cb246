"""Run agents that answer with data: request the data, validate the answer, and ask again if it does not match."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TypeVar, get_args

from jackfield._response_formats import response_format
from jackfield.agents._answer_tool import AnswerTool
from jackfield.answers import Form, MisfitError, asking_text, sent_back_text
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError, InvalidAnswerError
from jackfield.events import PluginEvent, RetryScheduled, RunFinished
from jackfield.messages import USER, Message, with_system_text
from jackfield.plurals import format_count
from jackfield.results import WAY_EVENT, Way, text_of_answer
from jackfield.runs._run import AgentLike, Event, Run
from jackfield.streams import closing

T = TypeVar("T")


def choose_way(agent: AgentLike, way: Way | None) -> Way:
    """Choose the strategy for making an agent's model follow an output format.

    Args:
        agent: The agent.
        way: The caller's choice, or None for the strictest strategy that the model supports.

    Raises:
        ConfigError: The strategy is unknown, or the agent kind does not support it.
    """
    if way not in (None, *get_args(Way)):
        raise ConfigError(f"unknown way {way!r}: use {', '.join(get_args(Way))}, or omit way")
    if way == "tool" and not agent.answers_by_tool:
        raise ConfigError(f"{type(agent).__name__} cannot answer with a tool call: pass way='prompt', or omit way")
    if way is not None:
        return way
    if agent.llm is None:
        return "prompt"
    facts = agent.llm.facts
    # If a request has tools, many servers enforce the schema and never let the model call a tool.
    if facts.json_schema and (facts.schema_with_tools or not (agent.function_map or agent.toolsets)):
        return "native"
    return "tool" if facts.native_tools and agent.answers_by_tool else "prompt"


async def end_in_data(agent: AgentLike, form: Form[T], run: Run, *, way: Way, attempts: int) -> AsyncIterator[Event]:
    """Yield the events of a run that ends with validated data, or at a limit.

    Args:
        agent: The agent to run.
        form: The output format.
        run: The run.
        way: The strategy for making the model follow the output format.
        attempts: The maximum number of answers that the model may give.

    Raises:
        ConfigError: `attempts` is less than 1.
        InvalidAnswerError: No answer matched the format.
    """
    if attempts < 1:
        raise ConfigError(f"attempts must be at least 1, got {attempts}")
    run = _asking_for(form, run, way)
    yield PluginEvent(WAY_EVENT, {"way": way})
    said: tuple[Message, ...] = ()
    for number in range(1, attempts + 1):
        attempt = _Attempt(run, said)
        async with closing(attempt.events(agent)) as events:
            async for event in events:
                yield event
        if attempt.end is None:  # the agent kind yielded no `RunFinished`, so there is no answer to read
            return
        said += attempt.end.messages
        problem = _problem(form, attempt.end)
        if not problem:
            yield replace(attempt.end, messages=said)
            return
        if number == attempts:
            raise _no_answer(attempts, problem, attempt.end)
        yield RetryScheduled(number, 0.0, f"the answer does not match: {problem}")
        sent_back = Message(USER, sent_back_text(problem, run.lang))
        said += (sent_back,)
        run = replace(run, start=run.start.after(attempt.spent))
        if run.record is not None:
            await run.record.added([sent_back])
    raise AssertionError("the last attempt must return or raise")


class _Attempt:
    """One attempt to get an answer that matches the output format.

    Attributes:
        end: The `RunFinished` event of this attempt, or None until the attempt ends.
        spent: The run's usage at the end of the attempt.
    """

    def __init__(self, run: Run, said: tuple[Message, ...]) -> None:
        self.end: RunFinished | None = None
        self.spent = run.start.spent
        start = replace(run.start, history=[]) if said else run.start
        self._run = replace(run, messages=(*run.messages, *said), asked=(*run.asked, *said), start=start)

    async def events(self, agent: AgentLike) -> AsyncIterator[Event]:
        """Yield all events except the last. Store the last event in `end`."""
        async with closing(agent.events(self._run)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    self.end = event
                    return
                self.spent = self.spent.plus(event)
                yield event


def _asking_for(form: Form[T], run: Run, way: Way) -> Run:
    """Return a run that asks its model for the data.

    If another agent takes over the conversation, that agent's model receives the schema in the prompt.
    """
    text = asking_text(form.sent, run.lang)
    run = replace(run, asked=tuple(with_system_text(run.asked, text, first=False)), ends_in_data=True)
    match way:
        case "native":
            config = (run.config or GenerateConfig()).merged({"response_format": response_format(form.sent)})
            return replace(run, config=config)
        case "tool":
            return replace(run, around=(*run.around, AnswerTool(form.sent)))
        case "prompt":
            return replace(run, messages=tuple(with_system_text(run.messages, text, first=False)))


def _problem(form: Form[T], end: RunFinished) -> str:
    """Return the reason why a finished run's answer does not match the format.

    Return '' if the answer matches or there is no answer yet.
    """
    if end.stop_reason not in ("finished", "empty_reply"):
        return ""
    try:
        form.read(text_of_answer(end.messages))
    except MisfitError as misfit:
        return str(misfit)
    return ""


def _no_answer(attempts: int, problem: str, end: RunFinished) -> InvalidAnswerError:
    error = InvalidAnswerError(
        f"the agent gave no valid answer in {format_count(attempts, 'attempt')}: {problem}",
        partial_text=text_of_answer(end.messages),
    )
    error.usage = end.usage
    return error
