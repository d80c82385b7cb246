"""Documents that are damaged, or designed to exhaust memory and time."""

from __future__ import annotations

import io
import json
import os
import random
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path

from attacks.kind import Attempt, Kind, law
from jackfield import sync
from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_documents.chunking import corpus_of
from jackfield_documents.documents import DocumentReader

_reader: list[DocumentReader] = []


def _read(path: str | Path, wanted: str = "") -> None:
    if not _reader:
        _reader.append(DocumentReader())
    try:
        document = sync.run(_reader[0].read(path))
    except DocParserError as error:
        law(not wanted, f"it cannot be read: {error}")
        law(str(Path(path).parent) not in str(error) or str(Path(path).parent) == ".", f"the path is in: {error}")
        return
    text = "\n".join(block.text for block in document.blocks)
    law(wanted in text, f"{wanted!r} is not in it")
    text.encode()
    sync.run(_chunk(document))


async def _chunk(document: Document) -> None:
    await sync.in_worker(corpus_of, [document], size_tokens=500)


def _bytes(suffix: str, make: Callable[[], bytes], wanted: str = "") -> None:
    with tempfile.NamedTemporaryFile(suffix=suffix, dir=Path.cwd()) as file:
        Path(file.name).write_bytes(make())
        _read(file.name, wanted)


@cache
def sound_pdf() -> bytes:
    """Return a three-page PDF with text, a table and lines."""
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out)
    for page in range(3):
        canvas.setFont("Helvetica", 11)
        for line in range(30):
            canvas.drawString(72, 760 - 20 * line, f"Page {page}, line {line}: the desk has forty-eight sockets.")
        canvas.line(72, 100, 300, 100)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def _pdf(content: bytes, filters: bytes = b"", pages: int = 1, extra: bytes = b"") -> bytes:
    kids = b" ".join(b"%d 0 R" % (10 + n) for n in range(pages))
    out = [b"%PDF-1.7", b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj"]
    out.append(b"2 0 obj<</Type/Pages/Count %d/Kids[%b]>>endobj" % (pages, kids))
    out.append(b"3 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj")
    out.append(b"4 0 obj<</Length %d%b>>stream\n" % (len(content), filters) + content + b"\nendstream endobj")
    page = b"/Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 3 0 R>>%b>>" % extra
    out += [b"%d 0 obj<<%b>>endobj" % (10 + n, page) for n in range(pages)]
    return b"\n".join([*out, b"trailer<</Root 1 0 R>>", b"%%EOF"])


def _inflating_pdf(megabytes: int) -> bytes:
    """Return a PDF with text that is deflated twice, so that the file is only a kilobyte or two."""
    deflate = zlib.compressobj(9)
    piece = b"(the desk has sockets) Tj\n" * 40_000
    inner = deflate.compress(b"BT /F 9 Tf 9 9 Td\n")
    for _ in range(megabytes):
        inner += deflate.compress(piece)
    inner += deflate.flush()
    return _pdf(zlib.compress(inner, 9), b"/Filter[/FlateDecode/FlateDecode]")


def _calling_itself() -> bytes:
    form = b"/XObject<</X 5 0 R>>"
    body = _pdf(b"/X Do " * 50, extra=form)
    stream = b"BT /F 9 Tf (deep) Tj ET " + b"/X Do " * 50
    head = b"5 0 obj<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<<%b/Font<</F 3 0 R>>>>/Length %d>>" % (
        form,
        len(stream),
    )
    return body.replace(b"trailer", head + b"stream\n" + stream + b"\nendstream endobj\ntrailer")


def _branching() -> bytes:
    """Return a PDF with forms that each draw the next one ten times, for a total of 10^9 texts."""
    objects = []
    for level in range(9):
        stream = b"/X Do " * 10 if level < 8 else b"BT /F 9 Tf (leaf) Tj ET"
        inner = b"/XObject<</X %d 0 R>>" % (51 + level)
        head = b"%d 0 obj<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<<%b/Font<</F 3 0 R>>>>/Length %d>>"
        objects.append(head % (50 + level, inner, len(stream)) + b"stream\n" + stream + b"\nendstream endobj\n")
    body = _pdf(b"/X Do " * 10, extra=b"/XObject<</X 50 0 R>>")
    return body.replace(b"trailer", b"".join(objects) + b"trailer")


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a PDF that inflates": (".pdf", lambda: _inflating_pdf(300)),
    "a PDF that draws itself": (".pdf", _calling_itself),
    "a PDF that branches": (".pdf", _branching),
    "a PDF with a million pages": (".pdf", lambda: sound_pdf().replace(b"/Count 3", b"/Count 1000000")),
    "a PDF of one page 20,000 times": (".pdf", lambda: _pdf(b"BT /F 9 Tf (x) Tj ET", pages=20_000)),
    "a page of a million letters": (".pdf", lambda: _pdf(b"BT /F 9 Tf " + b"1 1 Td (x) Tj " * 300_000 + b"ET")),
    "0.4 MB of JSON lists": (".json", lambda: b"[" + b"[]," * 140_000 + b"[]]"),
    "JSON, wide and deep": (".json", lambda: b"[" + (b'{"a":' * 400 + b"1" + b"}" * 400 + b",") * 150 + b"1]"),
    "JSON, 100,000 deep": (".json", lambda: b"[" * 100_000 + b"]" * 100_000),
    "JSON, a long key at each level": (".json", lambda: (b'{"' + b"k" * 2000 + b'":') * 200 + b"1" + b"}" * 200),
    "JSON, long keys and many values": (
        ".json",
        lambda: b'{"' + b"k" * 4000 + b'": {"' + b"j" * 4000 + b'": [' + b"1," * 100_000 + b"1]}}",
    ),
    "JSON, one huge number": (".json", lambda: b"[" + b"9" * 400_000 + b"]"),
    "JSON lines": (".jsonl", lambda: b'{"a": [1, 2, {"b": null}]}\n' * 20_000),
    "1 MB of CSV": (".csv", lambda: b"a,b,c,d\n" * 130_000),
    "a CSV of one line": (".csv", lambda: b"a," * 500_000),
    "a CSV of empty cells": (".csv", lambda: (b"," * 2000 + b"\n") * 400),
    "a CSV with an open quote": (".csv", lambda: b'a,"' + b'b""c\n' * 150_000),
    "1 MB without a space": (".txt", lambda: b"x" * 1_000_000),
    "1 MB of line ends": (".txt", lambda: b"\n" * 1_000_000),
    "1 MB of headings": (".md", lambda: b"# a\n" * 250_000),
    "1 MB of open brackets": (".md", lambda: b"[" * 500_000 + b"](" * 250_000),
    "1 MB of fences": (".md", lambda: b"```\n" * 250_000),
    "1 MB of table": (".md", lambda: b"|a|b|\n|-|-|\n" + b"|c|d|\n" * 160_000),
    "1 MB of quotes": (".md", lambda: b">" * 1_000_000),
    "1 MB of combining marks": (".txt", lambda: "e\u0301\u0301\u200d".encode() * 120_000),
    "marks in disorder": (".txt", ("a" + "\u0301\u0316" * 150_000).encode),
    "a page in punycode": (".html", lambda: b"<meta charset=punycode><p>" + b"a" * 300_000 + b"-" + b"z9" * 300_000),
    "XML in punycode": (".html", lambda: b'<?xml version="1.0" encoding="punycode"?><p>' + b"a-z9" * 200_000),
    "deep JSON in JSON": (".json", lambda: json.dumps(json.dumps({"a": "x" * 500_000})).encode()),
}
ENCODINGS = (
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "gb18030",
    "big5",
    "shift_jis",
    "latin-1",
)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


