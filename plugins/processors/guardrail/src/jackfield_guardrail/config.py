"""Settings for the guardrail: rules, each with one check and one action."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from jackfield.config import Config, Lang
from jackfield.jsonschemas import fault_of_schema
from jackfield_guardrail.regexes import fault_of_regex

Action = Literal["block", "replace", "redact", "retry", "note"]
Part = Literal["text", "reasoning", "arguments"]

LONGEST_WINDOW = 1024
CHECKS = ("deny", "require", "max_length", "json_schema", "hosts", "language", "judge")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

_BY_PARTS = ("deny", "hosts")  # the parts that can be checked, including reasoning and arguments
_BY_REGEX = ("deny", "require")
_HOST = re.compile(r"(?:\*\.)?[^\s/?#@:*]+(?::\d+)?\Z")


class JudgeConfig(Config):
    """A model that judges answers."""

    llm: str | dict[str, Any] = Field(repr=False, description="The model: backend:model, or a dict as for any model")
    question: str = Field(min_length=1, description="Question about the answer; if the reply is yes, the answer passes")


class RuleConfig(Config):
    """One rule: a single check (`deny` to `judge`), and the action to take if an answer fails it."""

    name: str = Field(pattern=f"^{NAME.pattern}$", description="The rule's name in errors and events")
    deny: str | None = Field(default=None, description="A regular expression that must not match")
    require: str | None = Field(default=None, description="A regular expression that must match somewhere")
    max_length: int | None = Field(default=None, ge=0, description="Maximum number of characters of the text")
    json_schema: dict[str, Any] | bool | None = Field(
        default=None, description="The text must be JSON that matches this JSON Schema; true: any JSON"
    )
    hosts: tuple[str, ...] | None = Field(
        default=None, description="Allowed hosts of links and images; *.example.org includes all subdomains"
    )
    language: Lang | None = Field(default=None, description="The language of the text, judged by its letters")
    judge: JudgeConfig | None = None
    action: Action = Field(default="block", description="block, replace, redact, retry or note")
    replacement: str | None = Field(default=None, description="The text that replaces the answer, or the redacted part")
    retries: int = Field(default=1, ge=1, le=10, description="Maximum number of retries of the model")
    hint: str = Field(default="", description="Explanation of the violation for the model when it retries")
    window: int = Field(
        default=64,
        ge=1,
        le=LONGEST_WINDOW,
        description="Maximum length of a match in characters; a stream is delayed by as many",
    )
    parts: tuple[Part, ...] = Field(
        default=("text", "reasoning"), min_length=1, description="The parts that deny and hosts search"
    )

    @field_validator("deny", "require")
    @classmethod
    def _check_regex(cls, regex: str | None) -> str | None:
        if regex is not None and (fault := fault_of_regex(regex)):
            raise ValueError(fault)
        return regex

    @field_validator("hosts")
    @classmethod
    def _check_hosts(cls, hosts: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for host in hosts or ():
            if not _HOST.match(host):
                raise ValueError(
                    f"{host!r} is not a valid host, such as www.example.org, *.example.org or localhost:8000"
                )
        return hosts

    @field_validator("json_schema")
    @classmethod
    def _check_schema(cls, schema: dict[str, Any] | bool | None) -> dict[str, Any] | bool | None:
        if schema is False:
            raise ValueError(
                "a schema of `false` rejects every answer: use `true` to accept any JSON, or provide a JSON Schema"
            )
        if isinstance(schema, dict) and (fault := fault_of_schema(schema)):
            raise ValueError(f"not a valid JSON Schema: {fault}")
        return schema

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        given = [check for check in CHECKS if getattr(self, check) is not None]
        if len(given) != 1:
            what = " and ".join(given) if given else "none"
            raise ValueError(f"the rule {self.name!r} needs exactly one of {', '.join(CHECKS)}, got {what}")
        self._check_action(given[0])
        self._check_fields(given[0])
        return self

    def _check_fields(self, check: str) -> None:
        for field, checks in (("parts", _BY_PARTS), ("window", _BY_REGEX)):
            if field in self.model_fields_set and check not in checks:
                raise ValueError(f"the rule {self.name!r} has `{field}`, which only works with {' and '.join(checks)}")

    def _check_action(self, check: str) -> None:
        if self.action == "redact" and check not in _BY_PARTS:
            raise ValueError(f"the rule {self.name!r} does not support redaction: only 'deny' and 'hosts' rules do")
        if self.action == "replace" and self.replacement is None:
            raise ValueError(f"the rule {self.name!r} replaces answers, so `replacement` is required")


class GuardrailConfig(Config):
    """The guardrail's rules."""

    rules: tuple[RuleConfig, ...] = Field(default=(), description="Rules, in the order in which they are checked")

    @field_validator("rules")
    @classmethod
    def _check_names(cls, rules: tuple[RuleConfig, ...]) -> tuple[RuleConfig, ...]:
        names = [rule.name for rule in rules]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two rules are named {name!r}: rename one")
        return rules
