"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_manage.plugin import commands
from jackfield_testkit.suites import PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-manage"


def test_its_descriptors_state_their_effects() -> None:
    assert {spec.name: set(spec.effects) for spec in commands()} == {
        "plugins": {"files", "processes"},
        "pipeline": set(),
        "requirements": set(),
        "trust": {"files"},
        "keys": {"files"},
        "completion": set(),
        "news": {"files"},
    }
