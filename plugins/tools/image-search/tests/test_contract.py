"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolSuite
from jackfield_testkit.web import WebAnswer, WebRequest, WebServer


class TestPlugin(PluginSuite):
    dist = "jackfield-image-search"


def _serpapi(request: WebRequest) -> WebAnswer:
    if request.query.get("api_key") != "example-Zq83bXw4Rk2L":
        return WebAnswer.json({"error": "Invalid API key."}, status=401)
    return WebAnswer.json(
        {
            "search_metadata": {"status": "Success"},
            "image_results": [
                {"position": 1, "title": "Lighthouse", "link": "https://coast.example/", "source": "Coast"},
            ],
        }
    )


class TestTool(ToolSuite):
    component = "jackfield-image-search/image_search"
    urls: ClassVar = ["https://photos.example/1.jpg"]
    files: ClassVar = {"notes.txt": b"no image"}
    examples: ClassVar = [
        ({"img_idx": 0}, "[1] Lighthouse\nhttps://coast.example/\nCoast"),
        ({"img_idx": 7}, "Lighthouse"),
    ]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def serpapi(cls) -> Iterator[None]:
        """A server that speaks as SerpApi does."""
        with WebServer() as web:
            url = web.put("/search.json", _serpapi)
            cls.config = {"url": url, "api_key": "example-Zq83bXw4Rk2L", "request_timeout": 60}
            yield
