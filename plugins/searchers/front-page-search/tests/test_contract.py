"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.suites import PluginSuite, SearcherSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-front-page-search"


class TestFrontPageSearch(SearcherSuite):
    component = "jackfield-front-page-search/front_page_search"
    ignores_query = "the front of a document answers what it is, however that is asked"
