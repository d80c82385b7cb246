"""Keyword search at scale: an index on disk used by separate processes, and Chinese compared to jieba and rank_bm25.

`SEARCH_CHUNKS=1000000 python -m benchmarks --only search` measures a million chunks and takes some minutes. Their words
are random, unless `SEARCH_PASSAGES` names a file of real passages, one per line.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, overload

from benchmarks.measure import Row, cpu_ms, in_turns, wall_ms
from jackfield.retrieval import Chunk, Corpus
from jackfield.sync import run
from jackfield_documents import Shelf
from jackfield_documents.analyzer import Analyzer

_WORDS = 60
_CHUNKS = 200_000
_IN_CHINESE = 20_000
_QUESTIONS = 200
_BESIDE = 6000  # passages
_PASSAGES = os.environ.get("SEARCH_PASSAGES", "")


def by_words() -> list[Row]:
    """Return all rows. Rows for Chinese require jieba, which is not one of our dependencies."""
    chunks = int(os.environ.get("SEARCH_CHUNKS", _CHUNKS))
    return beside_tantivy() + at_scale(chunks) + (chinese(_IN_CHINESE) if importlib.util.find_spec("jieba") else [])


def beside_tantivy() -> list[Row]:
    """Query an in-memory index, compared to plain tantivy-py, on our own documentation and code."""
    import tantivy

    from jackfield_tantivy_search.searcher import TantivySearcher

    root = Path(__file__).parent.parent
    paths = [
        *sorted((root / "docs").rglob("*.md")),
        *sorted((root / "core").rglob("*.py")),
        *sorted((root / "plugins").rglob("*.py")),
    ]
    parts = [part for path in paths for part in path.read_text(encoding="utf-8").split("\n\n") if len(part) > 200]
    texts = parts[:_BESIDE]
    corpus = Corpus(tuple(Chunk(f"{number:064x}", "x.md", text, number, 80) for number, text in enumerate(texts)))
    chance = random.Random(1)
    questions = [
        f"How does {' '.join(chance.choice(texts).split()[: chance.randint(4, 9)])}?" for _ in range(_QUESTIONS)
    ]
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name="en_stem")
    builder.add_integer_field("number", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(64_000_000, 1)
    for number, text in enumerate(texts):
        writer.add_document(tantivy.Document(body=[text], number=number))
    writer.commit()
    index.reload()
    theirs, ours = index.searcher(), TantivySearcher()

    def ask_tantivy() -> None:
        for question in questions:
            query, _ = index.parse_query_lenient(question, ["body"])
            for score, address in theirs.search(query, 10).hits:
                _ = score, theirs.doc(address)["number"]

    async def ask_ours() -> None:
        for question in questions:
            await ours.search(question, corpus, limit=10)

    took = in_turns({"ours": lambda: run(ask_ours()), "theirs": ask_tantivy}, rounds=15)
    each = {name: ms / len(questions) for name, ms in took.items()}
    name = f"8 tantivy_search, a question, {len(texts):,} passages in memory"
    beside = f"tantivy-py {each['theirs']:.3f} ms"
    return [Row(name, f"{each['ours']:.3f} ms", beside, each["ours"] / each["theirs"], "1.3")]


def at_scale(chunks: int) -> list[Row]:
    """Build an index of many chunks on disk, open it in another process, query it, and update it."""
    with tempfile.TemporaryDirectory() as folder:
        figures = [_in_a_process(step, folder, chunks) for step in ("make", "ask", "follow")]
    made, asked, followed = figures
    size = f"8 tantivy_search, {made['chunks']:,.0f} {'passages' if _PASSAGES else 'chunks'}"
    return [
        Row(
            size, f"{made['ms'] / 1000:.0f} s", f"{made['peak_mb']:.0f} MB to make it, {made['disk_mb']:.0f} MB on disk"
        ),
        Row("8 … a question of five words", f"{asked['ms']:.1f} ms", f"95 %: {asked['slow_ms']:.1f} ms", None, "15 ms"),
        Row("8 … the same, processor time", f"{asked['cpu_ms']:.1f} ms", "median"),
        Row(
            "8 … memory of the process, with what it imports",
            f"{asked['own_mb']:.0f} MB",
            f"{asked['peak_mb']:.0f} MB with the pages of the index, which the system may drop",
            None,
            "200 MB",
        ),
        Row("8 … 100 chunks of it changed", f"{followed['ms'] / 1000:.1f} s", f"at most {followed['peak_mb']:.0f} MB"),
    ]


def chinese(chunks: int) -> list[Row]:
    """Measure an in-memory index of Chinese chunks, compared to the usual approach."""
    import jieba
    import rank_bm25

    from jackfield_keyword_search.index import Index
    from jackfield_tantivy_search.index import in_memory

    texts = [_chinese_text(random.Random(number)) for number in range(chunks)]
    corpus = [Chunk(str(number), "x", text, number, 1) for number, text in enumerate(texts)]
    analyzer = Analyzer()
    jieba.lcut(texts[0])
    analyzer.terms(texts[0])
    theirs = cpu_ms(lambda: rank_bm25.BM25Okapi([jieba.lcut(text) for text in texts]))
    rows = []
    for name, work in (("tantivy", lambda: in_memory(corpus, analyzer)), ("keyword", lambda: Index(corpus, analyzer))):
        ours = cpu_ms(work)
        beside = f"jieba and rank_bm25 {theirs / 1000:.1f} s"
        rows.append(
            Row(f"8 {name}_search, {chunks:,} in Chinese", f"{ours / 1000:.1f} s", beside, ours / theirs, "0.33")
        )
    return rows


def _in_a_process(step: str, folder: str, chunks: int) -> dict[str, float]:
    command = [sys.executable, "-m", __name__, step, folder, str(chunks)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=3600)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


class _Chunks(Sequence[Chunk]):
    """Chunks created as they are read, like a corpus on disk; the content of `changed` of them is different."""

    def __init__(self, texts: _Texts, count: int, changed: int = 0) -> None:
        self._texts = texts
        self._count = count
        self._changed = changed

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Chunk: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Chunk]: ...

    def __getitem__(self, place: int | slice) -> Chunk | Sequence[Chunk]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        return Chunk(self._id(place), "x.md", self._texts.at(place), place, 80)

    def __iter__(self) -> Iterator[Chunk]:
        return (self[place] for place in range(len(self)))

    def ids(self) -> Iterator[str]:
        return map(self._id, range(len(self)))

    def _id(self, place: int) -> str:
        return f"{place:063}" + ("!" if place < self._changed else "")


class _Texts(Protocol):
    def at(self, place: int) -> str: ...


class _RandomTexts:
    def at(self, place: int) -> str:
        """Return words that are as unevenly distributed as in natural language."""
        chance = random.Random(place)
        return " ".join(f"w{int(chance.paretovariate(0.6)) % 500_000:x}" for _ in range(_WORDS))


class _Passages:
    """The lines of a file, read one at a time."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._starts = array("q", [0])
        for line in self._file:
            self._starts.append(self._starts[-1] + len(line))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def at(self, place: int) -> str:
        self._file.seek(self._starts[place])
        return self._file.readline().decode()


