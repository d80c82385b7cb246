"""Files inside of files, from the archive to the citation: each place names the inner file and the page in it."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from jackfield import ToolContext, ToolResult, create_agent
from jackfield.results import Source, sources_in
from jackfield.testing import ScriptedModel, answer
from jackfield_documents import DocumentReader
from jackfield_knowledge import KnowledgeIndex
from jackfield_retrieval.tool import RetrievalTool

LINE = "The crane of the harbour lifts {} tons"


def pdf(*pages: str) -> bytes:
    data = io.BytesIO()
    canvas = Canvas(data)
    for page in pages:
        canvas.drawString(72, 700, page)
        canvas.showPage()
    canvas.save()
    return data.getvalue()


def zipped(**files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return data.getvalue()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "port.zip"
    inner = zipped(deep_pdf=pdf("A map", "A list", LINE.format(30)))
    file.write_bytes(zipped(old_pdf=pdf("A map", LINE.format(10)), notes_md=LINE.format(20).encode(), in_zip=inner))
    return file


@pytest.mark.parametrize("is_index", [False, True], ids=["files", "index"])
def test_sources_and_citations_name_the_file_in_the_archive(archive: Path, is_index: bool) -> None:
    name = str(archive)
    if is_index:
        asyncio.run(KnowledgeIndex("port").build([name], reader=DocumentReader()))
        name = "index:port"
    quoted = " ".join(f"“{LINE.format(tons)}” [{mark}]." for tons in (10, 20, 30) for mark in range(1, 9))
    model = ScriptedModel([answer(quoted)])
    agent = create_agent("assistant", llm=model, files=[name])
    result = agent.ask("How many tons does the crane of the harbour lift?")
    parts = ("", "old.pdf", "notes.md", "in.zip", "in.zip › deep.pdf")
    assert set(result.sources) == {Source("port.zip", part=part) for part in parts}
    by_part = {citation.part: citation for citation in result.citations}
    assert {part: citation.place for part, citation in by_part.items()} == {
        "old.pdf": "port.zip › old.pdf, page 1",
        "notes.md": "port.zip › notes.md",
        "in.zip › deep.pdf": "port.zip › in.zip › deep.pdf, page 1",
    }
    assert str(Source("port.zip", 3, "old.pdf")) == "port.zip › old.pdf, page 3"
    listed = json.loads(json.dumps(result.to_dict()))
    assert {"location": "port.zip", "part": "old.pdf"} in listed["sources"]
    assert {citation["part"] for citation in listed["citations"]} == set(by_part)
    assert "port.zip › old.pdf" in str(model.requests[0].messages)


def test_sources_of_a_search_name_the_page_in_the_file(archive: Path) -> None:
    archive.write_bytes(zipped(old_pdf=pdf(*(f"{LINE.format(n)} " * 150 for n in range(4))), notes_md=b"none " * 3000))
    tool = RetrievalTool({"max_ref_token": 1000})
    result = asyncio.run(tool.call({"query": LINE.format(3)}, context=ToolContext(files=(str(archive),))))
    assert isinstance(result, ToolResult)
    assert "port.zip › old.pdf" in str(result.content)
    sources = sources_in(result.metadata)
    assert {source.part for source in sources} == {"old.pdf"}
    assert {source.page for source in sources} <= {1, 2, 3, 4}
