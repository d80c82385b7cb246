"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import PluginSuite, SearcherSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-keyword-search"


class TestKeywordSearch(SearcherSuite):
    component = "jackfield-keyword-search/keyword_search"


class TestKeywordSearchWithBigrams(SearcherSuite):
    component = "jackfield-keyword-search/keyword_search"
    config: ClassVar = {"chinese": "bigrams"}
