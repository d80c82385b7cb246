"""This distribution and its backend keep Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jackfield import sync
from jackfield.models import BaseChatModel
from jackfield_testkit.suites import ChatModelSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-transformers"


class TestBackend(ChatModelSuite):
    component = "jackfield-transformers/transformers"

    @pytest.fixture
    def any_model(self, make: Callable[..., BaseChatModel], qwen3: Path) -> Iterator[BaseChatModel]:
        """A tiny model with random weights, which says anything."""
        model = make(qwen3, generate_cfg={"max_tokens": 8, "seed": 1})
        yield model
        sync.run(model.aclose())
