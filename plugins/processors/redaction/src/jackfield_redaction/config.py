"""Settings for redaction."""

from __future__ import annotations

import re
from typing import Literal

import regex as regexes
from pydantic import Field, field_validator

from jackfield.config import Config
from jackfield.patterns import MAX_STEPS, count_steps

Mode = Literal["placeholder", "remove"]
Kind = Literal["private_key", "api_key", "jwt", "email", "iban", "cn_id", "card", "us_ssn", "ip", "phone"]

MAX_PATTERN_LENGTH = 1000


class PatternConfig(Config):
    """A custom pattern: a regular expression, and the maximum length of its matches.

    The pattern is tried at every position of every text, but sees only the next `max_length` characters, even in a
    lookahead. A lookbehind sees 16 characters.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,29}$", description="Name used in placeholders and counts")
    regex: str = Field(repr=False)
    max_length: int = Field(
        ge=1,
        le=MAX_PATTERN_LENGTH,
        description="Maximum length of a match in characters; a stream is delayed by as many",
    )

    @field_validator("regex")
    @classmethod
    def _check_regex(cls, regex: str) -> str:
        if count_steps(regex) > MAX_STEPS:
            raise ValueError("the pattern contains too many repetitions: lower the numbers in {…}")
        try:
            compiled = re.compile(regex)
            regexes.compile(regex, regexes.VERSION0)
        except (re.error, regexes.error, RecursionError, OverflowError):
            raise ValueError("not a valid Python regular expression") from None
        if compiled.match(""):
            raise ValueError("the pattern matches the empty string, so it would match everywhere")
        return regex


class RedactionConfig(Config):
    """The values to find, how to treat them, and exceptions."""

    mode: Mode = Field(default="placeholder", description="placeholder: restored in answers; remove: never restored")
    kinds: tuple[Kind, ...] | None = Field(default=None, description="The built-in kinds to find; all if unset")
    patterns: tuple[PatternConfig, ...] = Field(default=(), description="Further patterns to find")
    keep: tuple[str, ...] = Field(
        default=(), repr=False, description="Values that are not redacted; * and ? are wildcards, case is ignored"
    )

    @field_validator("patterns")
    @classmethod
    def _check_names(cls, patterns: tuple[PatternConfig, ...]) -> tuple[PatternConfig, ...]:
        names = [pattern.name for pattern in patterns]
        for name in names:
            if name in ALL_KINDS:
                raise ValueError(f"{name!r} is a built-in kind: give your pattern another name")
            if names.count(name) > 1:
                raise ValueError(f"two patterns are named {name!r}: join them with |, or rename one")
        return patterns


ALL_KINDS: tuple[Kind, ...] = (
    "private_key",
    "api_key",
    "jwt",
    "email",
    "iban",
    "cn_id",
    "card",
    "us_ssn",
    "ip",
    "phone",
)
"""In the order in which they are tried at the same position."""
