"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import PluginSuite, ToolSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-code-interpreter"


class TestCodeInterpreter(ToolSuite):
    component = "jackfield-code-interpreter/code_interpreter"
    files: ClassVar = {"data.csv": b"a,b\n1,2\n"}
    examples: ClassVar = [
        ({"code": "print(6 * 7)"}, "42"),
        ({"code": "print(open('data.csv').read())"}, "a,b"),
        ({"code": "'grün 数据'"}, "grün 数据"),
    ]


class TestPythonExecutor(ToolSuite):
    component = "jackfield-code-interpreter/python_executor"
    config: ClassVar = {"sandbox": "monty"}  # each program is one of many; this one starts at once
    examples: ClassVar = [
        ({"code": "print(6 * 7)"}, "42"),
        ({"code": "sum(range(5))"}, "10"),
    ]
