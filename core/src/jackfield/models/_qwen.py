"""Asking a model as Qwen-Agent does: lists in, lists out, growing while they stream. Methods of `BaseChatModel`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, overload

from jackfield import sync
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError
from jackfield.events import FunctionCallDelta, MediaDelta, ModelEvent, ReasoningDelta, TextDelta
from jackfield.messages import (
    ASSISTANT,
    FunctionCall,
    Message,
    Messages,
    ModelResponse,
    as_messages,
    want_dicts,
)
from jackfield.models import ONLY_BEFORE_OUTPUT, BaseChatModel, Fold
from jackfield.request import FunctionSchema, GenerateOptions


@overload
def chat(
    model: BaseChatModel,
    messages: Messages,
    functions: Sequence[FunctionSchema] | None = None,
    stream: Literal[True] = True,
    delta_stream: bool = False,
    extra_generate_cfg: GenerateOptions = None,
) -> Iterator[list[Any]]: ...


@overload
def chat(
    model: BaseChatModel,
    messages: Messages,
    functions: Sequence[FunctionSchema] | None = None,
    *,
    stream: Literal[False],
    delta_stream: bool = False,
    extra_generate_cfg: GenerateOptions = None,
) -> list[Any]: ...


def chat(  # noqa: PLR0917 - Qwen-Agent's signature
    model: BaseChatModel,
    messages: Messages,
    functions: Sequence[FunctionSchema] | None = None,
    stream: bool = True,
    delta_stream: bool = False,
    extra_generate_cfg: GenerateOptions = None,
) -> Iterator[list[Any]] | list[Any]:
    """Ask the model. The answer has the type of the question: dicts for dicts, messages for messages.

    Args:
        messages: The history; not empty.
        functions: The tools the model may call.
        stream: False for the whole answer as one list; True for an iterator, which asks at its first `next`.
        delta_stream: Stream only what is new instead of all so far; it is never retried after its first item.
        extra_generate_cfg: Options for this call; they override the model's.

    Raises:
        ValueError: There are no messages.
        ModelServiceError: The model could not answer.
    """
    if not messages:
        raise ConfigError("Messages can not be empty.")
    wants_dicts = want_dicts(messages)
    tools = tuple(functions or ())
    if not stream:
        answer = sync.run(model.acomplete(messages, tools, config=extra_generate_cfg))
        return _dumped(answer.messages, wants_dicts)
    if delta_stream:
        return _deltas(model, messages, tools, extra_generate_cfg, wants_dicts)
    return _snapshots(model, messages, tools, extra_generate_cfg, wants_dicts)


def _snapshots(
    model: BaseChatModel,
    messages: Messages,
    functions: Sequence[FunctionSchema],
    config: GenerateOptions,
    dicts: bool,
) -> Iterator[list[Any]]:
    def growing(batches: Iterator[list[ModelEvent]]) -> Iterator[list[Any]]:
        answer = Fold(model.backend)
        last: list[Message] = []
        # One snapshot for all that has arrived meanwhile: a consumer that keeps up sees every chunk.
        for batch in batches:
            for event in batch:
                answer.feed(event)
            now = answer.messages()
            if now and now != last:
                last = now
                yield _dumped(now, dicts)
        answer.check_complete(model.address)

    return sync.stream(model.astream(messages, functions, config=config), growing)


def _deltas(
    model: BaseChatModel,
    messages: Messages,
    functions: Sequence[FunctionSchema],
    config: GenerateOptions,
    dicts: bool,
) -> Iterator[list[Any]]:
    answer = Fold(model.backend)
    calls: dict[int, _DeltaCall] = {}
    for event in sync.iterate(model.astream(messages, functions, config=config, metadata={ONLY_BEFORE_OUTPUT: True})):
        answer.feed(event)
        part = _part_of(event, calls)
        if part is not None:
            yield _dumped([part], dicts)
    answer.check_complete(model.address)
    if answer.is_empty:
        yield _dumped(answer.messages(), dicts)


def _part_of(event: ModelEvent, calls: dict[int, _DeltaCall]) -> Message | None:
    """What an event adds to the answer, as a message."""
    match event:
        case TextDelta(text):
            return Message(ASSISTANT, text)
        case ReasoningDelta(text):
            return Message(ASSISTANT, "", reasoning_content=text)
        case MediaDelta(item):
            return Message(ASSISTANT, [item])
        case FunctionCallDelta():
            return calls.setdefault(event.index, _DeltaCall(str(event.index + 1))).part(event)
    return None


def quick_chat_oai(
    model: BaseChatModel, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
) -> Iterator[dict[str, Any]]:
    """Ask in the form of OpenAI's clients: messages and tools in, growing responses out, as dicts."""
    history = as_messages(messages)
    functions = [tool.get("function", tool) for tool in tools or ()]
    answer = Fold(model.backend)
    for batch in sync.batches(model.astream(history, functions)):
        for event in batch:
            answer.feed(event)
        yield to_openai(answer.response())
    answer.check_complete(model.address)


def raw_chat(
    model: BaseChatModel,
    messages: Messages,
    functions: Sequence[FunctionSchema] | None = None,
    stream: bool = True,
    generate_cfg: GenerateOptions = None,
) -> Iterator[list[Any]] | list[Any]:
    """`chat` with the provider's own tool calls, whatever call format the model is configured for."""
    raw = GenerateConfig.parse(generate_cfg, what="generate_cfg").merged({"use_raw_api": True})
    if stream:
        return chat(model, messages, functions, extra_generate_cfg=raw)
    return chat(model, messages, functions, stream=False, extra_generate_cfg=raw)


class _DeltaCall:
    """A call whose deltas are passed on: each with the call's id and name, from when the name is known."""

    def __init__(self, number: str) -> None:
        self._id = number
        self._name = ""
        self._early = ""

    def part(self, delta: FunctionCallDelta) -> Message | None:
        self._id = delta.id or self._id
        self._name = delta.name or self._name
        self._early += delta.arguments
        if not self._name:
            return None
        call, self._early = FunctionCall(self._name, self._early), ""
        return Message(ASSISTANT, "", function_call=call, extra={"function_id": self._id})


def _dumped(messages: Sequence[Message], dicts: bool) -> list[Any]:
    return [message.model_dump() for message in messages] if dicts else list(messages)


def _call(call_id: str | None, call: FunctionCall) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def to_openai(response: ModelResponse) -> dict[str, Any]:
    """An answer as OpenAI's `chat.completion` object, as a dict."""
    reasoning = "".join(
        m.reasoning_content for m in response.messages if isinstance(m.reasoning_content, str) and m.reasoning_content
    )
    calls = [
        _call(message.function_id, message.function_call) for message in response.messages if message.function_call
    ]
    message: dict[str, Any] = {"role": "assistant", "content": response.get_content(), "reasoning_content": reasoning}
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
