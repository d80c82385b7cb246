"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from pathlib import Path

from jackfield_testkit.suites import CommandSuite, PluginSuite

CASES = Path(__file__).parent / "said" / "cases.yaml"


class TestPlugin(PluginSuite):
    dist = "jackfield-eval"


class TestCommand(CommandSuite):
    component = "jackfield-eval/eval"
    arguments = (str(CASES), "--results", "results")
    user_error = ("no-such-file.yaml",)
