"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import CodeSandboxSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-monty"


class TestSandbox(CodeSandboxSuite):
    component = "jackfield-monty/monty"
