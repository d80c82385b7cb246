"""Ask a model, and get one result. Functions over `acomplete`, and methods of models."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypedDict, Unpack, overload

from typing_extensions import TypeVar

from jackfield import sync
from jackfield._lazy import method_of
from jackfield.messages import MessageLike, Messages, ModelResponse, as_messages
from jackfield.request import GenerateOptions
from jackfield.results import Output, RunResult, text_of_answer

Out = TypeVar("Out", default=str)
_parsed = method_of("jackfield.models._structured", "aparse", of="output")


class Model(Protocol):
    """See `BaseChatModel`."""

    async def acomplete(self, messages: Messages, *, config: GenerateOptions = None) -> ModelResponse: ...


class AskOptions(TypedDict, total=False):
    """The options of `ask`, besides the form of the answer."""

    history: Sequence[MessageLike]
    attempts: int
    config: GenerateOptions


@overload
async def aask(
    model: Model, messages: Messages, *, output: Mapping[str, object], **options: Unpack[AskOptions]
) -> RunResult[Any]: ...
@overload
async def aask(
    model: Model, messages: Messages, *, output: type[Out] | None = None, **options: Unpack[AskOptions]
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
        found = await _parsed(model, asked, output, attempts=attempts, config=config)
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
    model: Model, messages: Messages, *, output: Mapping[str, object], **options: Unpack[AskOptions]
) -> RunResult[Any]: ...
@overload
def ask(
    model: Model, messages: Messages, *, output: type[Out] | None = None, **options: Unpack[AskOptions]
) -> RunResult[Out]: ...
def ask(
    model: Model, messages: Messages, *, output: Output[Any] = None, **options: Unpack[AskOptions]
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
    return sync.run(aask(model, messages, output=output, **options))


def quick_chat(model: Model, prompt: str) -> str:
    """The text of the answer to one question, without its reasoning."""
    return sync.run(model.acomplete(prompt)).get_content()
