"""More ways to ask a model: for data, and many times at once. Functions over `acomplete`, and methods of models."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, overload

from typing_extensions import TypeVar as DefaultTypeVar

from jackfield import sync
from jackfield._lazy import needed
from jackfield.errors import JackfieldError
from jackfield.messages import MessageLike, Messages, ModelResponse, as_messages
from jackfield.request import FunctionSchema, GenerateOptions
from jackfield.results import Output, RunResult, Structured, Way, text_of_answer

T = TypeVar("T")
Out = DefaultTypeVar("Out", default=str)
DEFAULT_CONCURRENCY = 16
BatchAnswer = ModelResponse | JackfieldError
"""The answer to a request of a batch, or the error that came instead."""


class Model(Protocol):
    """See `BaseChatModel`."""

    async def acomplete(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> ModelResponse: ...


@overload
async def aask(
    model: Model,
    messages: Messages,
    *,
    output: Mapping[str, Any],
    history: Sequence[MessageLike] = (),
    attempts: int = 3,
    config: GenerateOptions = None,
) -> RunResult[Any]: ...
@overload
async def aask(
    model: Model,
    messages: Messages,
    *,
    output: type[Out] | None = None,
    history: Sequence[MessageLike] = (),
    attempts: int = 3,
    config: GenerateOptions = None,
) -> RunResult[Out]: ...
async def aask(
    model: Model,
    messages: Messages,
    *,
    output: Output[Any] = None,
    history: Sequence[MessageLike] = (),
    attempts: int = 3,
    config: GenerateOptions = None,
) -> RunResult[Any]:
    """The same as `ask`, for code in an event loop."""
    asked = (*as_messages(history), *as_messages(messages))
    began = time.monotonic()
    data: Any = None
    if output is None:
        response = await model.acomplete(asked, config=config)
    else:
        found: Structured[Any] = await aparse(model, asked, output, attempts=attempts, config=config)
        response, data = found.response, found.value
    said = tuple(response.messages)
    text = text_of_answer(said)
    return RunResult(
        messages=said,
        history=(*asked, *said),
        usage=response.usage,
        stop_reason="finished" if any(message.content for message in said) or data is not None else "empty_reply",
        finish_reason=response.finish_reason,
        seconds=time.monotonic() - began,
        data=text if output is None else data,
    )


@overload
def ask(
    model: Model,
    messages: Messages,
    *,
    output: Mapping[str, Any],
    history: Sequence[MessageLike] = (),
    attempts: int = 3,
    config: GenerateOptions = None,
) -> RunResult[Any]: ...
@overload
def ask(
    model: Model,
    messages: Messages,
    *,
    output: type[Out] | None = None,
    history: Sequence[MessageLike] = (),
    attempts: int = 3,
    config: GenerateOptions = None,
) -> RunResult[Out]: ...
def ask(
    model: Model,
    messages: Messages,
    *,
    output: Output[Any] = None,
    history: Sequence[MessageLike] = (),
    attempts: int = 3,
    config: GenerateOptions = None,
) -> RunResult[Any]:
    """Ask, and wait for the whole answer.

    Args:
        messages: A question, a message, or a whole conversation, oldest first.
        output: The form of the answer, as for `aparse`; `result.output` has the data. None for text.
        history: The conversation so far, as in `RunResult.history`.
        attempts: How often it is asked, at most, for data that fits.
        config: Options for this answer, over those of the model.

    Raises:
        InvalidAnswerError: None of its answers is the data that was asked for.
        ConfigError: `output` is neither a type nor a JSON Schema.
        ModelServiceError: The model could not answer.
    """
    return sync.run(aask(model, messages, output=output, history=history, attempts=attempts, config=config))


def quick_chat(model: Model, prompt: str) -> str:
    """The text of the answer to one question, without its reasoning."""
    return sync.run(model.acomplete(prompt)).get_content()


async def aparse(
    model: Model,
    messages: Messages,
    wanted: type[T] | Mapping[str, Any],
    *,
    way: Way | None = None,
    attempts: int = 3,
    config: GenerateOptions = None,
) -> Structured[T]:
    """An answer as data.

    Args:
        messages: The history, or one question.
        wanted: A pydantic model or any type pydantic can validate; or a JSON Schema, for plain values.
        way: How the model is made to follow it; chosen by its facts if None.
        attempts: How often it is asked, at most; an answer that does not fit is sent back with the reasons.
        config: Options for this answer, over those of the model.

    Raises:
        InvalidAnswerError: None of its answers fits.
        ConfigError: `wanted` is neither a type nor a JSON Schema.
        ModelServiceError: The model could not answer.
    """
    ask_for = needed("jackfield_answers.models", "aparse", "an answer as data needs jackfield-answers")
    found: Structured[T] = await ask_for(model, messages, wanted, way=way, attempts=attempts, config=config)
    return found


def parse(
    model: Model,
    messages: Messages,
    wanted: type[T] | Mapping[str, Any],
    *,
    way: Way | None = None,
    attempts: int = 3,
    config: GenerateOptions = None,
) -> Structured[T]:
    """The same as `aparse`, for synchronous code."""
    return sync.run(aparse(model, messages, wanted, way=way, attempts=attempts, config=config))


async def abatch(model: Model, requests: Iterable[Any], *, concurrency: int = DEFAULT_CONCURRENCY) -> list[BatchAnswer]:
    """The answers to independent requests, in the order of the requests; for one that failed, its error.

    Args:
        requests: Each a question, a history, or a `jackfield_answers.Asked`.
        concurrency: How many are sent at the same time.
    """
    by_number = {
        number: answer async for number, answer in abatch_as_completed(model, requests, concurrency=concurrency)
    }
    return [by_number[number] for number in range(len(by_number))]


def batch(model: Model, requests: Iterable[Any], *, concurrency: int = DEFAULT_CONCURRENCY) -> list[BatchAnswer]:
    """The same as `abatch`, for synchronous code."""
    return sync.run(abatch(model, requests, concurrency=concurrency))


def abatch_as_completed(
    model: Model, requests: Iterable[Any], *, concurrency: int = DEFAULT_CONCURRENCY
) -> AsyncIterator[tuple[int, BatchAnswer]]:
    """As `abatch`, but yields each answer as it comes, with the number of its request (from 0); for large batches."""
    answers = needed("jackfield_answers.batches", "answers", "a batch needs jackfield-answers")
    coming: AsyncIterator[tuple[int, BatchAnswer]] = answers(model, requests, concurrency=concurrency)
    return coming
