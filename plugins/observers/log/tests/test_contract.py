"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import ObserverSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-log"


class TestLog(ObserverSuite):
    component = "jackfield-log/log"
    writes_conversations: ClassVar[str] = "the texts of errors are logged, and may quote a run"


class TestDebug(ObserverSuite):
    component = "jackfield-log/log"
    config: ClassVar[dict[str, str]] = {"level": "debug", "format": "json"}
    writes_conversations: ClassVar[str] = "`debug` logs what is said in runs"
