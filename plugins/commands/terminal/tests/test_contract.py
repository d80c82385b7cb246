"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jackfield_terminal.plugin import commands
from jackfield_testkit.suites import CommandSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-terminal"


class TestRun(CommandSuite):
    component = "jackfield-terminal/run"
    arguments: ClassVar[Sequence[str]] = ("-m", "offline:extractive", "Hello")
    user_error: ClassVar[Sequence[str]] = ("-m", "no-such-backend:m", "Hello")


class TestRuns(CommandSuite):
    component = "jackfield-terminal/runs"
    arguments: ClassVar[Sequence[str]] = ("list",)
    user_error: ClassVar[Sequence[str]] = ("show", "nothing")


class TestChat(CommandSuite):
    component = "jackfield-terminal/chat"
    arguments: ClassVar[Sequence[str]] = ("-m", "offline:extractive")
    user_error: ClassVar[Sequence[str]] = ("-m", "no-such-backend:m")


def test_its_descriptors_state_their_effects() -> None:
    assert {spec.name for spec in commands()} == {"run", "chat", "models", "runs"}
    assert {tuple(sorted(spec.effects)) for spec in commands()} == {("files", "network")}
