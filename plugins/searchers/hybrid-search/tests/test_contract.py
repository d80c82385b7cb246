"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from jackfield_testkit.suites import PluginSuite, SearcherSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-hybrid-search"


class TestHybridSearch(SearcherSuite):
    component = "jackfield-hybrid-search/hybrid_search"
    config: ClassVar[Mapping[str, object]] = {
        "searchers": ["keyword_search", "front_page_search"],
        "weights": {"keyword_search": 2},
    }
    always_finds = "the first page is shown whatever is asked"


class TestHybridSearchOfOne(SearcherSuite):
    component = "jackfield-hybrid-search/hybrid_search"
    config: ClassVar[Mapping[str, object]] = {"searchers": [{"name": "keyword_search", "chinese": "bigrams"}]}
