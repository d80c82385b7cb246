"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jackfield_testkit.suites import ParserSuite, PluginSuite

TEXTS = ("Opening times", "Nine")


class TestPlugin(PluginSuite):
    dist = "jackfield-ocr"


class TestOcr(ParserSuite):
    component = "jackfield-ocr/ocr"

    @pytest.fixture(autouse=True)
    def _give(self, tesseract: Callable[..., str], picture: Callable[..., bytes]) -> None:
        self.config = {"tesseract": tesseract()}
        self.samples = {
            "sign.png": (picture("Opening times", "Nine"), TEXTS),
            "sign.jpg": (picture("Opening times", "Nine", kind="JPEG", size=(400, 300)), TEXTS),
        }
        self.unreadable = {"text.png": b"just a text", "cut.png": picture("x")[:60]}
        self.hostile = {"bomb.png": picture("x", size=(12_000, 12_000))}
