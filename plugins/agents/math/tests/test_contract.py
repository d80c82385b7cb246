"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import Any, ClassVar

from jackfield_testkit.suites import AnswerSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-math"


def run_code(code: str) -> str:
    """Run code."""
    return code


class TestAgent(AnswerSuite):
    component = "jackfield-math/tir_math"
    config: ClassVar[dict[str, Any]] = {"function_list": [run_code]}
