"""The output tool, which the model calls to return its final answer as structured data.

The call is converted to text before it enters the history, so records, streams and results contain the answer as JSON
text, as if the server had enforced a schema. No call is left without a result, and the conversation can continue
without the tool.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from jackfield.config import Lang
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, TextDelta
from jackfield.messages import with_system_text
from jackfield.processors import CallNext, Processor, transformed
from jackfield.request import ChatRequest

_NAMES = ("answer", "final_answer")
_DESCRIPTION: Mapping[Lang, str] = {
    "en": "Give your final answer, as data. Call it once, alone, when you need no other tool.",
    "zh": "以数据形式给出最终答案。不再需要其他工具时，单独调用一次。",
}
_PROMPT: Mapping[Lang, str] = {
    "en": "Give your final answer by calling the tool `{name}`, not as text.",
    "zh": "请通过调用工具 `{name}` 给出最终答案，不要写成文字。",
}


class AnswerTool(Processor):
    """Processor that offers the output tool to a model and converts calls to it into text.

    If a turn calls the output tool more than once, only the first call counts. If the turn also calls other tools, its
    answer is provisional: the other tools run first, and then the model answers again.

    Args:
        schema: The JSON Schema of the answer, which must be an object.
    """

    name: ClassVar[str] = "answer_tool"

    def __init__(self, schema: Mapping[str, Any]) -> None:
        super().__init__()
        self._schema = schema

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Add the output tool to the request, and convert calls to it in the response."""
        if request.config.function_choice == "none":
            return call_next(request)
        name = _free_name({function["name"] for function in request.functions})
        tool = {"name": name, "description": _DESCRIPTION[request.lang], "parameters": self._schema}
        config = request.config
        if config.function_choice == "auto" and request.facts.forced_calls:
            config = config.merged({"function_choice": "required"})
        text = _PROMPT[request.lang].format(name=name)
        offered = replace(
            request,
            messages=tuple(with_system_text(request.messages, text, first=False)),
            functions=(*request.functions, tool),
            config=config,
        )
        return transformed(call_next(offered), partial(_CallAsText, name))


def _free_name(taken: Collection[str]) -> str:
    for name in _NAMES:
        if name not in taken:
            return name
    number = 2
    while f"answer_{number}" in taken:
        number += 1
    return f"answer_{number}"


class _CallAsText:
    """Converts the first call to the output tool into text. Calls to other tools pass through unchanged.

    Args:
        name: The output tool's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._unnamed: dict[int, list[FunctionCallDelta]] = {}
        self._other_calls: dict[int, int] = {}
        self._repeated: set[int] = set()
        self._answer: int | None = None
        self._is_empty = True
        self._has_text = False

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """Yield the events that replace `event`."""
        match event:
            case TextDelta():
                if self._answer is None:  # text after the answer would be read as part of it
                    self._has_text = self._has_text or bool(event.text.strip())
                    yield event
            case FunctionCallDelta():
                yield from self._feed_call(event)
            case ModelFinished():
                yield from self._finish(event)
            case _:
                yield event

    def _feed_call(self, delta: FunctionCallDelta) -> Iterator[ModelEvent]:
        index = delta.index
        if index in self._other_calls:
            yield replace(delta, index=self._other_calls[index])
        elif index == self._answer:
            yield from self._text_of(delta.arguments)
        elif index not in self._repeated:
            earlier = self._unnamed.setdefault(index, [])
            earlier.append(delta)
            if not delta.name:
                return
            del self._unnamed[index]
            if delta.name != self._name:
                self._other_calls[index] = len(self._other_calls)
                yield from (replace(one, index=self._other_calls[index]) for one in earlier)
            elif self._answer is None:
                self._answer = index
                if self._has_text:
                    yield TextDelta("\n```json\n")
                yield from self._text_of("".join(one.arguments for one in earlier))
            else:
                self._repeated.add(index)

    def _text_of(self, arguments: str) -> Iterator[ModelEvent]:
        if arguments:
            self._is_empty = self._is_empty and not arguments.strip()
            yield TextDelta(arguments)

    def _finish(self, event: ModelFinished) -> Iterator[ModelEvent]:
        if self._answer is None:
            yield event
            return
        if self._is_empty:
            yield TextDelta("{}")
        if self._has_text:
            yield TextDelta("\n```")
        if self._other_calls:
            yield event
        else:
            # The backend's data belongs to the call, which never enters the history.
            yield replace(event, reason="stop" if event.reason == "tool_calls" else event.reason, data=None)
