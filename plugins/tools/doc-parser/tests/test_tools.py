"""What the tools give, in which parts, and what a model cannot reach with them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield import FnCallAgent
from jackfield.errors import ConfigError, DocParserError, ToolArgumentError
from jackfield.events import ToolFinished, ToolProgress
from jackfield.messages import FunctionCall
from jackfield.plugins import default_host
from jackfield.retrieval import Block, Document, Part
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, PlannedCall, ToolContext, ToolExecutor, ToolResult, Workspace, find_tool
from jackfield_counting.estimating import estimate_tokens
from jackfield_doc_parser.chunks import DocParser
from jackfield_doc_parser.describing import fits_a_request
from jackfield_doc_parser.parts import part_of
from jackfield_doc_parser.settings import (
    DocParserConfig,
    QueryTableConfig,
    SimpleDocParserConfig,
    SummaryConfig,
    VocabularyConfig,
)
from jackfield_doc_parser.simple import SimpleDocParser, _items_of
from jackfield_doc_parser.vocabulary import ExtractDocVocabulary
from jackfield_documents import DocumentReader
from jackfield_testkit.server import FakeOpenAI

TOOLS = (SimpleDocParser, DocParser, ExtractDocVocabulary)
TWO_PAGES = "First page.\n\nStill the first.\fSecond page."


def ask(tool: BaseTool, known: list[str], workspace: Path | None = None, **arguments: Any) -> ToolResult:
    context = ToolContext(files=tuple(known), workspace=Workspace(workspace or "nowhere"))
    result = asyncio.run(tool.call(arguments, context=context))  # type: ignore[arg-type]
    assert isinstance(result, ToolResult)
    return result


def written(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return [str(folder / f"{name}.txt") for name in texts]


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


# --- the forms of results ---------------------------------------------------------------------------------------------


def test_a_document_is_given_as_text_with_its_pages(tmp_path: Path) -> None:
    result = ask(SimpleDocParser(), written(tmp_path, a=TWO_PAGES), url="a.txt")
    assert result.content == "[page: 1]\nFirst page.\n\nStill the first.\n\n[page: 2]\nSecond page."
    problems: dict[str, list[str]] = {"errors": [], "skipped": [], "warnings": []}
    assert result.metadata == {"sources": ["a.txt"], **problems, "part": 1, "parts": 1}


def test_a_document_is_given_as_pages_with_texts_and_tables(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Prices\n\nIn euro.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    (page,) = ask(SimpleDocParser(structured_doc=True), [str(tmp_path / "a.md")], url="a.md").content
    assert (page["page_num"], page["title"]) == (1, "Prices")
    assert [(key, text) for item in page["content"] for key, text in item.items() if key != "token"] == [
        ("text", "Prices"),
        ("text", "In euro."),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ]
    assert all(item["token"] > 0 for item in page["content"])
    pages = ask(SimpleDocParser(structured_doc=True), written(tmp_path, b=TWO_PAGES), url="b.txt").content
    assert [entry["page_num"] for entry in pages] == [1, 2]


def test_a_document_that_fits_is_one_chunk_and_another_is_cut_at_the_page_size(tmp_path: Path) -> None:
    files = written(tmp_path, a=" ".join(f"word{n}" for n in range(400)))
    record = ask(DocParser(), files, url="a.txt").content
    (chunk,) = record["raw"]
    assert chunk["metadata"] == {"source": "a.txt", "title": record["title"], "chunk_id": 0}
    assert chunk["token"] == estimate_tokens(chunk["content"])
    cut = ask(DocParser(max_ref_token=300, chunk_size=50), files, url="a.txt").content
    assert len(cut["raw"]) > 3
    assert all(chunk["token"] <= 50 for chunk in cut["raw"])
    assert [chunk["metadata"]["chunk_id"] for chunk in cut["raw"]] == list(range(len(cut["raw"])))


def test_several_documents_are_given_one_after_the_other_by_name(tmp_path: Path) -> None:
    written(tmp_path, a="Alpha.", b="Beta.")
    assert ask(SimpleDocParser(), [str(tmp_path)], url=str(tmp_path)).content == (
        "[document: a.txt]\nAlpha.\n\n[document: b.txt]\nBeta."
    )
    records = ask(DocParser(), [str(tmp_path)], url="*.txt").content
    assert [(record["url"], record["raw"][0]["content"]) for record in records] == [
        ("a.txt", "Alpha."),
        ("b.txt", "Beta."),
    ]
    pages = ask(SimpleDocParser(structured_doc=True), [str(tmp_path)], url="*.txt").content
    assert [entry["url"] for entry in pages] == ["a.txt", "b.txt"]


def test_the_files_in_archives_are_given_by_name(tmp_path: Path) -> None:
    for name in ("x.zip", "y.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("a.txt", "Alpha.")
            archive.writestr("b.txt", "Beta.")
    files = [f"{name}{part}" for name in ("x.zip", "y.zip") for part in ("", " › a.txt", " › b.txt")]
    text = ask(SimpleDocParser(), [str(tmp_path)], url="*.zip").content
    assert re.findall(r"^\[document: (.+)\]$", text, re.MULTILINE) == files
    records = ask(DocParser(), [str(tmp_path)], url="*.zip").content
    assert [chunk["metadata"]["source"] for record in records for chunk in record["raw"]] == files
    documents = ask(SimpleDocParser(structured_doc=True), [str(tmp_path)], url="*.zip").content
    assert [(entry["url"], page.get("file", "")) for entry in documents for page in entry["pages"]] == [
        (name, part) for name in ("x.zip", "y.zip") for part in ("", "a.txt", "b.txt")
    ]


def test_results_are_json(tmp_path: Path) -> None:
    files = written(tmp_path, a=TWO_PAGES, b="\ud83d".encode("utf-8", "replace").decode() + "x")
    for tool in (DocParser(), SimpleDocParser(structured_doc=True)):
        content = ask(tool, files, url="*").content
        assert json.loads(json.dumps(content)) == content


# --- parts ------------------------------------------------------------------------------------------------------------


@example([5, 5, 1], 10)
@given(st.lists(st.integers(1, 30), max_size=30), st.integers(1, 60))
def test_parts_have_all_items_once_in_order_and_fit(sizes: list[int], most: int) -> None:
    items = list(enumerate(sizes))
    first = part_of(items, 1, max_tokens=most, tokens_of=lambda item: item[1])
    parts = [
        part_of(items, number, max_tokens=most, tokens_of=lambda item: item[1]) for number in range(1, first.count + 1)
    ]
    assert [item for part in parts for item in part.items] == items
    assert all(sum(size for _, size in part.items) <= most or len(part.items) == 1 for part in parts)
    assert all(part.items for part in parts) or not items
    for part, following in itertools.pairwise(parts):
        assert sum(size for _, size in (*part.items, following.items[0])) > most, "it has as many as fit"
    for number in (0, -1, first.count + 1):
        with pytest.raises(ToolArgumentError, match=f"no part {number}"):
            part_of(items, number, max_tokens=most, tokens_of=lambda item: item[1])


LETTERS = st.text(alphabet="abc .\n数据。|-#", min_size=1, max_size=80)


@given(blocks=st.lists(LETTERS.filter(str.strip), min_size=1, max_size=6), most=st.integers(1, 40))
def test_all_parts_together_are_the_document(blocks: list[str], most: int) -> None:
    document = Document("a.txt", tuple(Block(text) for text in blocks), "0" * 64)
    whole = squeezed("".join(blocks))
    for tool in (
        SimpleDocParser(max_ref_token=most),
        SimpleDocParser(max_ref_token=most, structured_doc=True),
        DocParser(max_ref_token=most, chunk_size=7, chunk_overlap=0),
    ):
        assert squeezed("".join(texts_of_all_parts(tool, document))) == whole


def texts_of_all_parts(tool: Any, document: Document) -> list[str]:
    """The texts of a document that a tool gives, part by part."""
    tool._made = Given(document)
    context = ToolContext(files=("a.txt",))
    texts: list[str] = []
    number = parts = 1
    while number <= parts:
        result = asyncio.run(tool.call({"url": "a.txt", "part": number}, context=context))
        parts = result.metadata["parts"]
        own = list(own_texts(result.content))
        assert sum(map(estimate_tokens, own)) <= tool.config.max_ref_token or len(squeezed("".join(own))) == 1
        texts += own
        number += 1
    return texts


def own_texts(content: Any) -> list[str]:
    """What stands in a result of one document, the note left out."""
    if isinstance(content, str):
        return [content.partition("\n\nThis is part ")[0]]
    if isinstance(content, Mapping):
        return [chunk["content"] for chunk in content["raw"]]
    items = [item for page in content if "content" in page for item in page["content"]]
    return [item.get("text") or item["table"] for item in items]


class Given:
    """Reads nothing: there is one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    async def of_call(self, _names: object, _context: object) -> Any:
        from jackfield_doc_parser.reading import Readings

        return Readings((self._document,))


