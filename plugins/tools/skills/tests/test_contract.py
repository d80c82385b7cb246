"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from jackfield_testkit.suites import PluginSuite, ToolsetSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-skills"


class TestToolset(ToolsetSuite):
    component = "jackfield-skills/skills"
    config: ClassVar = {"folders": [str(Path(__file__).parent / "shown")]}
    tools = ("skill",)
