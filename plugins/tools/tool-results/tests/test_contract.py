"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield import tool
from jackfield_testkit.suites import PluginSuite, ToolsetSuite


@tool(read_only=True, idempotent=True, cacheable=True)
def tides(place: str) -> str:
    """Tell when high water is.

    Args:
        place: Where.
    """
    return f"{place}: twice a day"


class TestPlugin(PluginSuite):
    dist = "jackfield-tool-results"


class TestCached(ToolsetSuite):
    component = "jackfield-tool-results/cached_results"
    config: ClassVar = {"tools": [tides]}
    tools = ("tides",)


class TestKept(ToolsetSuite):
    component = "jackfield-tool-results/kept_results"
    config: ClassVar = {"tools": [tides]}
    tools = ("tides", "read_result")


class TestRetried(ToolsetSuite):
    component = "jackfield-tool-results/retried_calls"
    config: ClassVar = {"tools": [tides]}
    tools = ("tides",)
