"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_truncation.config import CompactionConfig, SummarizingConfig, TruncationConfig
from jackfield_truncation.plugin import processors, toolsets
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ProcessorSpec truncation": {},
    "ProcessorSpec summarizing_truncation": {"before": ("truncation",), "effects": frozenset({"network"})},
    "ToolsetSpec compaction": {"effects": frozenset({"network"})},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*processors(), *toolsets()]
    assert promises_of(specs) == PROMISES


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            TruncationConfig,
            {"context_tokens": None, "answer_tokens": None, "margin": None, "media_tokens": 1000, "tokenizer": None},
        ),
        (
            SummarizingConfig,
            {
                "context_tokens": None,
                "answer_tokens": None,
                "margin": None,
                "media_tokens": 1000,
                "tokenizer": None,
                "llm": None,
                "summary_tokens": 500,
            },
        ),
        (
            CompactionConfig,
            {
                "context_tokens": None,
                "answer_tokens": None,
                "margin": None,
                "media_tokens": 1000,
                "tokenizer": None,
                "llm": None,
                "summary_tokens": 1000,
                "share": 0.75,
                "keep_turns": 2,
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, {}) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (TruncationConfig, "context_tokens", 1, 0),
        (TruncationConfig, "answer_tokens", 0, -1),
        (TruncationConfig, "margin", 0, -0.01),
        (TruncationConfig, "margin", 0.99, 1),
        (TruncationConfig, "media_tokens", 0, -1),
        (SummarizingConfig, "context_tokens", 1, 0),
        (SummarizingConfig, "answer_tokens", 0, -1),
        (SummarizingConfig, "margin", 0, -0.01),
        (SummarizingConfig, "margin", 0.99, 1),
        (SummarizingConfig, "media_tokens", 0, -1),
        (SummarizingConfig, "summary_tokens", 50, 49),
        (CompactionConfig, "context_tokens", 1, 0),
        (CompactionConfig, "answer_tokens", 0, -1),
        (CompactionConfig, "margin", 0, -0.01),
        (CompactionConfig, "margin", 0.99, 1),
        (CompactionConfig, "media_tokens", 0, -1),
        (CompactionConfig, "summary_tokens", 50, 49),
        (CompactionConfig, "share", 0.01, 0),
        (CompactionConfig, "share", 1, 1.01),
        (CompactionConfig, "keep_turns", 1, 0),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, {})
