"""Methods that call a model and return a single result. All methods are built on `acomplete`."""

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
    """Options for `ask`, other than `output`."""

    history: History
    attempts: int
    config: GenerateOptions


class Asking(ABC):
    """Base class of `BaseChatModel`, with the methods that call the model and return a single result."""

    config: LLMConfig

    @property
    @abstractmethod
    def facts(self) -> ModelFacts:
        """The model's capabilities."""

    @abstractmethod
    async def acomplete(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> ModelResponse:
        """Return one complete answer."""

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
        """Ask the model from async code; see `ask`."""
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
        """Ask the model and wait for the complete answer.

        Args:
            messages: A question, a message, or a whole conversation, oldest message first.
            output: The output type, as for `aparse`. The validated value is in `result.output`. If None, the answer is
                text.
            history: The conversation so far: the previous result, or its `history`.
            attempts: The maximum number of requests to send to get an answer that matches `output`.
            config: Options for this request, which override the model's options.

        Raises:
            InvalidAnswerError: No answer matched `output`.
            ConfigError: `output` is neither a type nor a JSON Schema.
            ModelServiceError: The model could not answer.
        """
        return sync.run(self.aask(messages, output=output, **options))

    def quick_chat(self, prompt: str) -> str:
        """Ask one question and return the text of the answer, without its reasoning."""
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
        """Ask for structured data, and return the validated value.

        Args:
            messages: One question, or a conversation.
            wanted: The output type: a pydantic model or any other type that pydantic can validate. With a JSON Schema,
                the value is plain JSON data.
            way: The strategy for making the model follow `wanted`: `native`, `tool` or `prompt`. Defaults to the
                strictest strategy that the model supports.
            attempts: The maximum number of requests. Answers that do not match are returned to the model with the
                validation errors.
            config: Options for this request, which override the model's options.

        Raises:
            InvalidAnswerError: No answer matched `wanted`.
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
        """Ask for structured data from synchronous code; see `aparse`."""
        return sync.run(self.aparse(messages, wanted, way=way, attempts=attempts, config=config))

    # --- many requests ---

    async def abatch(
        self, requests: Iterable[Messages | BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
    ) -> list[BatchAnswer]:
        """Answer independent requests and return the answers in order. Failed requests return their error.

        Args:
            requests: Questions, conversations, or `BatchRequest`s.
            concurrency: The maximum number of requests in flight.
        """
        answers = self.abatch_as_completed(requests, concurrency=concurrency)
        by_number = {number: answer async for number, answer in answers}
        return [by_number[number] for number in range(len(by_number))]

    def batch(
        self, requests: Iterable[Messages | BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
    ) -> list[BatchAnswer]:
        """Answer a batch of requests from synchronous code; see `abatch`."""
        return sync.run(self.abatch(requests, concurrency=concurrency))

    def abatch_as_completed(
        self, requests: Iterable[Messages | BatchRequest], *, concurrency: int = DEFAULT_CONCURRENCY
    ) -> AsyncGenerator[tuple[int, BatchAnswer]]:
        """Answer independent requests and yield (request index, answer) as each answer arrives. Indexes start at 0.

        Each request is taken from the iterable only when it is sent, so the iterable can be long or a generator.
        Closing the returned generator cancels requests that are in flight. Arguments are the same as for `abatch`.

        Raises:
            ConfigError: `concurrency` is less than 1.
        """
        from jackfield.models._batches import answers_as_completed

        return answers_as_completed(self, requests, concurrency=concurrency)
