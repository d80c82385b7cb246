"""Processor that asks the model, checks the answer, and applies the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from jackfield.config import Lang
from jackfield.errors import ConfigError, ContentFilterError
from jackfield.events import ModelEvent, ModelFinished, PluginEvent, StreamReset, TextDelta, UsageReported
from jackfield.messages import USER, Message, Usage
from jackfield.plugins import Plugins
from jackfield.processors import CallNext, Phase, Processor
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield_guardrail.answer import Inspection, Violation
from jackfield_guardrail.config import GuardrailConfig
from jackfield_guardrail.rules import Check, Rule, rules_of

RULE_EVENT = "jackfield-guardrail.rule"
CODE = "output_guardrail"

_NOTES: Mapping[str, Mapping[Lang, str]] = {
    "replace": {"en": "the answer was replaced (rule {name})", "zh": "回答已被替换（规则 {name}）"},
    "retry": {"en": "the model is asked again (rule {name})", "zh": "正在重新请求回答（规则 {name}）"},
    "note": {"en": "the answer violates the rule {name}", "zh": "回答不符合规则 {name}"},
}
_AGAIN: Mapping[Lang, str] = {
    "en": (
        "[From the program that passes your answers on: the last one was not passed on, because {reason}. Nobody has "
        "seen it. Give the answer again, so that this is no longer true of it, and do not mention this message.]"
    ),
    "zh": (
        "[来自转交回答的程序：你的上一个回答没有被转交，原因是：{reason}。没有人看到它。"
        "请重新回答，避免这个问题，也不要提及这条消息。]"
    ),
}


class OutputGuardrail(Processor):
    """Checks answers before they reach the caller.

    Streaming rules (`deny`, `hosts`, `max_length`) buffer only a window of characters. Rules that need the whole answer
    (`require`, `json_schema`, `language`, `judge`, custom checks) buffer all text until the answer is complete, unless
    they only note violations.

    Args:
        cfg, settings: The keys of `GuardrailConfig`: `rules`.
        checks: Rules implemented as functions.
        host: The host used to look up judge models. If None, the installed backends are used.

    Raises:
        ConfigError: A rule is invalid, or there are no rules.
        PluginError: A judge's backend is not installed, or cannot be loaded.
    """

    name: ClassVar[str] = "output_guardrail"
    config_class = GuardrailConfig
    config: GuardrailConfig
    phase: ClassVar[Phase] = "output"

    def __init__(
        self,
        cfg: GuardrailConfig | Mapping[str, object] | None = None,
        *,
        checks: Iterable[Check] = (),
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._rules = rules_of(self.config.rules, tuple(checks), host)
        if not self._rules.by_name:
            raise ConfigError("output_guardrail has no rules, so every answer would pass: set `rules`")

    def __repr__(self) -> str:
        return f"<OutputGuardrail rules={list(self._rules.by_name)}>"

    async def aclose(self) -> None:
        """Close the judge models."""
        for model in self._rules.models:
            await model.aclose()

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Ask the model, and forward what the rules allow.

        Raises:
            ContentFilterError: A rule blocks the answer. This is raised while the answer is read.
        """
        return self._answer(request, call_next)

    async def _answer(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        asked = request
        tries: Counter[str] = Counter()
        spent = Usage()
        while True:
            attempt = _Attempt(Inspection(self._rules, request.lang), spent)
            async with closing(self._attempt(attempt, call_next(asked), request.lang)) as events:
                async for event in events:
                    yield event
            violation = attempt.inspection.violation
            if violation is None or attempt.end is None:
                return
            spent = attempt.cost
            rule = self._rules.by_name[violation.rule]
            follows = _what_follows(rule, tries[rule.name])
            yield _event_about(rule, follows, request.lang)
            if attempt.inspection.passed:
                yield StreamReset(f"rule {rule.name}")
            if follows == "replace":
                break
            tries[rule.name] += 1
            asked = _with_note(request, rule, violation)
        for event in _replaced(rule.replacement or "", spent, attempt.end):
            yield event

    async def _attempt(
        self, attempt: _Attempt, events: AsyncIterator[ModelEvent], lang: Lang
    ) -> AsyncIterator[ModelEvent]:
        """Yield the permitted events of one answer. The final event is withheld if a rule is violated.

        An answer that will be replaced is still read to its end, so that its cost is known.
        """
        async with closing(events):
            async for event in events:
                if isinstance(event, ModelFinished):
                    attempt.end = event
                    given: Iterable[ModelEvent] = await attempt.inspection.finish()
                else:
                    given = self._given(attempt, event, lang)
                for out in given:
                    yield out
                self._stop_if_blocked(attempt.inspection)
        if attempt.end is not None and attempt.inspection.violation is None:
            for out in self._ending(attempt, attempt.end, lang):
                yield out

    def _given(self, attempt: _Attempt, event: ModelEvent, lang: Lang) -> Iterable[ModelEvent]:
        """Yield the permitted events for an event other than the final one."""
        match event:
            case StreamReset():
                attempt.inspection = Inspection(self._rules, lang)
                attempt.reported = None
                return (event,)
            case UsageReported(usage):
                attempt.reported = usage
                return (UsageReported(usage + attempt.before),)
            case _:
                return attempt.inspection.feed(event)

    def _stop_if_blocked(self, inspection: Inspection) -> None:
        if inspection.violation:
            rule = self._rules.by_name[inspection.violation.rule]
            if rule.action in ("block", "redact"):  # a match that is too long to redact ends the text
                raise _blocked(rule)

    def _ending(self, attempt: _Attempt, end: ModelFinished, lang: Lang) -> Iterator[ModelEvent]:
        for name, count in attempt.inspection.notes.items():
            yield _event_about(self._rules.by_name[name], self._rules.by_name[name].action, lang, count=count)
        if attempt.cost != attempt.reported_to_caller:
            yield UsageReported(attempt.cost)
        yield end


class _Attempt:
    """One answer and its cost.

    Attributes:
        inspection: The inspection of the answer.
        before: The usage of earlier attempts.
        reported: The usage reported by the backend for this answer.
        end: The final event, once received.
    """

    def __init__(self, inspection: Inspection, before: Usage) -> None:
        self.inspection = inspection
        self.before = before
        self.reported: Usage | None = None
        self.end: ModelFinished | None = None

    @property
    def reported_to_caller(self) -> Usage:
        """The usage reported to the caller so far."""
        return Usage() if self.reported is None else self.reported + self.before

    @property
    def cost(self) -> Usage:
        """The usage of this attempt, all earlier attempts and the judges."""
        return (self.reported or Usage()) + self.before + self.inspection.spent


def _what_follows(rule: Rule, tries: int) -> Literal["retry", "replace"]:
    """Return the next action for an answer that violates a rule, given the number of retries so far.

    Raises:
        ContentFilterError: The rule has no replacement for the answer.
    """
    if rule.action == "retry" and tries < rule.retries:
        return "retry"
    if rule.replacement is None:
        raise _blocked(rule)
    return "replace"


def _blocked(rule: Rule) -> ContentFilterError:
    return ContentFilterError(
        f"the answer violates the rule {rule.name!r} of the output guardrail and was withheld: "
        "ask for something else, or change the rule",
        code=CODE,
    )


def _event_about(rule: Rule, action: str, lang: Lang, *, count: int = 1) -> PluginEvent:
    """Return an event that reports a violation by rule name and action, never including the matched text."""
    note = {"note": _NOTES[action][lang].format(name=rule.name)} if action in _NOTES else {}
    return PluginEvent(RULE_EVENT, {"rule": rule.name, "action": action, "count": count, **note})


def _with_note(request: ChatRequest, rule: Rule, violation: Violation) -> ChatRequest:
    """Append a message to the request that explains the violation."""
    text = _AGAIN[request.lang].format(reason=violation.reason or rule.hints[request.lang])
    return replace(request, messages=(*request.messages, Message(USER, text)))


def _replaced(text: str, spent: Usage, end: ModelFinished) -> Iterator[ModelEvent]:
    """Yield a replacement answer. The original's opaque data is dropped, because it may contain the replaced text."""
    if text:
        yield TextDelta(text)
    if spent != Usage():
        yield UsageReported(spent)
    yield replace(end, reason="content_filter", data=None)