_MADE: Mapping[str, Callable[[Path], object]] = {
    "FIFO": os.mkfifo,
    "folder": Path.mkdir,
    "loop": lambda path: path.symlink_to(path),
    "dangling": lambda path: path.symlink_to("/nowhere/at/all"),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "memory": lambda path: path.symlink_to("/proc/self/mem"),
    "huge": _huge,
}
_NAMES = {"NUL": "a\0b.txt", "half a character": "a\ud800b.txt", "long": "x" * 5000}


def _place(kind: str) -> None:
    """Read a path with an unusual type or name, or the working directory for any other kind."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / _NAMES.get(kind, "file.txt")
        if make := _MADE.get(kind):
            make(path)
        _read(path if kind in {*_MADE, *_NAMES} else Path())


def _head(at: int) -> bytes:
    return sound_pdf()[:at]


def _spoiled(dice: random.Random) -> bytes:
    data = bytearray(sound_pdf())
    for _ in range(dice.choice([1, 4, 30, 300])):
        at = dice.randrange(len(data))
        match dice.randrange(4):
            case 0:
                data[at] = dice.randrange(256)
            case 1:
                del data[at : at + dice.randrange(60)]
            case 2:
                data[at:at] = data[dice.randrange(len(data)) :][: dice.randrange(200)]
            case 3:
                data[at : at + 9] = str(dice.choice([-1, 0, 2**31, 2**63, 10**18])).encode()
    return bytes(data)


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    yield Attempt("a sound PDF", partial(_bytes, ".pdf", sound_pdf, "forty-eight sockets"))
    for kind in (*_MADE, "NUL"):
        yield Attempt(f"a file that is a {kind}", partial(_place, kind))
    for kind in ("half a character", "long", "nothing"):
        yield Attempt(f"a file with the name of {kind}", partial(_place, kind))
    for name in ENCODINGS:
        text = {"latin-1": "Bonn", "big5": "錄音室", "shift_jis": "録音室"}.get(name, "录音室")
        content = f"{text} has forty-eight sockets\n" * 20
        yield Attempt(f"a text in {name}", partial(_bytes, ".txt", partial(content.encode, name)))
    for name, (suffix, make) in BOMBS.items():
        yield Attempt(name, partial(_bytes, suffix, make), timeout_s=30)
    while True:
        sort, own = dice.randrange(10), random.Random(dice.random())
        match sort:
            case 0 | 1:
                at = dice.randrange(len(sound_pdf()))
                yield Attempt(f"a PDF of {at} bytes", partial(_bytes, ".pdf", partial(_head, at)))
            case 2:
                suffix = dice.choice([".txt", ".md", ".csv", ".json", ".jsonl", ".html", ".bin", ""])
                yield Attempt(
                    f"noise in {suffix}", partial(_bytes, suffix, partial(own.randbytes, own.randrange(9000)))
                )
            case 3:
                name, cut = dice.choice(ENCODINGS), dice.randrange(1, 50)
                data = ("Bonn \0 has\u2028 forty\x1b-eight\x85 sockets\n" * 9).encode(name, "replace")[cut:]
                yield Attempt(f"{name} cut at {cut}", partial(_bytes, ".txt", partial(bytes, data)))
            case _:
                yield Attempt("a spoiled PDF", partial(_bytes, ".pdf", partial(_spoiled, own)))


KIND = Kind(
    "Whatever a document contains, it is parsed or rejected in bounded time and memory.",
    _attempts,
    1.5,
    memory_mb=2500,
    quick=26,
)
