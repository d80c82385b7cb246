"""Row 8: convert files to text, compared to Qwen-Agent and the libraries it uses, and split text into chunks."""

from __future__ import annotations

import io
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import docx
import openpyxl
import pptx
import pypdfium2

from benchmarks.files import docx_file, html_file, pdf_file, pptx_file, xlsx_file
from benchmarks.measure import Row, cpu_ms, in_turns
from jackfield.errors import DocParserError
from jackfield.plugins import default_host
from jackfield_documents import chunk_document

PEER = Path(__file__).with_name("peer_qwen_documents.py")
ANSWER = "took_ms "
TARGETS = {"pdf": "0.083", "html": "0.11", "docx": "0.25", "pptx": "0.25", "xlsx": "0.083"}
_ROUNDS = {"pdf": 1, "xlsx": 1}  # Qwen-Agent takes a minute per file


def parsing(qwen_python: str | None) -> list[Row]:
    """Measure 1000 pages, a page and a Word file of 60 sections each, 100 slides, and a sheet of 50,000 rows."""
    files = {
        "pdf": pdf_file(1000),
        "html": html_file(),
        "docx": docx_file(),
        "pptx": pptx_file(),
        "xlsx": xlsx_file(),
    }
    with tempfile.TemporaryDirectory() as folder, _peer(qwen_python, Path(folder)) as their_ms:
        for kind, data in files.items():
            Path(folder, f"file.{kind}").write_bytes(data)
        return [row for kind, data in files.items() for row in _rows(kind, data, their_ms)]


def given_documents(qwen_python: str | None, folder: str | None) -> list[Row]:
    """Measure the CPU time for all documents in a folder, by kind, read one by one, compared to Qwen-Agent."""
    if folder is None or qwen_python is None:
        return []
    took: dict[str, list[tuple[float, float]]] = {}
    with _peer(qwen_python, Path(folder)) as their_ms:
        assert their_ms is not None
        for path in sorted(Path(folder).iterdir()):
            kind = path.suffix.removeprefix(".")
            if kind in TARGETS:
                parser, data = default_host().load("parser", kind)(), path.read_bytes()
                try:
                    parser.parse(data, source=path.name)  # the first one imports
                except DocParserError as error:
                    print(f"left out: {error}")
                    continue
                ours = cpu_ms(partial(parser.parse, data, source=path.name))
                took.setdefault(kind, []).append((ours, their_ms(path.name)))
    return [_given_row(kind, times) for kind, times in took.items()]


def _given_row(kind: str, times: list[tuple[float, float]]) -> Row:
    ours, theirs = (sum(each) for each in zip(*times, strict=True))
    spread = sorted(our / their for our, their in times)
    beside = f"Qwen-Agent {theirs:.0f} ms, {spread[0]:.3f} to {spread[-1]:.3f}"
    target = "0.05" if kind == "pdf" else ""
    return Row(f"8 {kind}, {len(times)} given files", f"{ours:.0f} ms", beside, ours / theirs, target)


def _rows(kind: str, data: bytes, their_ms: Callable[[str], float] | None) -> Iterator[Row]:
    parser = default_host().load("parser", kind)()
    took: dict[str, list[float]] = {"ours": [], "plain": [], "theirs": []}
    for _ in range(_ROUNDS.get(kind, 5) + 1):
        took["ours"].append(cpu_ms(lambda: parser.parse(data, source="x")))
        if kind in PLAIN:
            took["plain"].append(cpu_ms(lambda: PLAIN[kind](io.BytesIO(data))))
        if their_ms:
            took["theirs"].append(their_ms(f"file.{kind}"))
    median = {name: statistics.median(taken[1:]) for name, taken in took.items() if taken}  # the first one imports
    name, ours = f"8 {kind}, {len(data) // 1000} kB", median["ours"]
    if kind in PLAIN:
        beside = f"{NAMES[kind]} {median['plain']:.0f} ms"
        yield Row(name, f"{ours:.1f} ms", beside, ours / median["plain"])
    if their_ms:
        beside = f"Qwen-Agent {median['theirs']:.0f} ms"
        yield Row(name, f"{ours:.1f} ms", beside, ours / median["theirs"], TARGETS[kind])


