"""Answers that are data: asked for in the way the model can, validated, and sent back with reasons if they do not fit.

Three ways, chosen by the model's facts unless you choose one: the server enforces a schema (`native`), the model calls
a tool whose arguments are the answer (`tool`), or the prompt contains the schema (`prompt`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from jackfield.config import GenerateConfig, Lang
from jackfield.errors import ConfigError, InvalidAnswerError
from jackfield.jsonschemas import SchemaChecker, UnresolvableReferenceError, fault_of_schema, response_format
from jackfield.jsontext import dumps, loads_lenient
from jackfield.messages import (
    FUNCTION,
    USER,
    Message,
    Messages,
    ModelResponse,
    Usage,
    as_messages,
    with_system_text,
)
from jackfield.models._model import Model
from jackfield.request import GenerateOptions, ModelFacts

T = TypeVar("T")
Way = Literal["native", "tool", "prompt"]

ANSWER_TOOL = "answer"
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_MOST_SHOWN_CHARS = 4000  # of an answer that is sent back, and of an error's text


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


async def structured(
    model: Model,
    messages: Messages,
    wanted: type[T] | Mapping[str, Any],
    *,
    way: Way | None,
    attempts: int,
    config: GenerateOptions,
    lang: Lang,
) -> Structured[T]:
    """See `BaseChatModel.aparse`."""
    if attempts < 1:
        raise ConfigError(f"attempts must be at least 1, got {attempts}")
    form: Form[T] = Form(wanted)
    options = GenerateConfig.parse(config, what="generate_cfg")
    question = _Question(form.sent, way or way_of(model.facts), options, lang)
    history = list(as_messages(messages))
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


class MisfitError(Exception):
    """An answer does not fit; the text is for the model."""


class Form(Generic[T]):
    """The form that an answer must have, and how it is read."""

    def __init__(self, wanted: type[T] | Mapping[str, Any]) -> None:
        self._adapter: Any = None
        self._checker: SchemaChecker | None = None
        if isinstance(wanted, Mapping):
            if fault := fault_of_schema(wanted):
                raise ConfigError(f"the schema for the answer is not a valid JSON Schema: {fault}")
            self.schema = dict(wanted)
            self._checker = SchemaChecker(self.schema)
        else:
            from pydantic import PydanticUserError, TypeAdapter

            try:
                self._adapter = TypeAdapter(wanted)
                self.schema = self._adapter.json_schema()
            except (PydanticUserError, TypeError) as error:
                raise ConfigError(f"{wanted!r} is not a type that can be read from JSON: {error}") from error
        # Servers and tools take objects only; anything else travels as the one property of one.
        self.is_object = self.schema.get("type") == "object"

    @property
    def sent(self) -> dict[str, Any]:
        """The schema of the object that the model is asked for."""
        if self.is_object:
            return self.schema
        inner = {key: value for key, value in self.schema.items() if key != "$defs"}
        outer = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
        return {**outer, "$defs": self.schema["$defs"]} if "$defs" in self.schema else outer

    def read(self, text: str) -> T:
        """The value of an answer.

        Raises:
            MisfitError: It is not JSON, or does not fit.
        """
        value = _json_in(text)
        if not self.is_object and isinstance(value, dict) and set(value) == {"value"}:
            value = value["value"]
        return cast("T", self._checked(value) if self._adapter is None else self._validated(value))

    def _checked(self, value: Any) -> Any:
        assert self._checker is not None  # noqa: S101 - there is one where there is no adapter
        try:
            misfits = self._checker.misfits(value)
        except UnresolvableReferenceError as error:
            raise ConfigError(str(error)) from error
        if misfits:
            raise MisfitError("; ".join(misfits))
        return value

    def _validated(self, value: Any) -> Any:
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(json.dumps(value))  # as JSON: a date is a text there, a tuple a list
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False)[:5]
            raise MisfitError(
                "; ".join(f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}" for one in problems)
            ) from error


def form_of(wanted: type[T] | Mapping[str, Any] | Form[T]) -> Form[T]:
    """A function that reads data; a value that already has the type is returned.

    Raises:
        ConfigError: `wanted` is neither a type that can be read from JSON nor a JSON Schema.
    """
    return wanted if isinstance(wanted, Form) else Form(wanted)


# --- asking -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Question:
    """How a model is held to a schema."""

    schema: dict[str, Any]
    way: Way
    options: GenerateConfig
    lang: Lang

    async def ask(self, model: Model, history: Sequence[Message]) -> ModelResponse:
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
    kept = [message for message in response.messages if message.content or message.function_call]
    return [
        message.replace(content=message.content[:_MOST_SHOWN_CHARS], reasoning_content=None, origin=None)
        if isinstance(message.content, str)
        else message
        for message in kept
    ]


def _sent_back(response: ModelResponse, problem: str, lang: Lang) -> Message:
    called = next((message for message in response.messages if message.function_call), None)
    text = sent_back_text(problem, lang)
    if called is None or called.function_call is None:
        return Message(USER, text)
    extra = {"function_id": called.function_id} if called.function_id else None
    return Message(FUNCTION, text, name=called.function_call.name, extra=extra)


def asking_text(schema: Mapping[str, Any], lang: Lang) -> str:
    """The prompt for a model that should answer with an object of this schema."""
    return _PROMPT[lang].format(schema=dumps(schema))


def sent_back_text(problem: str, lang: Lang) -> str:
    """The prompt for a model whose answer does not fit."""
    return _SENT_BACK[lang].format(problem=problem[:_MOST_SHOWN_CHARS])


_TOOL_TEXT: Mapping[Lang, str] = {
    "en": "Give your final answer, as data. Call it exactly once.",
    "zh": "以数据形式给出最终答案。只调用一次。",
}
_PROMPT: Mapping[Lang, str] = {
    "en": "Answer with one JSON object and nothing else, no words before or after it. It must fit this JSON Schema:\n"
    "{schema}",
    "zh": "只用一个 JSON 对象回答，前后不要有任何其他文字。它必须符合以下 JSON Schema：\n{schema}",
}
_SENT_BACK: Mapping[Lang, str] = {
    "en": "This answer does not fit: {problem}. Give the whole answer again, corrected.",
    "zh": "这个回答不符合要求：{problem}。请重新给出完整的、改正后的回答。",
}


# --- reading ----------------------------------------------------------------------------------------------------------


def _json_in(text: str) -> Any:
    """The JSON of an answer: all of it, what stands in its last code fence, or what begins at its first bracket."""
    answer = _THOUGHT.sub("", text).strip()
    if not answer:
        raise MisfitError("there is no answer")
    bracket = re.search(r"[{\[]", answer)
    candidates = [answer, *reversed(_FENCE.findall(answer)), *([answer[bracket.start() :]] if bracket else [])]
    for candidate in candidates:
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    if bracket:
        try:
            return json.JSONDecoder(strict=False).raw_decode(answer, bracket.start())[0]
        except (ValueError, RecursionError):
            pass  # broken, so it is mended
    for candidate in candidates:
        try:
            return loads_lenient(candidate)
        except ValueError:
            continue
    raise MisfitError("it is not JSON")