def test_a_long_document_says_how_to_get_the_rest(tmp_path: Path) -> None:
    files = written(tmp_path, a="A sentence of some words. " * 100)
    tool = SimpleDocParser(max_ref_token=100)
    first = ask(tool, files, url="a.txt")
    count = first.metadata["parts"]
    assert first.content.endswith(f"\n\nThis is part 1 of {count}: to read the next part, call again with part=2.")
    assert ask(tool, files, url="a.txt", part=count).content.endswith(f"\n\nThis is part {count} of {count}.")
    with pytest.raises(ToolArgumentError, match=f"no part {count + 1}: parts are numbered from 1 to {count}"):
        ask(tool, files, url="a.txt", part=count + 1)
    cut = ask(DocParser(max_ref_token=100, chunk_size=20), files, url="a.txt").content
    assert cut["note"].startswith("This is part 1 of ")
    pages = ask(SimpleDocParser(max_ref_token=100, structured_doc=True), files, url="a.txt").content
    assert pages[-1]["note"].startswith("This is part 1 of ")


# --- documents that cannot be read, progress, many at once ------------------------------------------------------------


def test_one_bad_document_is_a_line_and_the_others_are_used(tmp_path: Path) -> None:
    written(tmp_path, good="All is well.", white=" \n ")
    (tmp_path / "broken.pdf").write_bytes(b"no PDF")
    (tmp_path / "film.raw").write_bytes(b"?")
    files = [str(tmp_path), "gone.txt"]
    text = ask(SimpleDocParser(), files, url=str(tmp_path)).content
    assert "All is well." in text
    assert re.search(r"^could not be read: broken\.pdf is not a PDF", text, re.MULTILINE)
    assert re.search(r"^could not be read: white\.txt is empty", text, re.MULTILINE)
    assert re.search(r"^skipped .*film\.raw: no installed package can read \.raw files$", text, re.MULTILINE)
    entries = ask(DocParser(), files, url="*.*").content
    assert [entry["url"] for entry in entries if "url" in entry] == ["good.txt"]
    assert sorted(entry["error"].split(" ")[4] for entry in entries if "error" in entry) == [
        "broken.pdf",
        "gone.txt",
        "white.txt",
    ]
    words = ask(ExtractDocVocabulary(), files, files=[])
    assert "could not be read: gone.txt does not exist" in words.content
    assert len(words.metadata["errors"]) == 3


