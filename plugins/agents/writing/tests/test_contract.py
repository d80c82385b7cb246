"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-writing"
