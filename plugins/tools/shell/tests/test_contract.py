"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import PluginSuite, ToolSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-shell"


class TestTool(ToolSuite):
    component = "jackfield-shell/shell"
    # What a sandbox does is tested in test_sandboxed.py; not every machine has one.
    config: ClassVar = {"sandbox": "none"}
    examples: ClassVar = [
        ({"command": "echo high; echo low >&2; exit 3"}, "high\nlow\n[exit code 3]"),
        ({"command": "printf 潮汐", "timeout_s": 60}, "潮汐"),
    ]
    failures: ClassVar = [{"command": "a\0b"}, {"command": "echo \ud83d"}, {"command": "x" * 100_001}]
