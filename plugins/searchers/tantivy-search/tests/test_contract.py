"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import PluginSuite, SearcherSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-tantivy-search"


class TestTantivySearch(SearcherSuite):
    component = "jackfield-tantivy-search/tantivy_search"


class TestTantivySearchWithBigrams(SearcherSuite):
    component = "jackfield-tantivy-search/tantivy_search"
    config: ClassVar = {"chinese": "bigrams"}
