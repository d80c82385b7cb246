"""Processor that replaces values in the request, and restores or removes them in the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from jackfield.events import ModelEvent, PluginEvent
from jackfield.jsontext import dumps
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.processors import CallNext, Phase, Processor, transformed
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield_redaction.answer import AnswerTransform
from jackfield_redaction.arguments import ArgumentsScanner
from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.placeholders import ArgumentsRestorer, Restorer, Vault
from jackfield_redaction.scanner import Finder, Replace, Scanner, replace_in

REQUEST_EVENT = "jackfield-redaction.request"


class Redaction(Processor):
    """Hides personal data and API keys from a model.

    In `placeholder` mode, each distinct value in a request becomes `[EMAIL_1]`, `[PHONE_2]` and so on. Placeholders in
    the answer's text, reasoning and call arguments are converted back to the values. In `remove` mode, values in both
    the request and the answer become `[EMAIL]`, and cannot be restored.

    Nothing is stored between calls: the numbering follows from the history in each request.

    Args:
        cfg, settings: The keys of `RedactionConfig`.

    Raises:
        ConfigError: A kind or mode is unknown, or a pattern is invalid.
    """

    name: ClassVar[str] = "redaction"
    config_class = RedactionConfig
    config: RedactionConfig
    phase: ClassVar[Phase] = "format"
    before: ClassVar[tuple[str, ...]] = ("call_format",)
    needs_text: ClassVar[bool] = True

    def __init__(self, cfg: RedactionConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._finder = Finder(self.config)

    def __repr__(self) -> str:
        kinds = "all" if self.config.kinds is None else list(self.config.kinds)
        return (
            f"<Redaction mode={self.config.mode} kinds={kinds} patterns={[one.name for one in self.config.patterns]}>"
        )

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Send the redacted request, and rewrite the answer."""
        if self.config.mode == "remove":
            counts: Counter[str] = Counter()
            asked = _rewritten(request, self._finder, _removing(counts))
            return _with_counts(transformed(call_next(asked), self._remover), counts)
        vault = Vault(_texts(request))
        counts = Counter()
        asked = _rewritten(request, self._finder, _counting(vault, counts))
        if not vault.values:
            return call_next(request)
        return _with_counts(transformed(call_next(asked), lambda: _restorer(vault.values)), counts)

    def _remover(self) -> AnswerTransform:
        counts: Counter[str] = Counter()
        remove = _removing(counts)
        return AnswerTransform(
            lambda: Scanner(self._finder, remove), lambda: ArgumentsScanner(self._finder, remove), counts
        )


def _restorer(values: Mapping[str, str]) -> AnswerTransform:
    return AnswerTransform(lambda: Restorer(values), lambda: ArgumentsRestorer(values), {})


def _removing(counts: Counter[str]) -> Replace:
    def remove(kind: str, value: str) -> str:  # noqa: ARG001 - the value must not be revealed
        counts[kind] += 1
        return f"[{kind.upper()}]"

    return remove


def _counting(vault: Vault, counts: Counter[str]) -> Replace:
    def hide(kind: str, value: str) -> str:
        counts[kind] += 1
        return vault.placeholder(kind, value)

    return hide


async def _with_counts(events: AsyncIterator[ModelEvent], counts: Mapping[str, int]) -> AsyncIterator[ModelEvent]:
    """Yield an event with the number of replacements in the request, by kind, followed by the given events."""
    async with closing(events):
        if counts:
            yield PluginEvent(REQUEST_EVENT, dict(counts))
        async for event in events:
            yield event


# --- the request ------------------------------------------------------------------------------------------------------


def _texts(request: ChatRequest) -> Iterator[str]:
    """Yield every text in a request that the model reads."""
    for message in request.messages:
        yield from _texts_of(message.content)
        yield from _texts_of(message.reasoning_content or "")
        if message.function_call:
            yield message.function_call.arguments
    if request.functions:
        yield dumps(list(map(dict, request.functions)))


def _texts_of(content: str | Sequence[ContentItem]) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        yield from (item.text for item in content if item.text is not None)


def _rewritten(request: ChatRequest, finder: Finder, hide: Replace) -> ChatRequest:
    """Return the request with values in its messages replaced, or the same object if there are none."""
    messages = tuple(_rewritten_message(message, finder, hide) for message in request.messages)
    if all(new is old for new, old in zip(messages, request.messages, strict=True)):
        return request
    return replace(request, messages=messages)


def _rewritten_message(message: Message, finder: Finder, hide: Replace) -> Message:
    now: dict[str, object] = {
        "content": _rewritten_content(message.content, finder, hide),
        "reasoning_content": _rewritten_reasoning(message, finder, hide),
        "function_call": _rewritten_call(message.function_call, finder, hide),
    }
    changes = {name: value for name, value in now.items() if value is not getattr(message, name)}
    return message.replace(**changes) if changes else message


def _rewritten_reasoning(message: Message, finder: Finder, hide: Replace) -> str | list[ContentItem] | None:
    reasoning = message.reasoning_content
    return None if reasoning is None else _rewritten_content(reasoning, finder, hide)


def _rewritten_call(call: FunctionCall | None, finder: Finder, hide: Replace) -> FunctionCall | None:
    """Return the call with values in its arguments replaced, or the same object if there are none."""
    if call is None:
        return None
    arguments = _rewritten_arguments(call.arguments, finder, hide)
    return call if arguments == call.arguments else FunctionCall(call.name, arguments)


def _rewritten_content(content: str | list[ContentItem], finder: Finder, hide: Replace) -> str | list[ContentItem]:
    """Return the content with values replaced, or the same object if there are none."""
    if isinstance(content, str):
        return replace_in(content, finder, hide)
    items = [_rewritten_item(item, finder, hide) for item in content]
    return content if all(new is old for new, old in zip(items, content, strict=True)) else items


def _rewritten_item(item: ContentItem, finder: Finder, hide: Replace) -> ContentItem:
    if item.text is None:
        return item
    text = replace_in(item.text, finder, hide)
    return item if text is item.text else ContentItem(text=text)


def _rewritten_arguments(arguments: str, finder: Finder, hide: Replace) -> str:
    """Return the arguments with values replaced. Without any values, the text keeps even its original escapes."""
    found = False

    def noticing(kind: str, value: str) -> str:
        nonlocal found
        found = True
        return hide(kind, value)

    scanner = ArgumentsScanner(finder, noticing)
    rewritten = scanner.feed(arguments) + scanner.finish()
    return rewritten if found else arguments
