"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jackfield.messages import Message
from jackfield.processors import Processor
from jackfield_system_message.system_message import SystemMessage
from jackfield_testkit.suites import PluginSuite, ProcessorSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-system-message"


class TestSystemMessage(ProcessorSuite):
    component = "jackfield-system-message/system_message"
    config: ClassVar[Mapping[str, Any]] = {"text": {"en": "Be brief.", "zh": "请简短。"}, "timezone": "UTC"}
    max_held = 0


class TestSystemMessageWithItsDate(ProcessorSuite):
    component = "jackfield-system-message/system_message"
    messages: ClassVar[Sequence[Message]] = (Message("system", [{"text": "Be kind."}]), Message("user", "你好"))
    max_held = 0

    def make_processor(self) -> Processor:
        return SystemMessage(text="Be brief.", where="after", date=True, clock=lambda: 0)


class TestLanguage(ProcessorSuite):
    component = "jackfield-system-message/language"
    messages: ClassVar[Sequence[Message]] = (Message("user", "东京的天气怎么样？"),)
    max_held = 0


class TestLanguageThatIsAskedFor(ProcessorSuite):
    component = "jackfield-system-message/language"
    config: ClassVar[Mapping[str, Any]] = {"instruct": True, "look_at": "all"}
    max_held = 0
