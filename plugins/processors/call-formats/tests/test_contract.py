"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import CallFormatSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-call-formats"


class TestNous(CallFormatSuite):
    component = "jackfield-call-formats/nous"
    max_held = 16


class TestQwen(CallFormatSuite):
    component = "jackfield-call-formats/qwen"
    max_held = 16


class TestQwen3Coder(CallFormatSuite):
    component = "jackfield-call-formats/qwen3_coder"
    max_held = 16


class TestReAct(CallFormatSuite):
    component = "jackfield-call-formats/react"
    max_held = 32