def chunking() -> list[Row]:
    """Measure splitting files into chunks, compared to parsing, and a megabyte of plain text, compared to one regex."""
    files = {"pdf": pdf_file(200), "html": html_file(), "docx": docx_file(), "pptx": pptx_file(), "xlsx": xlsx_file()}
    rows = [_chunking_row(kind, data) for kind, data in files.items()]
    paragraph = "Reading 1,000 pages takes a while; nobody waits for it twice, because what was read is kept. " * 5
    text = "\n\n".join([paragraph] * (1_000_000 // len(paragraph)))
    parser = default_host().load("parser", "text")()
    works = {
        "ours": lambda: chunk_document(parser.parse(text.encode(), source="x")),
        "words": lambda: re.findall(r"\w+|[^\w\s]", text),
    }
    median = in_turns(works, rounds=5)
    ours, words = median["ours"], median["words"]
    name = f"8 text parsed and cut, {len(text) / 1000 / ours:.0f} MB/s"
    return [*rows, Row(name, f"{ours:.1f} ms", f"its words by re.findall {words:.0f} ms", ours / words, "1.5")]


def _chunking_row(kind: str, data: bytes) -> Row:
    parser = default_host().load("parser", kind)()
    document = parser.parse(data, source="x")
    works = {"ours": lambda: chunk_document(document), "parsing": lambda: parser.parse(data, source="x")}
    median = in_turns(works, rounds=_ROUNDS.get(kind, 5))
    ours, parsing = median["ours"], median["parsing"]
    return Row(f"8 chunks of {kind}", f"{ours:.1f} ms", f"parsing it {parsing:.0f} ms", ours / parsing, "1.0")


@contextmanager
def _peer(python: str | None, folder: Path) -> Iterator[Callable[[str], float] | None]:
    """Yield a function that times Qwen-Agent parsing a file in the folder, or None without its Python."""
    if python is None:
        yield None
        return
    command = [python, str(PEER), str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, cwd=folder, **pipes) as peer:  # type: ignore[call-overload]

        def ask(name: str) -> float:
            print(name, file=peer.stdin, flush=True)
            for line in peer.stdout:
                if line.startswith(ANSWER):
                    return float(line.removeprefix(ANSWER))
            raise RuntimeError(f"Qwen-Agent ended at {name}")

        yield ask
        peer.stdin.close()


def _plain_docx(file: io.BytesIO) -> str:
    document = docx.Document(file)
    texts = [paragraph.text for paragraph in document.paragraphs]
    texts += [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return "\n".join(texts)


def _plain_pptx(file: io.BytesIO) -> str:
    shapes = [shape for slide in pptx.Presentation(file).slides for shape in slide.shapes if shape.has_text_frame]
    return "\n".join(shape.text_frame.text for shape in shapes)


def _plain_xlsx(file: io.BytesIO) -> int:
    book = openpyxl.load_workbook(file, read_only=True)
    return sum(1 for sheet in book for _ in sheet.iter_rows(values_only=True))


def _plain_pdf(file: io.BytesIO) -> int:
    with pypdfium2.PdfDocument(file) as document:
        return sum(len(page.get_textpage().get_text_range()) for page in document)


PLAIN: Mapping[str, Callable[[io.BytesIO], object]] = {
    "pdf": _plain_pdf,
    "docx": _plain_docx,
    "pptx": _plain_pptx,
    "xlsx": _plain_xlsx,
}
NAMES = {"pdf": "PDFium", "docx": "python-docx", "pptx": "python-pptx", "xlsx": "openpyxl, read-only"}
