"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolsetSuite

from .conftest import BAD


class TestPlugin(PluginSuite):
    dist = "jackfield-mcp"


class TestToolset(ToolsetSuite):
    component = "jackfield-mcp/mcp"
    config: ClassVar = {"mcpServers": {"bad": BAD}}
    tools = ("bad-echo", "bad-pid")

    @pytest.fixture(autouse=True)
    def _has_a_cache_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
