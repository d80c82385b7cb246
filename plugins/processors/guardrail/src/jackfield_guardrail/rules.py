"""Compile rules from settings and code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jackfield.config import Lang
from jackfield.errors import ConfigError
from jackfield.models import BaseChatModel, get_chat_model
from jackfield.plugins import Plugins
from jackfield_guardrail.config import NAME, Action, JudgeConfig, Part, RuleConfig
from jackfield_guardrail.finding import Finder, RegexFinder
from jackfield_guardrail.judging import Judge
from jackfield_guardrail.links import LinkFinder
from jackfield_guardrail.scanning import Watch
from jackfield_guardrail.whole import FunctionCheck, JsonCheck, LanguageCheck, Opinion, WholeCheck

REDACTED = "[removed]"
LINK_REDACTED = "[link removed]"

_HINTS: Mapping[str, Mapping[Lang, str]] = {
    "deny": {"en": "it contains what the rule {name} forbids", "zh": "其中有规则 {name} 禁止的内容"},
    "require": {"en": "it lacks what the rule {name} asks for", "zh": "其中缺少规则 {name} 要求的内容"},
    "max_length": {"en": "it is longer than {most} characters", "zh": "它超过了 {most} 个字符"},
    "hosts": {
        "en": "it has links or images of other hosts than the allowed ones ({hosts})",
        "zh": "其中有指向其他主机的链接或图片，只允许这些主机：{hosts}",
    },
    "whole": {"en": "it does not keep the rule {name}", "zh": "它不符合规则 {name}"},
}

_THEN: Mapping[str, Literal["take", "count"]] = {"redact": "take", "note": "count"}

CheckFunction: TypeAlias = Callable[[str], Opinion | Awaitable[Opinion]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A rule implemented as a function that decides if a complete answer may pass.

    Attributes:
        name: The rule's name in errors and events: lower case letters, digits and `_`.
        function: Takes the text and returns True, False, a description of the problem, or a `Verdict`. May be async.
        action, replacement, retries, hint: The same as for other rules.
    """

    name: str
    function: CheckFunction
    action: Literal["block", "replace", "retry", "note"] = "block"
    replacement: str | None = None
    retries: int = 1
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and the action to take when an answer violates it.

    Attributes:
        name: The rule's name in errors and events.
        action: The action to take.
        replacement: The text that replaces the answer, or None if there is no replacement.
        retries: How many times the model is asked again.
        hints: Explanations of the violation, by language, for the model that is asked again.
    """

    name: str
    action: Action
    replacement: str | None
    retries: int
    hints: Mapping[Lang, str]


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a guardrail, grouped by how they are checked.

    Attributes:
        by_name: All rules, by name.
        watches: The watches for each part of an answer.
        required: The names of rules that require a match.
        lengths: Rule names with the maximum number of characters.
        checks: Rule names with checks of the whole text, in order.
        final: The names of rules that apply only to answers without calls, because other answers are not final.
        models: The models created for judges.
    """

    by_name: Mapping[str, Rule]
    watches: Mapping[Part, tuple[Watch, ...]]
    required: tuple[str, ...]
    lengths: tuple[tuple[str, int], ...]
    checks: tuple[tuple[str, WholeCheck], ...]
    final: frozenset[str]
    models: tuple[BaseChatModel, ...]

    @property
    def hold(self) -> bool:
        """True if text must be buffered until the answer is complete, because an enforced rule checks all of it."""
        whole = (*self.required, *(name for name, _ in self.checks))
        return any(self.by_name[name].action != "note" for name in whole)


