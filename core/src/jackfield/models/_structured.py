"""Get structured data from a model, using one of three strategies.

With `native`, the server enforces a schema. With `tool`, the model calls a tool whose arguments are the answer. With
`prompt`, the prompt contains the schema. By default, the strategy depends on the model's capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, get_args

from jackfield._fitting import check_count
from jackfield._response_formats import response_format
from jackfield.answers import MAX_SHOWN_CHARS, Form, MisfitError, asking_text, form_of, sent_back_text
from jackfield.config import GenerateConfig, Lang, LLMConfig
from jackfield.errors import ConfigError, InvalidAnswerError
from jackfield.messages import (
    FUNCTION,
    USER,
    Message,
    Messages,
    ModelResponse,
    Usage,
    as_messages,
    refuse_empty_question,
    with_system_text,
)
from jackfield.plurals import format_count
from jackfield.request import FunctionSchema, GenerateOptions, ModelFacts, language_of
from jackfield.results import Structured, Way

T = TypeVar("T")

ANSWER_TOOL = "answer"


class Model(Protocol):
    """The model members that these functions use."""

    @property
    def config(self) -> LLMConfig: ...

    @property
    def facts(self) -> ModelFacts: ...

    async def acomplete(
        self, messages: Messages, functions: Sequence[FunctionSchema] = (), *, config: GenerateOptions = None
    ) -> ModelResponse: ...


async def ask_for_data(
    model: Model,
    messages: Messages,
    wanted: type[T] | Mapping[str, object],
    *,
    way: Way | None,
    attempts: int,
    config: GenerateOptions,
) -> Structured[T]:
    """Ask until an answer matches `wanted`; see `BaseChatModel.aparse`."""
    check_count("attempts", attempts)
    if way not in (None, *get_args(Way)):
        raise ConfigError(f"unknown way {way!r}: use {', '.join(get_args(Way))}, or omit way")
    form: Form[T] = form_of(wanted)
    options = GenerateConfig.parse(config, what="generate_cfg")
    history = list(as_messages(messages))
    refuse_empty_question(history)
    lang = model.config.generate_cfg.merged(options).lang or language_of(history)
    question = _Question(form.sent, way or best_way(model.facts), options, lang)
    usage = Usage()
    for attempt in range(1, attempts + 1):
        response = await question.ask(model, history)
        usage += response.usage
        try:
            value = form.read(question.answer_in(response))
        except MisfitError as misfit:
            if attempt == attempts:
                raise _no_answer(response, attempts, str(misfit), usage) from misfit
            history += [*_shortened_answer(response), _correction_request(response, str(misfit), lang)]
        else:
            return Structured(value, response.model_copy(update={"usage": usage}), attempt)
    raise AssertionError("the last attempt must return or raise")


def _no_answer(response: ModelResponse, attempts: int, problem: str, usage: Usage) -> InvalidAnswerError:
    hint = " (truncated: increase max_tokens)" if response.finish_reason == "length" else ""
    error = InvalidAnswerError(
        f"{response.model or 'the model'} gave no valid answer in {format_count(attempts, 'attempt')}: {problem}{hint}",
        partial_text=response.get_content(),
    )
    error.usage = usage
    return error


def best_way(facts: ModelFacts) -> Way:
    """Choose the strictest strategy that a model supports for a request without other tools."""
    if facts.json_schema:
        return "native"
    return "tool" if facts.native_tools and facts.forced_calls else "prompt"


@dataclass(frozen=True, slots=True)
class _Question:
    """A schema and the strategy for making a model follow it."""

    schema: dict[str, Any]
    way: Way
    options: GenerateConfig
    lang: Lang

    async def ask(self, model: Model, history: Sequence[Message]) -> ModelResponse:
        match self.way:
            case "native":
                options = self.options.merged({"response_format": response_format(self.schema)})
                return await model.acomplete(history, config=options)
            case "tool":
                tool = {"name": ANSWER_TOOL, "description": _TOOL_TEXT[self.lang], "parameters": self.schema}
                options = self.options.merged({"function_choice": ANSWER_TOOL})
                return await model.acomplete(history, [tool], config=options)
            case "prompt":
                prompt = with_system_text(history, asking_text(self.schema, self.lang), first=False)
                return await model.acomplete(prompt, config=self.options)

    def answer_in(self, response: ModelResponse) -> str:
        calls = [call for call in response.get_function_calls() if call.name == ANSWER_TOOL]
        if self.way == "tool" and calls:
            return calls[0].arguments
        # Some models write the answer instead of calling the tool.
        return response.get_content()


def _shortened_answer(response: ModelResponse) -> list[Message]:
    """Return an answer that did not match, shortened and without its reasoning, to send back to the model."""
    messages = []
    for message in response.messages:
        if isinstance(message.content, str) and (message.content or message.function_call):
            content = message.content[:MAX_SHOWN_CHARS]
            messages.append(message.replace(content=content, reasoning_content=None, origin=None))
        elif message.content or message.function_call:
            messages.append(message)
    return messages


def _correction_request(response: ModelResponse, problem: str, lang: Lang) -> Message:
    """Return a message that asks for a corrected answer. If the model made a call, the message is the call's result."""
    text = sent_back_text(problem, lang)
    for message in response.messages:
        if message.function_call:
            extra = {"function_id": message.function_id} if message.function_id else None
            return Message(FUNCTION, text, name=message.function_call.name, extra=extra)
    return Message(USER, text)


_TOOL_TEXT: Mapping[Lang, str] = {
    "en": "Give your final answer, as data. Call it exactly once.",
    "zh": "以数据形式给出最终答案。只调用一次。",
}
