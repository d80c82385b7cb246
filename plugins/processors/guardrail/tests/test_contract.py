"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jackfield_testkit.suites import PluginSuite, ProcessorSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-guardrail"


class TestOnTheFly(ProcessorSuite):
    component = "jackfield-guardrail/output_guardrail"
    config: ClassVar[Mapping[str, Any]] = {
        "rules": [
            {
                "name": "keys",
                "deny": r"sk-\w{4,}",
                "action": "redact",
                "window": 24,
                "parts": ["text", "reasoning", "arguments"],
            },
            {"name": "links", "hosts": ["good.example"], "action": "redact"},
            {"name": "words", "deny": "fox", "action": "note", "window": 8},
            {"name": "length", "max_length": 20_000, "action": "block"},
        ]
    }
    texts = (
        "The key is sk-abcdefgh, and sk-x is none. sk-" + "long" * 30,
        "![a](https://evil.example/?q=1) [b](https://good.example/x) www.evil.example",
        "foxfox sk-foxfoxfox",
    )
    max_held = 128 + 32


class TestOnTheWhole(ProcessorSuite):
    component = "jackfield-guardrail/output_guardrail"
    config: ClassVar[Mapping[str, Any]] = {
        "rules": [
            {"name": "english", "language": "en"},
            {"name": "words", "require": "zebra", "action": "note"},
            {"name": "json", "json_schema": True, "action": "note"},
            {"name": "keys", "deny": r"sk-\w{4,}", "action": "redact"},
        ]
    }
    texts = ("The key is sk-abcdefgh.", "short", "{}")


class TestReplacing(ProcessorSuite):
    component = "jackfield-guardrail/output_guardrail"
    config: ClassVar[Mapping[str, Any]] = {
        "rules": [{"name": "swords", "deny": "sword", "action": "replace", "replacement": "No.", "window": 8}]
    }
    harmless = "The quick brown fox."
    max_held = 8 + 32
