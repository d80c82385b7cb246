"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.retrieval import Searcher
from jackfield_testkit.suites import PluginSuite, SearcherSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-vector-search"


class TestVectorSearch(SearcherSuite):
    component = "jackfield-vector-search/vector_search"
    always_finds = "every text has a nearest vector"

    @pytest.fixture(autouse=True)
    def _server(self, make: Callable[..., Searcher], tmp_path: Path) -> None:
        self._make = make
        self._folder = tmp_path

    def settings(self) -> dict[str, Any]:
        """Of the searcher."""
        return {}

    def make_searcher(self) -> Searcher:
        """One that asks the server."""
        return self._make(**self.settings())


class TestVectorSearchWithAFile(TestVectorSearch):
    def settings(self) -> dict[str, Any]:
        """With a file."""
        return {"index_path": str(self._folder / "vectors.db")}
