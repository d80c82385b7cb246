"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jackfield_testkit.suites import PluginSuite, StoreSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-sqlite-store"


class TestStore(StoreSuite):
    component = "jackfield-sqlite-store/sqlite"
    config: ClassVar[Mapping[str, Any]] = {"path": "runs.sqlite"}
