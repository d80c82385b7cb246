"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import CommandSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-serve"


class TestCommand(CommandSuite):
    component = "jackfield-serve/serve"
    arguments = ("--faces",)
    user_error = ("no-such-agent.yaml",)
