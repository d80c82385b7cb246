"""Inspect one answer as it streams: forward what may pass, buffer what must wait, and record violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from jackfield.config import Lang
from jackfield.events import FunctionCallDelta, MediaDelta, ModelEvent, ReasoningDelta, TextDelta
from jackfield.messages import Usage
from jackfield_guardrail.arguments import ArgumentsScan
from jackfield_guardrail.rules import Rules
from jackfield_guardrail.scanning import Scanner


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that an answer violates.

    Attributes:
        rule: The rule's name.
        reason: An explanation for the model only, or '' if the rule's own hint suffices.
    """

    rule: str
    reason: str = ""


class Inspection:
    """Inspects one answer.

    Attributes:
        violation: The first violation of a rule whose action is more than redacting or noting.
        passed: True if any part of the answer was forwarded.
        notes: The number of matches for each rule that only redacts or notes.
        spent: The usage of judges.
    """

    def __init__(self, rules: Rules, lang: Lang) -> None:
        self._rules = rules
        self._lang: Lang = lang
        self._text = Scanner(rules.watches["text"])
        self._reasoning = Scanner(rules.watches["reasoning"])
        self._arguments: dict[int, list[str]] = {}
        self._has_calls = False
        self._whole: list[str] = []  # the text as forwarded
        self._length = 0
        self._waiting: list[ModelEvent] = []
        self.violation: Violation | None = None
        self.passed = False
        self.notes: Counter[str] = Counter()
        self.spent = Usage()

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """Yield the events to forward for one event. After a violation, no more of the answer is forwarded."""
        match event:
            case TextDelta(text):
                self._measure(text)
                yield from self._gone_on(TextDelta, self._text, self._text.feed(text))
            case ReasoningDelta(text):
                yield from self._gone_on(ReasoningDelta, self._reasoning, self._reasoning.feed(text))
            case FunctionCallDelta():
                self._has_calls = True
                yield from self._give(self._without_arguments(event))
            case MediaDelta():
                yield from self._give(event)
            case _:
                yield event

    async def finish(self) -> list[ModelEvent]:
        """Return the rest of a complete answer, or nothing after a violation."""
        rest = [
            *self._gone_on(ReasoningDelta, self._reasoning, self._reasoning.finish()),
            *self._gone_on(TextDelta, self._text, self._text.finish()),
            *self._checked_arguments(),
        ]
        await self._look_at_whole()
        for counts in (self._text.counts, self._reasoning.counts):
            self.notes.update({name: count for name, count in counts.items() if name not in self._rules.required})
        return [] if self.violation else [*rest, *self._waiting]

    # --- parts ---

    def _give(self, event: ModelEvent | None) -> Iterator[ModelEvent]:
        """Forward or buffer part of the answer."""
        if event is None or self.violation:
            return
        if self._rules.hold and not isinstance(event, ReasoningDelta):
            self._waiting.append(event)
            return
        self.passed = True
        yield event

    def _gone_on(
        self, kind: type[TextDelta] | type[ReasoningDelta], scanner: Scanner, text: str
    ) -> Iterator[ModelEvent]:
        if scanner.stopped:
            self._violated(scanner.stopped)
        if kind is TextDelta and text and self._rules.checks:
            self._whole.append(text)
        if text:
            yield from self._give(kind(text))

    def _measure(self, text: str) -> None:
        self._length += len(text)
        for name, most in self._rules.lengths:
            if self._length <= most:
                continue
            if self._rules.by_name[name].action != "note":
                self._violated(name)
            else:
                self.notes[name] = 1

    def _without_arguments(self, delta: FunctionCallDelta) -> FunctionCallDelta | None:
        """Strip the arguments from a call's delta if they must be checked first."""
        if not self._rules.watches["arguments"]:
            return delta
        self._arguments.setdefault(delta.index, []).append(delta.arguments)
        return FunctionCallDelta(delta.index, id=delta.id, name=delta.name) if delta.id or delta.name else None

    def _checked_arguments(self) -> Iterator[ModelEvent]:
        for index, pieces in self._arguments.items():
            scan = ArgumentsScan(self._rules.watches["arguments"])
            arguments = scan.of("".join(pieces))
            self.notes.update(scan.counts)
            if scan.stopped:
                self._violated(scan.stopped)
            if arguments:
                yield from self._give(FunctionCallDelta(index, arguments=arguments))

    def _violated(self, name: str, reason: str = "") -> None:
        self.violation = self.violation or Violation(name, reason)

    # --- the whole ---

    async def _look_at_whole(self) -> None:
        self._look_for_required()
        text = "".join(self._whole)
        for name, check in self._rules.checks:
            if self._applies(name, text):
                verdict = await check(text, self._lang)
                self.spent = self.spent + verdict.usage
                if not verdict.passes:
                    self._failed(name, verdict.reason)

    def _look_for_required(self) -> None:
        for name in self._rules.required:
            if not self._text.counts[name] and not self._has_calls:
                self._failed(name)

    def _applies(self, name: str, text: str) -> bool:
        """Return True if a rule should check the whole text.

        Rules are skipped after a violation, and next to calls if there is no text or the rule needs a final answer.
        """
        is_beside_calls = self._has_calls and (name in self._rules.final or not text.strip())
        return not (self.violation or is_beside_calls)

    def _failed(self, name: str, reason: str = "") -> None:
        if self._rules.by_name[name].action == "note":
            self.notes[name] += 1
        else:
            self._violated(name, reason)