@pytest.mark.parametrize("tool", TOOLS)
def test_if_nothing_can_be_read_it_is_an_error_that_says_why(tool: type[BaseTool]) -> None:
    arguments = {"files": ["gone.txt"]} if tool is ExtractDocVocabulary else {"url": "gone.txt"}
    with pytest.raises(DocParserError, match=r"^none of the documents could be read: gone\.txt does not exist"):
        ask(tool(), ["gone.txt"], **arguments)


def test_each_document_that_is_read_is_reported_as_progress(tmp_path: Path) -> None:
    written(tmp_path, a="x", b="y", c="z")
    tool = find_tool("simple_doc_parser", default_host())
    context = ToolContext(files=(str(tmp_path),))
    planned = [PlannedCall(0, "1", FunctionCall(tool.name, json.dumps({"url": str(tmp_path)})))]

    async def events() -> list[Any]:
        executor = ToolExecutor({tool.name: tool})
        return [event async for event in executor.run(await executor.plan(planned), context)]

    seen = asyncio.run(events())
    reports = [event.text for event in seen if isinstance(event, ToolProgress)]
    assert [text.split(":")[0] for text in reports] == ["1 of 3", "2 of 3", "3 of 3"]
    assert {text.split(": ")[1] for text in reports} == {"a.txt", "b.txt", "c.txt"}
    assert isinstance(seen[-1], ToolFinished)


