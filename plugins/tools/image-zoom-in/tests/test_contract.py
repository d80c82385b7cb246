"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from PIL import Image

from jackfield_testkit.suites import PluginSuite, ToolSuite
from jackfield_testkit.web import WebAnswer, WebServer


class TestPlugin(PluginSuite):
    dist = "jackfield-image-zoom-in"


def _png(width: int, height: int) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (width, height), "navy").save(written, "PNG")
    return written.getvalue()


def _has_size(width: int, height: int) -> Any:
    def check(content: Any) -> bool:
        written = base64.b64decode(content[1].image.partition(",")[2])
        return Image.open(io.BytesIO(written)).size == (width, height)

    return check


class TestTool(ToolSuite):
    component = "jackfield-image-zoom-in/image_zoom_in_tool"
    config: ClassVar = {"fetch_cfg": {"allow": ["127.0.0.1"]}}
    files: ClassVar = {"sea.png": _png(200, 100), "notes.txt": b"no image"}
    examples: ClassVar = [
        ({"bbox_2d": [0, 0, 500, 500], "label": "the sky", "img_idx": 0}, _has_size(736, 384)),
        ({"bbox_2d": [0, 0, 500, 500], "label": "天空", "img_idx": 1}, _has_size(512, 512)),
    ]
    failures: ClassVar = [
        {"bbox_2d": [0, 0, 500, 500], "label": "nothing", "img_idx": 2},
        {"bbox_2d": [500, 0, 500, 500], "label": "nothing", "img_idx": 0},
    ]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def web(cls) -> Iterator[None]:
        """A server with one more image."""
        with WebServer() as web:
            cls.urls = [web.put("/land.png", WebAnswer(_png(600, 600), {"content-type": "image/png"}))]
            yield
