"""This distribution and its embedder keep Jackfield's contracts."""

from __future__ import annotations

import pytest

from jackfield_multilingual_embedder.model import Model
from jackfield_testkit.suites import LocalEmbedderSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-multilingual-embedder"


class TestEmbedder(LocalEmbedderSuite):
    component = "jackfield-multilingual-embedder/multilingual"
    many = 120  # more than it embeds at once

    @pytest.fixture(autouse=True)
    def _loaded(self, model: Model) -> None:
        pass
