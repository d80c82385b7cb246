"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import CommandSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-index"


class TestCommand(CommandSuite):
    component = "jackfield-index/index"
    arguments = ("list",)
    user_error = ("info", "no-such-index")
