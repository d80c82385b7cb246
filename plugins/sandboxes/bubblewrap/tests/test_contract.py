"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import PluginSuite, SandboxSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-bubblewrap"


class TestBubblewrap(SandboxSuite):
    component = "jackfield-bubblewrap/bubblewrap"


class TestLandlock(SandboxSuite):
    component = "jackfield-bubblewrap/landlock"
