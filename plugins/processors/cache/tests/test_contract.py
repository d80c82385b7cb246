"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from jackfield.processors import Processor
from jackfield_cache.processor import Cache
from jackfield_testkit.suites import PluginSuite, ProcessorSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-cache"


class TestCache(ProcessorSuite):
    component = "jackfield-cache/cache"
    texts: ClassVar[Sequence[str]] = ("An answer.",)
    harmless = "Another one, with 数据 and a 🙂."  # each of its cuts is a file of its own
    max_held = 64  # read ahead, where a model answers faster than its answer is read

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path: Path) -> Iterator[None]:
        self._folder = tmp_path
        self._made: list[Cache] = []
        yield
        for cache in self._made:
            cache.close()

    def make_processor(self) -> Processor:
        """A cache that knows nothing yet: the suite asks the same of models that answer differently."""
        self._made.append(Cache(path=self._folder / f"{len(self._made)}.sqlite"))
        return self._made[-1]
