"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolSuite
from jackfield_testkit.web import WebAnswer, WebRequest, WebServer


class TestPlugin(PluginSuite):
    dist = "jackfield-web-search"


def _serper(request: WebRequest) -> WebAnswer:
    if request.headers["x-api-key"] != "sk-example-Zq83bXw4" or request.method != "POST":
        return WebAnswer.json({"message": "Unauthorized.", "statusCode": 403}, status=403)
    if request.json["q"] == "fail":
        return WebAnswer.json({"message": "Not enough credits"}, status=400)
    pages = [{"title": "Tides", "link": "https://tides.example/", "snippet": "Twice a day.", "date": "3 days ago"}]
    return WebAnswer.json({"searchParameters": request.json, "organic": pages, "credits": 1})


class TestTool(ToolSuite):
    component = "jackfield-web-search/web_search"
    examples: ClassVar = [
        ({"query": "high water"}, "[1] Tides\nhttps://tides.example/\nTwice a day. (3 days ago)"),
        ({"query": "潮汐"}, "Twice a day."),
    ]
    failures: ClassVar = [{"query": " "}, {"query": "fail"}]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def serper(cls) -> Iterator[None]:
        """A server that speaks as Serper does."""
        with WebServer() as web:
            cls.config = {"url": web.put("/search", _serper), "api_key": "sk-example-Zq83bXw4", "request_timeout": 60}
            yield
