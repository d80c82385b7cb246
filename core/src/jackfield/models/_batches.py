"""Send many requests with limited concurrency. A failed request does not affect the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Protocol

from jackfield._fitting import check_count
from jackfield.config import checked_list
from jackfield.errors import ConfigError, JackfieldError
from jackfield.messages import Messages, ModelResponse, as_messages, refuse_empty_question
from jackfield.request import BatchAnswer, BatchRequest, FunctionSchema, GenerateOptions


class Model(Protocol):
    """The model methods that batches use."""

    async def acomplete(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> ModelResponse: ...


async def answers_as_completed(
    model: Model, requests: Iterable[Messages | BatchRequest], *, concurrency: int
) -> AsyncGenerator[tuple[int, BatchAnswer]]:
    """Yield (request index, answer) as each answer arrives; see `BaseChatModel.abatch_as_completed`."""
    check_count("concurrency", concurrency)
    pending = iter(enumerate(checked_list(requests, "requests", "questions")))
    running: dict[asyncio.Task[BatchAnswer], int] = {}
    try:
        while True:
            while len(running) < concurrency and (entry := next(pending, None)) is not None:
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


async def _answer(model: Model, request: Messages | BatchRequest) -> BatchAnswer:
    if not isinstance(request, BatchRequest):
        request = BatchRequest(request)
    try:
        history = as_messages(request.messages)
        refuse_empty_question(history)
    except ValueError as error:
        return ConfigError(f"invalid message in this request: {error}")
    try:
        return await model.acomplete(history, request.functions, config=request.config)
    except JackfieldError as error:
        return error
