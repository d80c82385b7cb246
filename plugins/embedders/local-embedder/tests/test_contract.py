"""This distribution and its embedder keep Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jackfield.retrieval import Embedder
from jackfield_testkit.suites import LocalEmbedderSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-local-embedder"


class TestEmbedder(LocalEmbedderSuite):
    component = "jackfield-local-embedder/transformers"
    other_space: ClassVar[Mapping[str, Any]] = {"dimension": 16}
    batched: ClassVar[Mapping[str, Any]] = {"tokens_at_once": 40}

    @pytest.fixture(autouse=True)
    def _model(self, bert: Path) -> None:
        self._folder = bert

    def make_embedder(self, **overrides: Any) -> Embedder:
        """One with a tiny model."""
        return self.made({"model": str(self._folder), **self.config, **overrides})
