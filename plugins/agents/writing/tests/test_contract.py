"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import AnswerSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-writing"


class TestOutlineWriting(AnswerSuite):
    component = "jackfield-writing/outline_writing"


class TestExpandWriting(AnswerSuite):
    component = "jackfield-writing/expand_writing"


class TestContinueWriting(AnswerSuite):
    component = "jackfield-writing/continue_writing"
