"""This distribution and its backend keep Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import ChatModelSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-offline"


class TestBackend(ChatModelSuite):
    component = "jackfield-offline/offline"
    config: ClassVar[dict[str, object]] = {"model": "extractive"}
    tool_question = 'call get_weather {"place": "Bonn"}'
