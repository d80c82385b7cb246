"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_new.plugin import commands
from jackfield_testkit.suites import CommandSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-new"


class TestCommand(CommandSuite):
    component = "jackfield-new/new"
    arguments = ("tool", "tide-table")
    user_error = ("tool", "Tide/Table")


def test_its_descriptor_states_its_effects() -> None:
    assert [set(spec.effects) for spec in commands()] == [{"files"}]
