"""Answers of a model that are data, in one of three ways.

The way is chosen by the model's facts unless you choose one: the server enforces a schema (`native`), the model calls
a tool whose arguments are the answer (`tool`), or the prompt contains the schema (`prompt`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol

from typing_extensions import TypeVar

from jackfield import sync
from jackfield.answers import MOST_SHOWN_CHARS, Form, MisfitError, asking_text, sent_back_text
from jackfield.config import GenerateConfig, Lang, LLMConfig
from jackfield.errors import ConfigError, InvalidAnswerError
from jackfield.messages import FUNCTION, USER, Message, Messages, ModelResponse, Usage, as_messages, with_system_text
from jackfield.request import FunctionSchema, GenerateOptions, ModelFacts, language_of
from jackfield.response_formats import response_format

T = TypeVar("T", default=str)

Way = Literal["native", "tool", "prompt"]
"""How a model is held to a form: by its server, by a tool that it must call, or by the prompt."""

ANSWER_TOOL = "answer"


class AskedModel(Protocol):
    """What these functions need of a model: each model has it, and none of them needs the class of models."""

    @property
    def config(self) -> LLMConfig: ...

    @property
    def facts(self) -> ModelFacts: ...

    async def acomplete(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> ModelResponse: ...


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """An answer that fits.

    Attributes:
        value: The answer, as the class that was asked for; as plain JSON values for a JSON Schema.
        response: The model's last response, with the usage of all attempts.
        attempts: How often the model was asked.
    """

    value: T
    response: ModelResponse
    attempts: int


async def aparse(
    model: AskedModel,
    messages: Messages,
    wanted: type[T] | Mapping[str, object],
    *,
    way: Way | None = None,
    attempts: int = 3,
    config: GenerateOptions = None,
) -> Structured[T]:
    """An answer as data; a method of models.

    Args:
        model: Which is asked.
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
    if attempts < 1:
        raise ConfigError(f"attempts must be at least 1, got {attempts}")
    form: Form[T] = Form(wanted)
    options = GenerateConfig.parse(config, what="generate_cfg")
    history = list(as_messages(messages))
    lang = model.config.generate_cfg.merged(options).lang or language_of(history)
    question = _Question(form.sent, way or way_of(model.facts), options, lang)
    usage = Usage()
    for attempt in range(1, attempts + 1):
        response = await question.ask(model, history)
        usage += response.usage
        try:
            value = form.read(question.answer_in(response))
        except MisfitError as misfit:
            if attempt == attempts:
                raise _no_answer(response, attempts, str(misfit), usage) from misfit
            history += [*_said(response), _sent_back(response, str(misfit), lang)]
        else:
            return Structured(value, response.model_copy(update={"usage": usage}), attempt)
    raise AssertionError("the last attempt returns or raises")


def parse(
    model: AskedModel,
    messages: Messages,
    wanted: type[T] | Mapping[str, object],
    *,
    way: Way | None = None,
    attempts: int = 3,
    config: GenerateOptions = None,
) -> Structured[T]:
    """The same as `aparse`, for synchronous code."""
    return sync.run(aparse(model, messages, wanted, way=way, attempts=attempts, config=config))


def _no_answer(response: ModelResponse, attempts: int, problem: str, usage: Usage) -> InvalidAnswerError:
    cut = " (it was cut off: raise max_tokens)" if response.finish_reason == "length" else ""
    error = InvalidAnswerError(
        f"{response.model or 'the model'} gave no answer that fits; it was asked {attempts} times: {problem}{cut}",
        partial_text=response.get_content(),
    )
    error.usage = usage
    return error


def way_of(facts: ModelFacts) -> Way:
    """The best way for a model that can do this."""
    if facts.json_schema:
        return "native"
    return "tool" if facts.native_tools else "prompt"


@dataclass(frozen=True, slots=True)
class _Question:
    """How a model is held to a schema."""

    schema: dict[str, Any]
    way: Way
    options: GenerateConfig
    lang: Lang

    async def ask(self, model: AskedModel, history: Sequence[Message]) -> ModelResponse:
        match self.way:
            case "native":
                held = self.options.merged({"response_format": response_format(self.schema)})
                return await model.acomplete(history, config=held)
            case "tool":
                tool = {"name": ANSWER_TOOL, "description": _TOOL_TEXT[self.lang], "parameters": self.schema}
                forced = self.options.merged({"function_choice": ANSWER_TOOL})
                return await model.acomplete(history, [tool], config=forced)
        asked = with_system_text(history, asking_text(self.schema, self.lang), first=False)
        return await model.acomplete(asked, config=self.options)

    def answer_in(self, response: ModelResponse) -> str:
        calls = [call for call in response.get_function_calls() if call.name == ANSWER_TOOL]
        if self.way == "tool" and calls:
            return calls[0].arguments
        return response.get_content()  # a model that writes the answer in place of a call has answered, too


def _said(response: ModelResponse) -> list[Message]:
    """What the model said, short enough to be said again; nothing of its reasoning."""
    return [_shortened(message) for message in response.messages if message.content or message.function_call]


def _shortened(message: Message) -> Message:
    if isinstance(message.content, str):
        return message.replace(content=message.content[:MOST_SHOWN_CHARS], reasoning_content=None, origin=None)
    return message


def _sent_back(response: ModelResponse, problem: str, lang: Lang) -> Message:
    called = next((message for message in response.messages if message.function_call), None)
    text = sent_back_text(problem, lang)
    if called is None or called.function_call is None:
        return Message(USER, text)
    extra = {"function_id": called.function_id} if called.function_id else None
    return Message(FUNCTION, text, name=called.function_call.name, extra=extra)


_TOOL_TEXT: Mapping[Lang, str] = {
    "en": "Give your final answer, as data. Call it exactly once.",
    "zh": "以数据形式给出最终答案。只调用一次。",
}
