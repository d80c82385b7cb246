"""This distribution and its backend keep Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import LLMBackendSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-openai"


class TestBackend(LLMBackendSuite):
    component = "jackfield-openai/openai"
    config: ClassVar[dict[str, object]] = {"audio": True, "video": True}
