"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jackfield_testkit.suites import PluginSuite, ProcessorSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-fallback"


class TestFallback(ProcessorSuite):
    component = "jackfield-fallback/fallback"
    config: ClassVar[Mapping[str, Any]] = {"overload": ["openai:other"], "cooldown_s": 1}
    texts: ClassVar[Sequence[str]] = ("An answer.",)
    harmless = "Another one, with 数据 and a 🙂."
    max_held = 0
