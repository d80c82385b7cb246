"""Texts are worked on in batches of a bounded size, and a cancelled call begins no other one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from jackfield_multilingual_embedder.batching import batches
from jackfield_multilingual_embedder.embedder import MultilingualEmbedder
from jackfield_multilingual_embedder.model import Model


@pytest.mark.parametrize(
    ("items", "made"),
    [
        ([], []),
        (["abcde"], [["abcde"]]),
        (["ab", "cd"], [["ab", "cd"]]),
        (["ab", "cde"], [["ab"], ["cde"]]),
        (["abcdef", "a", "b"], [["abcdef"], ["a", "b"]]),
        (["a", "abcdef", "b"], [["a"], ["abcdef"], ["b"]]),
    ],
)
def test_a_batch_holds_no_more_than_the_limit_except_for_one_item(items: list[str], made: list[list[str]]) -> None:
    assert [*batches(items, 4)] == made


def test_a_cancelled_call_begins_no_other_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    embed = Model.embed

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def cancel_and_embed(model: Model, texts: Sequence[str]) -> Any:
            begun.append(len(texts))
            loop.call_soon_threadsafe(task.cancel)
            return embed(model, texts)

        monkeypatch.setattr(Model, "embed", cancel_and_embed)
        task = asyncio.create_task(MultilingualEmbedder().embed(["tea " * 500] * 20))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert begun == [2]
