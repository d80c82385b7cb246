"""An index on disk with 10,000 files and 100,000 chunks."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Row, wall_ms
from jackfield_documents import DocumentReader
from jackfield_keyword_search.searcher import KeywordSearcher
from jackfield_knowledge import Built, KnowledgeIndex

FILES, PARAGRAPHS, WORDS = 10_000, 10, 100
_ROUNDS = 5


def kept_index() -> list[Row]:
    """Measure building, opening and querying the index, and updating it after one file has changed."""
    with _folder() as folder:
        words = _write_files(folder / "files")
        name = str(folder / "index")
        first = wall_ms(lambda: _followed(name, str(folder / "files")))
        chunks = KnowledgeIndex(name).facts().chunks
        opened = statistics.median(wall_ms(lambda: _opened(name)) for _ in range(_ROUNDS))
        changed = statistics.median(wall_ms(lambda: _change_one(folder, name)) for _ in range(_ROUNDS))
        asked = _asked(name, words)
    return [
        Row(f"8 index of {FILES:,} files, {chunks:,} chunks", f"{first / 1000:.1f} s", "built anew, with its words"),
        Row("8 … opened, and its words found", f"{opened:.1f} ms", "in a process that has searched", None, "50 ms"),
        Row("8 … one question of five words", f"{asked:.1f} ms", "median; some are in most chunks", None, "2 ms"),
        Row("8 … one file of it changed", f"{changed / 1000:.2f} s", "followed, with its words", None, "2 s"),
    ]


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _write_files(folder: Path) -> list[str]:
    """Write files whose words are as unevenly distributed as in natural language, and return the words."""
    chance = random.Random(1)
    words = [f"w{int(chance.paretovariate(0.6)):x}" for _ in range(400_000)]
    for number in range(FILES):
        path = folder / str(number // 500) / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        paragraphs = [" ".join(chance.choices(words, k=WORDS)) for _ in range(PARAGRAPHS)]
        path.write_text("\n\n".join((f"# Document {number}", *paragraphs)), encoding="utf-8")
        os.utime(path, (1_600_000_000, 1_600_000_000))
    return words


def _followed(name: str, *files: str) -> Built:
    index = KnowledgeIndex(name)
    reader = DocumentReader(kept_chars=1)
    built = asyncio.run(index.build(files, reader=reader, size_tokens=230, overlap_chars=0))
    _opened(name)
    index.close()
    return built


def _opened(name: str) -> None:
    index = KnowledgeIndex(name)
    asyncio.run(KeywordSearcher().search(".", index.corpus(), limit=1))
    index.close()


def _change_one(folder: Path, name: str) -> None:
    path = folder / "files/4/2001.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nanother line\n", encoding="utf-8")
    assert _followed(name).read == 1


def _asked(name: str, words: list[str]) -> float:
    index, searcher = KnowledgeIndex(name), KeywordSearcher()
    chance = random.Random(2)

    async def ask() -> list[float]:
        took = []
        for _ in range(200):
            query = " ".join(chance.choices(words, k=5))
            started = asyncio.get_running_loop().time()
            await searcher.search(query, index.corpus(), limit=10)
            took.append((asyncio.get_running_loop().time() - started) * 1000)
        return took

    return statistics.median(asyncio.run(ask()))
