"""Many requests: some at a time, answers in the order of the requests, and an error affects only its own request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jackfield import sync
from jackfield.config import checked_list
from jackfield.errors import ConfigError, JackfieldError
from jackfield.messages import USER, Message, Messages, ModelResponse, as_messages
from jackfield.models._structured import AskedModel
from jackfield.request import FunctionSchema, GenerateOptions


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a batch that needs more than messages. `config` is for this request, and overrides the model's."""

    messages: Messages
    functions: Sequence[FunctionSchema] = ()
    config: GenerateOptions = None


BatchRequest: TypeAlias = Messages | Asked
"""A question, or a history, or a history with its own tools and options."""

BatchAnswer: TypeAlias = ModelResponse | JackfieldError
"""The answer, or the error that came instead."""


DEFAULT_CONCURRENCY = 16


async def abatch(
    model: AskedModel, requests: Iterable[BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
) -> list[BatchAnswer]:
    """The answers to independent requests, in the order of the requests; for one that failed, its error.

    Args:
        model: Which is asked.
        requests: Each a question, a history, or an `Asked`.
        concurrency: How many are sent at the same time.
    """
    by_number = {number: one async for number, one in abatch_as_completed(model, requests, concurrency=concurrency)}
    return [by_number[number] for number in range(len(by_number))]


def batch(
    model: AskedModel, requests: Iterable[BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
) -> list[BatchAnswer]:
    """The same as `abatch`, for synchronous code."""
    return sync.run(abatch(model, requests, concurrency=concurrency))


async def abatch_as_completed(
    model: AskedModel, requests: Iterable[BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
) -> AsyncIterator[tuple[int, BatchAnswer]]:
    """As `abatch`, but each answer with its request's number, from 0, as soon as it arrives; for large batches.

    Requests are taken from the iterable only as they are sent, so it may be long, or be produced on the fly. Closing
    the generator cancels running requests.

    Raises:
        ConfigError: `concurrency` is less than 1.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency must be at least 1, got {concurrency}")
    waiting = iter(enumerate(checked_list(requests, "requests", "questions")))
    running: dict[asyncio.Task[BatchAnswer], int] = {}
    try:
        while True:
            while len(running) < concurrency and (entry := next(waiting, None)) is not None:
                number, request = entry
                running[asyncio.create_task(_answer(model, request))] = number
            if not running:
                return
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=running.__getitem__):
                yield running.pop(task), task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _answer(model: AskedModel, request: BatchRequest) -> BatchAnswer:
    if isinstance(request, str):
        asked = Asked([Message(USER, request)])
    else:
        asked = request if isinstance(request, Asked) else Asked(request)
    try:
        history = as_messages(asked.messages)
    except ValueError as error:
        return ConfigError(f"a message of this request is not valid: {error}")
    try:
        return await model.acomplete(history, asked.functions, config=asked.config)
    except JackfieldError as error:
        return error