def test_documents_are_read_side_by_side_and_not_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = written(tmp_path, **{f"f{number}": "x" for number in range(10)})
    running = most = 0

    async def read(_self: DocumentReader, path: str) -> Document:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while most < 4:  # until as many are here as may be
            await asyncio.sleep(0.001)
        running -= 1
        return Document(path, (Block("x"),), "0" * 64)

    monkeypatch.setattr(DocumentReader, "read", read)
    result = ask(SimpleDocParser(cache_max_bytes=0), files, url="*.txt")
    assert most == 4
    assert result.metadata["sources"] == [f"f{number}.txt" for number in range(10)]


# --- what a model can reach -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../secret.txt", "%2e%2e/secret.txt", "file:///etc/passwd", "/etc/*", "../*", "secret*", ".", ""],
)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_model_cannot_reach_other_files(tool: type[BaseTool], tmp_path: Path, name: str) -> None:
    files = written(tmp_path, otter="An otter.")
    written(tmp_path, secret="secret")
    (tmp_path / "inside").mkdir()
    arguments = {"files": [name]} if tool is ExtractDocVocabulary else {"url": name}
    with pytest.raises(ToolArgumentError, match=r"no document named .* available: otter\.txt"):
        ask(tool(), files, tmp_path / "inside", **arguments)


def test_a_pattern_of_a_model_opens_no_folder(tmp_path: Path) -> None:
    files = written(tmp_path, a1="one", a2="two")
    written(tmp_path, a3="three")
    assert ask(SimpleDocParser(), files, url="a?.txt").metadata["sources"] == ["a1.txt", "a2.txt"]


def test_a_model_may_read_what_tools_have_put_into_the_workspace(tmp_path: Path) -> None:
    written(tmp_path, report="All is well.")
    assert ask(SimpleDocParser(), [], tmp_path, url="report.txt").content == "All is well."


def test_no_url_of_a_private_network_is_fetched_whoever_names_it(tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        url = f"{server.url}/..%2F..%2Fvictim.txt"
        for tool in TOOLS:
            arguments = {"files": [url]} if tool is ExtractDocVocabulary else {"url": url}
            with pytest.raises(ToolArgumentError, match="no document named"):
                ask(tool(), [], tmp_path, **arguments)
            with pytest.raises(DocParserError, match="the server is in a private network"):
                ask(tool(), [url], tmp_path, **arguments)
        assert server.requests == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="names of any bytes")
def test_a_name_of_any_bytes_is_read_and_shown_without_them(tmp_path: Path) -> None:
    for name in (b"line\nbreak.txt", b"half \xed\xa0\xbd.txt", b"\x1b[31mred.txt", "é".encode() * 120 + b".txt"):
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("All is well.")  # noqa: PTH118
    result = ask(SimpleDocParser(), [str(tmp_path)], url=str(tmp_path))
    assert result.content.count("All is well.") == 4
    assert all(name.isprintable() for name in result.metadata["sources"])
    assert "line\\nbreak.txt" in result.content
    result.content.encode()


def test_what_is_not_text_is_not_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "ls").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "letter.txt").write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    for name in ("ls", "letter.txt"):
        with pytest.raises(DocParserError, match=f"none of the documents could be read: {name} "):
            ask(SimpleDocParser(), [str(tmp_path / name)], url=name)


def test_an_index_is_not_a_document(tmp_path: Path) -> None:
    files = [*written(tmp_path, a="Alpha."), "index:notes"]
    with pytest.raises(ToolArgumentError, match="'index:notes' is an index, not a document: search it"):
        ask(SimpleDocParser(), files, url="index:notes")
    assert ask(ExtractDocVocabulary(), files, files=[]).content == "Alpha"


def test_without_documents_there_are_no_words() -> None:
    assert ask(ExtractDocVocabulary(), [], files=[]).content == ""


def test_a_program_reads_what_it_trusts(tmp_path: Path) -> None:
    written(tmp_path, a="Alpha.", b="Beta.")
    readings = asyncio.run(SimpleDocParser().read([str(tmp_path)]))
    assert [document.blocks[0].text for document in readings.documents] == ["Alpha.", "Beta."]


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'max_ref_token'"):
        SimpleDocParser(max_ref_tokens=5)
    with pytest.raises(ConfigError, match="parser_page_size"):
        DocParser(chunk_size=0)


def test_a_schema_needs_no_import_of_its_tool() -> None:
    for name in ("simple_doc_parser", "doc_parser", "extract_doc_vocabulary"):
        found = find_tool(name, default_host())
        assert found.schema("zh")["description"] != found.schema("en")["description"]
        assert found.file_access
        assert not found.is_loaded


