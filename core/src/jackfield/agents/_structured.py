"""Runs whose answer is data: asked for in words the model understands, validated, and sent back if it does not fit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TypeVar

from jackfield._response_formats import response_format
from jackfield.answers import Form, MisfitError, asking_text, sent_back_text
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError, InvalidAnswerError
from jackfield.events import RetryScheduled, RunFinished
from jackfield.messages import USER, Message, with_system_text
from jackfield.results import text_of_answer
from jackfield.runs._run import AgentLike, Event, Run
from jackfield.streams import closing

T = TypeVar("T")


async def end_in_data(agent: AgentLike, form: Form[T], run: Run, *, attempts: int) -> AsyncIterator[Event]:
    """Yield the events of a run that ends in data, or at a limit.

    Args:
        agent: The agent of the run.
        form: The form of the data.
        run: The run.
        attempts: The number of times that the model may answer.

    Raises:
        ConfigError: `attempts` is less than 1.
        InvalidAnswerError: None of the answers fits.
    """
    if attempts < 1:
        raise ConfigError(f"attempts must be at least 1, got {attempts}")
    run = _asking_for(form, run, native=_is_held_to_schemas(agent))
    said: tuple[Message, ...] = ()
    for number in range(1, attempts + 1):
        attempt = _Attempt(run, said)
        async with closing(attempt.events(agent)) as events:
            async for event in events:
                yield event
        if attempt.end is None:  # an agent kind that ends without a word: nothing can be read from it
            return
        said += attempt.end.messages
        problem = _problem(form, attempt.end)
        if not problem:
            yield replace(attempt.end, messages=said)
            return
        if number == attempts:
            raise _no_answer(attempts, problem, attempt.end)
        yield RetryScheduled(number, 0.0, f"the answer does not fit: {problem}")
        sent_back = Message(USER, sent_back_text(problem, run.lang))
        said += (sent_back,)
        run = replace(run, start=run.start.after(attempt.spent))
        if run.record is not None:
            await run.record.added([sent_back])
    raise AssertionError("the last attempt returns or raises")


def _is_held_to_schemas(agent: AgentLike) -> bool:
    """Return True if the model's server enforces schemas. Not with tools: many servers then allow no calls."""
    return agent.llm is not None and agent.llm.facts.json_schema and not (agent.function_map or agent.toolsets)


class _Attempt:
    """One answer of a run, after earlier ones that did not fit.

    Attributes:
        end: Its end; None before that.
        spent: The usage of the run until then.
    """

    def __init__(self, run: Run, said: tuple[Message, ...]) -> None:
        self.end: RunFinished | None = None
        self.spent = run.start.spent
        start = replace(run.start, history=[]) if said else run.start
        self._run = replace(run, messages=(*run.messages, *said), asked=(*run.asked, *said), start=start)

    async def events(self, agent: AgentLike) -> AsyncIterator[Event]:
        """Yield its events, without the end."""
        async with closing(agent.events(self._run)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    self.end = event
                    return
                self.spent = self.spent.plus(event)
                yield event


def _asking_for(form: Form[T], run: Run, *, native: bool) -> Run:
    """Return the run, changed so that it asks the model for the data."""
    if native:
        config = (run.config or GenerateConfig()).merged({"response_format": response_format(form.sent)})
        return replace(run, config=config)
    text = asking_text(form.sent, run.lang)
    messages, asked = (with_system_text(history, text, first=False) for history in (run.messages, run.asked))
    return replace(run, messages=messages, asked=asked)


def _problem(form: Form[T], end: RunFinished) -> str:
    """Return the reason why the answer of a finished run does not fit; '' if it fits, or if there is no answer yet."""
    if end.stop_reason not in ("finished", "empty_reply"):
        return ""
    try:
        form.read(text_of_answer(end.messages))
    except MisfitError as misfit:
        return str(misfit)
    return ""


def _no_answer(attempts: int, problem: str, end: RunFinished) -> InvalidAnswerError:
    error = InvalidAnswerError(
        f"the agent gave no answer that fits, after {attempts} attempts: {problem}",
        partial_text=text_of_answer(end.messages),
    )
    error.usage = end.usage
    return error
