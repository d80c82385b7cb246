"""This distribution and its backend keep Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from jackfield_testkit.anthropic import AnthropicMessages
from jackfield_testkit.dialects import Dialect
from jackfield_testkit.suites import LLMBackendSuite, PluginSuite

NOT_THERE = "the Messages protocol has no such option"


class TestPlugin(PluginSuite):
    dist = "jackfield-anthropic"


class TestBackend(LLMBackendSuite):
    component = "jackfield-anthropic/anthropic"
    dialect: ClassVar[Dialect] = AnthropicMessages()
    unsupported_options: ClassVar[Mapping[str, str]] = {
        "seed": NOT_THERE,
        "presence_penalty": NOT_THERE,
        "frequency_penalty": NOT_THERE,
        "response_format": "the Messages protocol takes a schema, and nothing for JSON as such",
    }