def rules_of(configs: Sequence[RuleConfig], checks: Sequence[Check], host: Plugins | None) -> Rules:
    """Build the rules from settings and code.

    Raises:
        ConfigError: Two rules share a name, or a rule in code is invalid.
        PluginError: A judge's backend is not installed, or cannot be loaded.
    """
    by_name = {config.name: _rule(config) for config in configs}
    for check in checks:
        _fits(check, by_name)
        hints = _hints("whole", check.hint, name=check.name)
        by_name[check.name] = Rule(check.name, check.action, check.replacement, check.retries, hints)
    functions = [(check.name, FunctionCheck(check.function)) for check in checks]
    whole, models = _whole_checks(configs, host)
    required, schemas = _names_with(configs, "require"), _names_with(configs, "json_schema")
    return Rules(
        by_name=by_name,
        watches={part: _watches(configs, part) for part in ("text", "reasoning", "arguments")},
        required=required,
        lengths=_lengths(configs),
        checks=(*whole, *functions),
        final=frozenset((*required, *schemas)),
        models=models,
    )


def _whole_checks(
    configs: Sequence[RuleConfig], host: Plugins | None
) -> tuple[list[tuple[str, WholeCheck]], tuple[BaseChatModel, ...]]:
    """Return the checks of whole texts with their rule names, and the models created for them."""
    made = [(config.name, *found) for config in configs if (found := _whole(config, host))]
    return [(name, check) for name, check, _ in made], tuple(model for *_, model in made if model)


def _lengths(configs: Sequence[RuleConfig]) -> tuple[tuple[str, int], ...]:
    return tuple((config.name, config.max_length) for config in configs if config.max_length is not None)


def _names_with(configs: Sequence[RuleConfig], check: str) -> tuple[str, ...]:
    """Return the names of the rules that use a check."""
    return tuple(config.name for config in configs if getattr(config, check) is not None)


def _rule(config: RuleConfig) -> Rule:
    kind = next((kind for kind in _HINTS if getattr(config, kind, None) is not None), "whole")
    hosts = ", ".join(config.hosts or ()) or "-"
    hints = _hints(kind, config.hint, name=config.name, most=config.max_length, hosts=hosts)
    return Rule(config.name, config.action, config.replacement, config.retries, hints)


def _hints(kind: str, own: str, **parts: object) -> Mapping[Lang, str]:
    return {lang: own or text.format(**parts) for lang, text in _HINTS[kind].items()}


def _fits(check: Check, taken: Mapping[str, Rule]) -> None:
    if not NAME.fullmatch(check.name):
        raise ConfigError(f"{check.name!r} is not a valid name for a check: use lowercase letters, digits and '_'")
    if check.name in taken:
        raise ConfigError(f"two rules are named {check.name!r}: rename one")
    if check.action not in ("block", "replace", "retry", "note"):
        raise ConfigError(f"the check {check.name!r} cannot {check.action}: use block, replace, retry or note")
    if check.action == "replace" and check.replacement is None:
        raise ConfigError(f"the check {check.name!r} replaces answers, so `replacement` is required")


def _watches(configs: Sequence[RuleConfig], part: Part) -> tuple[Watch, ...]:
    return tuple(watch for config in configs if (watch := _watch(config, part)))


def _watch(config: RuleConfig, part: Part) -> Watch | None:
    if config.require is not None:
        return Watch(config.name, RegexFinder(config.require, config.window), "count") if part == "text" else None
    finder, replacement = _forbidden(config)
    if finder is None or part not in config.parts:
        return None
    if config.replacement is not None:
        replacement = config.replacement
    return Watch(config.name, finder, _THEN.get(config.action, "stop"), replacement)


def _forbidden(config: RuleConfig) -> tuple[Finder | None, str]:
    """Return a rule's finder and default replacement. The finder is None for rules that do not search text."""
    if config.deny is not None:
        return RegexFinder(config.deny, config.window), REDACTED
    return None if config.hosts is None else LinkFinder(config.hosts), LINK_REDACTED


def _whole(config: RuleConfig, host: Plugins | None) -> tuple[WholeCheck, BaseChatModel | None] | None:
    if config.json_schema is not None:
        return JsonCheck(config.json_schema), None
    if config.language is not None:
        return LanguageCheck(config.language), None
    return _judge(config.judge, host) if config.judge else None


def _judge(config: JudgeConfig, host: Plugins | None) -> tuple[WholeCheck, BaseChatModel]:
    model = get_chat_model(config.llm, host=host)
    return Judge(model, config.question), model
