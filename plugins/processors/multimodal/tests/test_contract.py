"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jackfield.messages import Message
from jackfield_testkit.suites import PluginSuite, ProcessorSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-multimodal"


class TestWords(ProcessorSuite):
    component = "jackfield-multimodal/multimodal"
    max_held = 0


class TestAttachments(ProcessorSuite):
    component = "jackfield-multimodal/multimodal"
    config: ClassVar[Mapping[str, Any]] = {"unsupported": "note"}
    messages: ClassVar[Sequence[Message]] = (
        Message("system", [{"file": "data:text/plain,No%20shouting."}, {"text": "Keep the rules."}]),
        Message("user", [{"image": "http://h/a.png"}, {"audio": {"data": "AAAA", "format": "wav"}}, {"text": "Look."}]),
        Message("assistant", "", function_call={"name": "get_weather", "arguments": "{}"}, extra={"function_id": "1"}),
        Message("function", [{"file": "map.pdf"}], name="get_weather", extra={"function_id": "1"}),
        Message("user", [{"video": ["1.png", "2.png"]}]),
    )
    max_held = 0
