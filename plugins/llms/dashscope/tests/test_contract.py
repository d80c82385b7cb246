"""This distribution and its backends keep Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites import LLMBackendSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-dashscope"


class TestTextEndpoint(LLMBackendSuite):
    component = "jackfield-dashscope/qwen_dashscope"

    def make_server(self) -> FakeOpenAI:
        return FakeDashScope()


class TestMultimodalEndpoint(LLMBackendSuite):
    component = "jackfield-dashscope/qwenvl_dashscope"
    config: ClassVar[dict[str, object]] = {"audio": True}

    def make_server(self) -> FakeOpenAI:
        return FakeDashScope()
