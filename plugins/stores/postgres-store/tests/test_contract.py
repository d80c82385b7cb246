"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jackfield_testkit.suites import PluginSuite, StoreSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-postgres-store"


class TestStore(StoreSuite):
    component = "jackfield-postgres-store/postgres"

    @pytest.fixture
    def settings(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        return settings
