"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import AgentSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-react"


class TestAgent(AgentSuite):
    component = "jackfield-react/react"
