"""Qwen-Agent's model methods, which take message lists and return lists that grow as the answer streams in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, overload

from jackfield import sync
from jackfield.config import GenerateConfig, checked_list
from jackfield.errors import ConfigError
from jackfield.events import FunctionCallDelta, MediaDelta, ModelEvent, ReasoningDelta, TextDelta
from jackfield.messages import ASSISTANT, FunctionCall, Message, Messages, ModelResponse, as_messages, want_dicts
from jackfield.models._fold import Fold
from jackfield.models._retry import ONLY_BEFORE_OUTPUT
from jackfield.request import FunctionSchema, GenerateOptions


class QwenAgentMethods(ABC):
    """Base class of `BaseChatModel`, with the methods of Qwen-Agent's models."""

    backend: ClassVar[str]

    @property
    @abstractmethod
    def address(self) -> str:
        """The backend and model name."""

    @abstractmethod
    def astream(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] = (),
        *,
        config: GenerateOptions = None,
        metadata: Mapping[str, object] | None = None,
    ) -> AsyncIterator[ModelEvent]:
        """Yield the events of one answer."""

    @abstractmethod
    async def acomplete(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> ModelResponse:
        """Return one complete answer."""

    @overload
    def chat(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] | None = None,
        stream: Literal[True] = True,
        delta_stream: bool = False,
        extra_generate_cfg: GenerateOptions = None,
    ) -> Iterator[list[Any]]: ...
    @overload
    def chat(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] | None = None,
        *,
        stream: Literal[False],
        delta_stream: bool = False,
        extra_generate_cfg: GenerateOptions = None,
    ) -> list[Any]: ...
    def chat(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] | None = None,
        stream: bool = True,
        delta_stream: bool = False,
        extra_generate_cfg: GenerateOptions = None,
    ) -> Iterator[list[Any]] | list[Any]:
        """Call the model. If the messages are dicts, the answer consists of dicts, otherwise of `Message` objects.

        Args:
            messages: The conversation, with at least one message.
            functions: Schemas of the tools that the model can call.
            stream: False to return the complete answer as one list. True to return an iterator, which sends the request
                on the first call to `next`.
            delta_stream: True to stream only the new parts instead of the entire answer so far. After the first part,
                the request is never retried.
            extra_generate_cfg: Options for this call, which override the model's options.

        Raises:
            ValueError: There are no messages.
            ModelServiceError: The model could not answer.
        """
        if not messages:
            raise ConfigError("messages cannot be empty: pass at least one question")
        as_dicts = want_dicts(messages)
        tools = tuple(checked_list(() if functions is None else functions, "functions", "schemas"))
        if not stream:
            answer = sync.run(self.acomplete(messages, tools, config=extra_generate_cfg))
            return _as_caller_wants(answer.messages, as_dicts)
        if delta_stream:
            return self._deltas(messages, tools, extra_generate_cfg, as_dicts)
        return self._snapshots(messages, tools, extra_generate_cfg, as_dicts)

    def raw_chat(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] | None = None,
        stream: bool = True,
        generate_cfg: GenerateOptions = None,
    ) -> Iterator[list[Any]] | list[Any]:
        """Call the model like `chat`, but use the provider's native tool calls instead of a configured call format."""
        raw = GenerateConfig.parse(generate_cfg, what="generate_cfg").merged({"use_raw_api": True})
        if stream:
            return self.chat(messages, functions, extra_generate_cfg=raw)
        return self.chat(messages, functions, stream=False, extra_generate_cfg=raw)

    def quick_chat_oai(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Call the model in OpenAI's format. Messages, tools and the growing responses are dicts."""
        history = as_messages(messages)
        functions = tuple(checked_list(() if tools is None else tools, "tools", "schemas"))
        answer = Fold(self.backend)
        for batch in sync.batches(self.astream(history, functions)):
            for event in batch:
                answer.feed(event)
            yield to_openai(answer.response())
        answer.check_complete(self.address)

    def _snapshots(
        self, messages: Messages, functions: Sequence[FunctionSchema], config: GenerateOptions, as_dicts: bool
    ) -> Iterator[list[Any]]:
        def snapshots(batches: Iterator[list[ModelEvent]]) -> Iterator[list[Any]]:
            answer = Fold(self.backend)
            last: list[Message] = []
            # One snapshot covers everything that has arrived meanwhile. A consumer that keeps up sees every chunk.
            for batch in batches:
                for event in batch:
                    answer.feed(event)
                current = answer.messages()
                if current and current != last:
                    last = current
                    yield _as_caller_wants(current, as_dicts)
            answer.check_complete(self.address)

        return sync.stream(self.astream(messages, functions, config=config), snapshots)

    def _deltas(
        self, messages: Messages, functions: Sequence[FunctionSchema], config: GenerateOptions, as_dicts: bool
    ) -> Iterator[list[Any]]:
        answer = Fold(self.backend)
        calls: dict[int, _DeltaCall] = {}
        metadata = {ONLY_BEFORE_OUTPUT: True}
        for event in sync.iterate(self.astream(messages, functions, config=config, metadata=metadata)):
            answer.feed(event)
            delta = _delta_message(event, calls)
            if delta is not None:
                yield _as_caller_wants([delta], as_dicts)
        answer.check_complete(self.address)
        if answer.is_empty:
            yield _as_caller_wants(answer.messages(), as_dicts)


def to_openai(response: ModelResponse) -> dict[str, Any]:
    """Convert an answer to OpenAI's `chat.completion` object, as a dict."""
    reasoning = "".join(
        message.reasoning_content for message in response.messages if isinstance(message.reasoning_content, str)
    )
    message: dict[str, Any] = {"role": "assistant", "content": response.get_content(), "reasoning_content": reasoning}
    calls = [
        {
            "id": one.function_id,
            "type": "function",
            "function": {"name": one.function_call.name, "arguments": one.function_call.arguments},
        }
        for one in response.messages
        if one.function_call
    ]
    if calls:
        message["tool_calls"] = calls
    usage = response.usage
    return {
        "id": response.response_id,
        "object": "chat.completion",
        "created": response.created,
        "model": response.model,
        "choices": [{"index": 0, "message": message, "finish_reason": response.finish_reason}],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
        },
    }


def _as_caller_wants(messages: Sequence[Message], as_dicts: bool) -> list[Any]:
    return [message.model_dump() for message in messages] if as_dicts else list(messages)


def _delta_message(event: ModelEvent, calls: dict[int, _DeltaCall]) -> Message | None:
    """Return the part of the answer that an event adds, as a message, or None if it adds nothing."""
    match event:
        case TextDelta(text):
            return Message(ASSISTANT, text)
        case ReasoningDelta(text):
            return Message(ASSISTANT, "", reasoning_content=text)
        case MediaDelta(item):
            return Message(ASSISTANT, [item])
        case FunctionCallDelta():
            call = calls.setdefault(event.index, _DeltaCall(str(event.index + 1)))
            return call.message_of(event)
    return None


class _DeltaCall:
    """A call whose deltas are forwarded once its name is known. Each delta includes the call's id and name."""

    def __init__(self, call_id: str) -> None:
        self._id = call_id
        self._name = ""
        self._held = ""  # arguments that arrived before the name

    def message_of(self, delta: FunctionCallDelta) -> Message | None:
        self._id = delta.id or self._id
        self._name = delta.name or self._name
        self._held += delta.arguments
        if not self._name:
            return None
        call, self._held = FunctionCall(self._name, self._held), ""
        return Message(ASSISTANT, "", function_call=call, extra={"function_id": self._id})