def _chinese_text(chance: random.Random) -> str:
    words = _WORDS_IN_CHINESE.split()
    return "，".join("".join(chance.choices(words, k=chance.randint(6, 14))) for _ in range(8)) + "。"


_WORDS_IN_CHINESE = """
每次 工具 调用 默认 超时 三百 秒 服务器 每天 凌晨 两点 重新启动 写入 备份
研究生 图书馆 借阅 北京大学 位于 海淀区 员工 工作 六个月 申请 育儿假 发票 必须 交货
三十天 付款 量子 计算机 利用 叠加 计算 长城 建于 明朝 全长 公里 企鹅 生活
南极洲 绿茶 冲泡 自然语言 处理 技术 发展 人工智能 改变 世界 经济 社会 文化 教育
科学 研究 方法 理论 实践 问题 分析 结果 数据 系统 管理 信息 网络安全 软件工程
设计 开发 测试 部署 的 是 在
"""


def _step(step: str, folder: Path, count: int) -> dict[str, float]:
    from jackfield_tantivy_search.searcher import TantivySearcher

    texts: _Texts = _RandomTexts()
    if _PASSAGES:
        texts = passages = _Passages(Path(_PASSAGES))
        count = min(count, len(passages))
    chunks = _Chunks(texts, count, changed=100 if step == "follow" else 0)
    corpus = Corpus(chunks)  # type: ignore[arg-type]
    vars(corpus).update(content_hash=f"{chunks._changed:064}", shelf=Shelf(folder, f"{chunks._changed:064}"))
    searcher, chance, took, cpu = TantivySearcher(), random.Random(1), [], []
    first = wall_ms(lambda: run(searcher.search("w1f", corpus, limit=10)))
    for _ in range(_QUESTIONS):
        words = texts.at(chance.randrange(count)).split()
        question = " ".join(chance.sample(words, min(5, len(words))))
        started = time.process_time()
        took.append(wall_ms(lambda question=question: run(searcher.search(question, corpus, limit=10))))  # type: ignore[misc]
        cpu.append((time.process_time() - started) * 1000)
    ms = statistics.median(took) if step == "ask" else first
    memory = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    slow = statistics.quantiles(took, n=20)[-1]
    return {
        "ms": ms,
        "slow_ms": slow,
        "cpu_ms": statistics.median(cpu),
        "peak_mb": int(memory["VmHWM"].split()[0]) / 1000,
        "own_mb": int(memory["RssAnon"].split()[0]) / 1000,
        "disk_mb": disk / 1e6,
        "chunks": count,
    }


if __name__ == "__main__":
    print(json.dumps(_step(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
