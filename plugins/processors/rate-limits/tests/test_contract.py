"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jackfield_testkit.suites import PluginSuite, ProcessorSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-rate-limits"


class TestRateLimits(ProcessorSuite):
    component = "jackfield-rate-limits/rate_limits"
    config: ClassVar[Mapping[str, Any]] = {"requests_per_minute": 1_000_000, "tokens_per_minute": 1_000_000_000}
    texts: ClassVar[Sequence[str]] = ("An answer.",)
    harmless = "Another one, with 数据 and a 🙂."
    max_held = 0
