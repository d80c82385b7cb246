"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import AnswerSuite, PluginSuite
from jackfield_writing.plugin import agents


class TestPlugin(PluginSuite):
    dist = "jackfield-writing"


class TestOutlineWriting(AnswerSuite):
    component = "jackfield-writing/outline_writing"


class TestExpandWriting(AnswerSuite):
    component = "jackfield-writing/expand_writing"


class TestContinueWriting(AnswerSuite):
    component = "jackfield-writing/continue_writing"


def test_only_the_one_that_reads_documents_has_effects_and_requirements() -> None:
    assert {spec.name: (set(spec.effects), spec.requires) for spec in agents() if spec.effects or spec.requires} == {
        "article": ({"files", "network"}, ("agent.memory",))
    }
