"""This distribution keeps Jackfield's contracts, with the real engine."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from jackfield.retrieval import Searcher
from jackfield_testkit.suites import PluginSuite, SearcherSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-pgvector-search"


class OnThePostgresServer(SearcherSuite):
    component = "jackfield-pgvector-search/pgvector_search"
    settings: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _server(self, make: Any) -> None:
        self._make = make

    def make_searcher(self) -> Searcher:
        """One that asks the servers of this test."""
        made: Searcher = self._make(**self.settings)
        return made


class TestHybrid(OnThePostgresServer):
    always_finds = "every text has a nearest vector"


class TestWords(OnThePostgresServer):
    settings: ClassVar[dict[str, Any]] = {"search": "words"}
