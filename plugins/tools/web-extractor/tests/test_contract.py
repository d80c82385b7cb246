"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-web-extractor"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


class TestTool(ToolSuite):
    component = "jackfield-web-extractor/web_extractor"
    config: ClassVar = {"fetch_cfg": {"allow": ["127.0.0.1"]}}

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def pages(cls) -> Iterator[None]:
        """A server that gives the files of `pages`, and what the suite is to try with them."""
        handler = functools.partial(_Quiet, directory=str(Path(__file__).parent / "pages"))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}"
            page = f"{url}/tides.html"
            cls.examples = [
                ({"url": page}, "# Tides\n\nHigh water comes twice a day."),
                ({"url": page, "part": 1}, f"[the ferry]({url}/ferry.html)"),
            ]
            cls.failures = [{"url": f"{url}/gone.html"}, {"url": "tides.html"}, {"url": page, "part": 9}]
            yield
            server.shutdown()
