"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jackfield.retrieval import Searcher
from jackfield_testkit.suites import PluginSuite, SearcherSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-qdrant-search"


class TestQdrantSearch(SearcherSuite):
    component = "jackfield-qdrant-search/qdrant_search"
    always_finds = "every text has a nearest vector"

    @pytest.fixture(autouse=True)
    def _server(self, make: Callable[..., Searcher]) -> None:
        self._make = make

    def make_searcher(self) -> Searcher:
        """One with a Qdrant of its own, in memory."""
        return self._make()
