"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import PluginSuite, ToolSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-storage"


class TestTool(ToolSuite):
    component = "jackfield-storage/storage"
    examples: ClassVar = [
        ({"operate": "put", "key": "notes/tides", "value": "twice a day"}, "Successfully saved notes/tides."),
        ({"operate": "put", "key": "/笔记", "value": "一天两次"}, "Successfully saved 笔记."),
    ]
    failures: ClassVar = [
        {"operate": "get", "key": "nothing"},
        {"operate": "delete", "key": "nothing"},
        {"operate": "put", "key": "a"},
        {"operate": "put", "key": "/", "value": "x"},
    ]
