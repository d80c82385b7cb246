"""Methods that ask a model and return one result, all built on `acomplete`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Unpack, overload

from typing_extensions import TypeVar as TypeVarWithDefault

from jackfield import sync
from jackfield._fitting import check_count
from jackfield.config import LLMConfig
from jackfield.messages import Messages, ModelResponse, as_messages, refuse_empty_question
from jackfield.request import BatchAnswer, BatchRequest, FunctionSchema, GenerateOptions, ModelFacts
from jackfield.results import History, Output, RunResult, Structured, Way, messages_so_far, text_of_answer

T = TypeVar("T")
Out = TypeVarWithDefault("Out", default=str)

DEFAULT_CONCURRENCY = 16


class AskOptions(TypedDict, total=False):
    """The options of `ask`, except `output`."""

    history: History
    attempts: int
    config: GenerateOptions


class Asking(ABC):
    """The methods of a model that ask it and return one result; a base of `BaseChatModel`."""

    config: LLMConfig

    @property
    @abstractmethod
    def facts(self) -> ModelFacts:
        """The model's abilities."""

    @abstractmethod
    async def acomplete(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> ModelResponse:
        """Return one whole answer."""

    # --- an answer with its history, usage and data ---

    @overload
    async def aask(
        self, messages: Messages, *, output: Mapping[str, object], **options: Unpack[AskOptions]
    ) -> RunResult[Any]: ...
    @overload
    async def aask(
        self, messages: Messages, *, output: type[Out] | None = None, **options: Unpack[AskOptions]
    ) -> RunResult[Out]: ...
    async def aask(
        self,
        messages: Messages,
        *,
        output: Output[Any] = None,
        history: History = (),
        attempts: int = 3,
        config: GenerateOptions = None,
    ) -> RunResult[Any]:
        """Ask as `ask` does, from code in an event loop."""
        check_count("attempts", attempts)
        conversation = (*messages_so_far(history), *as_messages(messages))
        refuse_empty_question(conversation)
        started = time.monotonic()
        data: Any = None
        if output is None:
            response = await self.acomplete(conversation, config=config)
        else:
            structured = await self.aparse(conversation, output, attempts=attempts, config=config)
            response, data = structured.response, structured.value
        answer = tuple(response.messages)
        has_answer = data is not None or any(message.content for message in answer)
        return RunResult(
            messages=answer,
            history=(*conversation, *answer),
            usage=response.usage,
            stop_reason="finished" if has_answer else "empty_reply",
            finish_reason=response.finish_reason,
            warnings=response.warnings,
            seconds=time.monotonic() - started,
            data=text_of_answer(answer) if output is None else data,
        )

    @overload
    def ask(
        self, messages: Messages, *, output: Mapping[str, object], **options: Unpack[AskOptions]
    ) -> RunResult[Any]: ...
    @overload
    def ask(
        self, messages: Messages, *, output: type[Out] | None = None, **options: Unpack[AskOptions]
    ) -> RunResult[Out]: ...
    def ask(self, messages: Messages, *, output: Output[Any] = None, **options: Unpack[AskOptions]) -> RunResult[Any]:
        """Ask, and wait for the whole answer.

        Args:
            messages: A question, a message, or a whole conversation, oldest first.
            output: The form of the answer, as for `aparse`; `result.output` has the data. None for text.
            history: The conversation so far: the result of the last question, or its `history`.
            attempts: The maximum number of requests until an answer fits `output`.
            config: Options for this answer; they override the model's.

        Raises:
            InvalidAnswerError: No answer has the requested form.
            ConfigError: `output` is neither a type nor a JSON Schema.
            ModelServiceError: The model could not answer.
        """
        return sync.run(self.aask(messages, output=output, **options))

    def quick_chat(self, prompt: str) -> str:
        """Return the text of the answer to one question, without its reasoning."""
        return sync.run(self.acomplete(prompt)).get_content()

    # --- data ---

    async def aparse(
        self,
        messages: Messages,
        wanted: type[T] | Mapping[str, object],
        *,
        way: Way | None = None,
        attempts: int = 3,
        config: GenerateOptions = None,
    ) -> Structured[T]:
        """Ask for an answer that is data.

        Args:
            messages: The history, or one question.
            wanted: A pydantic model or any type that pydantic can validate, or a JSON Schema, for plain values.
            way: The way to make the model follow `wanted`; None for the strictest way that the model supports.
            attempts: The maximum number of requests. Answers that do not fit are sent back with the reasons.
            config: Options for this answer; they override the model's.

        Raises:
            InvalidAnswerError: No answer has the requested form.
            ConfigError: `wanted` is neither a type nor a JSON Schema.
            ModelServiceError: The model could not answer.
        """
        from jackfield.models._structured import ask_for_data

        return await ask_for_data(self, messages, wanted, way=way, attempts=attempts, config=config)

    def parse(
        self,
        messages: Messages,
        wanted: type[T] | Mapping[str, object],
        *,
        way: Way | None = None,
        attempts: int = 3,
        config: GenerateOptions = None,
    ) -> Structured[T]:
        """Parse as `aparse` does, from synchronous code."""
        return sync.run(self.aparse(messages, wanted, way=way, attempts=attempts, config=config))

    # --- many requests ---

    async def abatch(
        self, requests: Iterable[Messages | BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
    ) -> list[BatchAnswer]:
        """Return the answers to independent requests, in order. A request that failed has its error as the answer.

        Args:
            requests: Questions, histories, or `BatchRequest`s.
            concurrency: The number of requests sent at the same time.
        """
        answers = self.abatch_as_completed(requests, concurrency=concurrency)
        by_number = {number: answer async for number, answer in answers}
        return [by_number[number] for number in range(len(by_number))]

    def batch(
        self, requests: Iterable[Messages | BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
    ) -> list[BatchAnswer]:
        """Answer a batch as `abatch` does, from synchronous code."""
        return sync.run(self.abatch(requests, concurrency=concurrency))

    def abatch_as_completed(
        self, requests: Iterable[Messages | BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
    ) -> AsyncGenerator[tuple[int, BatchAnswer]]:
        """Answer a batch as `abatch` does, but yield each answer when it arrives, with its request's number from 0.

        Requests are taken from the iterable only as they are sent, so it may be long or a generator. Closing the
        generator cancels running requests.

        Raises:
            ConfigError: `concurrency` is less than 1.
        """
        from jackfield.models._batches import answers_as_completed

        return answers_as_completed(self, requests, concurrency=concurrency)