def test_a_model_reads_a_document_part_by_part_in_an_agent(tmp_path: Path) -> None:
    files = written(tmp_path, guide="A sentence of some words. " * 40 + "The last word is otter.")
    model = ScriptedModel(
        [
            calls(("simple_doc_parser", {"url": "guide.txt"})),
            calls(("simple_doc_parser", {"url": "guide.txt", "part": 3})),
            answer("It ends with an otter."),
        ]
    )
    agent = FnCallAgent([{"name": "simple_doc_parser", "max_ref_token": 100}], model, files=files)
    result = agent.ask("How does the guide end?")
    assert "part 1 of 3" in model.requests[1].messages[-1].get_text_content()
    assert "The last word is otter." in model.requests[2].messages[-1].get_text_content()
    assert [str(source) for source in result.sources] == ["guide.txt"]


def test_a_long_table_is_cut_between_its_lines() -> None:
    rows = [f"| {number} | One. Two. Three. |" for number in range(400)]
    document = Document("t.md", (Block("\n".join(rows), kind="table"),), content_hash="")
    texts = [item.text.strip("\n") for item in _items_of(document, 200)]
    assert len(texts) > 2
    assert [line for text in texts for line in text.split("\n")] == rows


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = DocParserConfig()
    assert (config.max_ref_token, config.path, config.cache_max_bytes) == (20_000, None, 256 * 2**20)
    assert (config.describe_images, config.max_images, dict(config.fetch_cfg)) == (False, 10, {})
    assert (config.parser_page_size, config.chunk_overlap) == (500, 150)
    assert DocParserConfig.parse({"chunk_size": 9}).parser_page_size == 9
    assert (SimpleDocParserConfig().structured_doc, VocabularyConfig().max_words) == (False, 500)
    summary = SummaryConfig()
    assert (summary.llm, summary.part_tokens, summary.max_parts, summary.at_once) == (None, 6000, 100, 4)
    assert QueryTableConfig().max_rows == 200


@pytest.mark.parametrize(
    ("sizes", "most", "parts"),
    [
        ([], 5, [()]), ([5], 5, [(5,)]), ([3, 2], 5, [(3, 2)]), ([3, 3], 5, [(3,), (3,)]),
        ([9, 1, 9], 5, [(9,), (1,), (9,)]),
        ([1, 4, 1], 5, [(1, 4), (1,)]),
    ],
)  # fmt: skip
def test_a_part_has_as_many_items_as_fit_and_at_least_one(sizes: list[int], most: int, parts: list[Any]) -> None:
    def part(number: int) -> Any:
        return part_of(sizes, number, max_tokens=most, tokens_of=lambda size: size)

    assert [part(number + 1).items for number in range(len(parts))] == parts
    for number in (0, len(parts) + 1):
        with pytest.raises(ToolArgumentError, match=f"no part {number}: parts are numbered from 1 to {len(parts)}"):
            part(number)
    notes = [part(number + 1).note for number in range(len(parts))]
    assert notes[-1] == ("" if len(parts) == 1 else f"This is part {len(parts)} of {len(parts)}.")
    assert all(note.endswith(f"call again with part={number}.") for number, note in enumerate(notes[:-1], start=2))


@pytest.mark.parametrize(
    ("name", "size", "fits"),
    [
        ("a.png", 5 * 2**20, True),
        ("a.png", 5 * 2**20 + 1, False),
        ("a.jpg", 1, True),
        ("a.gif", 1, True),
        ("a.bmp", 1, False),
    ],
)
def test_a_picture_fits_a_request_if_services_accept_it(name: str, size: int, fits: bool) -> None:
    assert fits_a_request(Part(name, b"x" * size)) is fits


@pytest.mark.parametrize("tool", [SimpleDocParser, DocParser], ids=lambda tool: tool.name)
@pytest.mark.parametrize("wrong", [{"part": 0}, {"part": 1.5}, {"part": "1"}, {"url": None}, {"more": 1}], ids=str)
def test_arguments_that_do_not_fit_are_refused(tool: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ToolArgumentError, match=f"invalid arguments for '{tool.name}'"):
        tool().parse_arguments({"url": "a.txt", **wrong})
    with pytest.raises(ToolArgumentError, match="url"):
        tool().parse_arguments({})
