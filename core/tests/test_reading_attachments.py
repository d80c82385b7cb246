"""Reading attached files: which are read, which only named, and which refuse the request."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from jackfield.attachments import (
    AttachedFile,
    decode_text,
    decode_uri,
    name_files,
    read_files,
    read_files_before,
    refuse_file,
    send_as_text,
    text_of_file,
)
from jackfield.config import GenerateConfig
from jackfield.errors import ContextLengthError, DocParserError, MissingFileError, UnsupportedInputError
from jackfield.events import ModelEvent, ModelFinished, PluginEvent, PreparationProgress
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest, ModelFacts

PDF = "data:application/pdf;name=a.pdf;base64," + base64.b64encode(b"%PDF-1.7 \xff").decode()
BINARY = "data:application/zip;name=b.zip;base64," + base64.b64encode(b"PK\x03\x04\xff").decode()
TEXT = "data:text/plain;name=c.txt,hello"
DATA = "data:text/plain;name=d.ipynb,1%2C2"
URL = "https://h/e.pdf?x=1"


async def parse(file: AttachedFile) -> str:
    return f"parsed {file.name}"


async def refuse(file: AttachedFile) -> str:
    raise DocParserError(f"no parser for {file.name}")


async def blank(file: AttachedFile) -> str:
    return " \n"


def asks(*files: str, role: str = "user") -> Message:
    return Message(role, [ContentItem(text="Look."), *(ContentItem(file=file) for file in files)])


def request_of(*messages: Message, **fields: Any) -> ChatRequest:
    return ChatRequest("m", messages, **fields)


def read(request: ChatRequest, parser: Any = parse, **options: Any) -> tuple[list[Any], list[str]]:
    done, warnings = asyncio.run(read_files(request, parser, **options))
    assert done.files == "done"
    return [item.text or item.file for message in done.messages for item in message.items][1:], warnings


def shown(name: str, text: str) -> str:
    return f'<file name="{name}">\n{text}\n</file>'


PDFS, URLS = ModelFacts(files=True), ModelFacts(files=True, file_urls=True)


@pytest.mark.parametrize(
    ("file", "facts", "item"),
    [
        (TEXT, ModelFacts(), shown("c.txt", "hello")),
        (DATA, ModelFacts(), shown("d.ipynb", "parsed d.ipynb")),
        (PDF, ModelFacts(), shown("a.pdf", "parsed a.pdf")),
        (PDF, PDFS, PDF),
        (BINARY, PDFS, shown("b.zip", "parsed b.zip")),
        (PDF.replace("a.pdf", "a.txt"), PDFS, PDF.replace("a.pdf", "a.txt")),
        (BINARY.replace("b.zip", "b.pdf"), PDFS, shown("b.pdf", "parsed b.pdf")),
        (URL, PDFS, shown("e.pdf", "parsed e.pdf")),
        (URL, ModelFacts(file_urls=True), shown("e.pdf", "parsed e.pdf")),
        (URL, URLS, URL),
        ("https://h/e.txt", URLS, shown("e.txt", "parsed e.txt")),
    ],
    ids=[
        "text",
        "data",
        "PDF",
        "PDF taken",
        "zip",
        "PDF by its bytes",
        "PDF by its name",
        "URL",
        "URL alone",
        "URL taken",
        "URL of a text",
    ],
)
def test_a_file_becomes_text_unless_the_model_takes_it(file: str, facts: ModelFacts, item: str) -> None:
    assert read(request_of(asks(file), facts=facts)) == ([item], [])


def test_no_model_takes_files_in_a_system_message() -> None:
    system = asks(PDF, role="system")
    assert read(request_of(system, Message("user", "q"), facts=PDFS))[0][0] == shown("a.pdf", "parsed a.pdf")
    answered = (Message("assistant", [ContentItem(file=TEXT)]), Message("function", [ContentItem(file=TEXT)], name="t"))
    assert read(request_of(*answered))[0] == [TEXT]


@pytest.mark.parametrize("files", ["read", "read_if_possible", "read_short"])
@pytest.mark.parametrize("answered", [True, False])
def test_an_unreadable_file_is_refused_or_named_with_a_warning(files: Any, answered: bool) -> None:
    messages = (asks(BINARY), *((Message("assistant", "Hm."), Message("user", "Well?")) if answered else ()))
    request = request_of(*messages, files=files)
    if files == "read":
        with pytest.raises(UnsupportedInputError, match=r"no parser for b\.zip"):
            read(request, refuse)
        return
    items, warnings = read(request, refuse)
    assert items[0] == "[file: b.zip]"
    assert warnings == ["only the file's name was sent: no parser for b.zip"]
    assert read(request, refuse, keep_unread=True)[0][0] == BINARY


@pytest.mark.parametrize("files", ["read", "read_if_possible"])
def test_a_missing_file_is_refused_until_its_question_was_answered(files: Any, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.txt")
    with pytest.raises(MissingFileError):
        read(request_of(asks(gone), files=files))
    items, warnings = read(request_of(asks(gone), Message("assistant", "Hm."), Message("user", "Well?"), files=files))
    assert items[0] == "[file: gone.txt]"
    assert warnings[0].startswith("only the file's name was sent: cannot read the file 'gone.txt': No such file")


def test_a_parser_that_fails_for_a_text_leaves_the_text() -> None:
    assert read(request_of(asks(DATA)), refuse) == ([shown("d.ipynb", "1,2")], [])
    with pytest.raises(UnsupportedInputError, match=r"b\.zip contains no readable text: if its pages are scanned"):
        read(request_of(asks(BINARY)), blank)


def test_a_long_text_is_named_where_a_tool_can_open_it() -> None:
    from jackfield.attachments import _SHORT_CHARS

    def of(size: int) -> str:
        return f"data:text/plain;name=c.txt,{'x' * size}"

    assert read(request_of(asks(of(_SHORT_CHARS)), files="read_short"))[1] == []
    assert read(request_of(asks(of(_SHORT_CHARS + 1)), files="read_short"))[1] == [
        f"only the file's name was sent: c.txt is {_SHORT_CHARS + 1:,} characters long, and a tool can open the file"
    ]
    assert read(request_of(asks(of(_SHORT_CHARS + 1)), files="read_if_possible"))[1] == []


@pytest.mark.parametrize(
    ("config", "facts", "limit"),
    [
        ({"max_input_tokens": 10}, ModelFacts(context_tokens=99_999), 10),
        ({}, ModelFacts(context_tokens=10), 10),
        ({"max_input_tokens": 99_999}, ModelFacts(context_tokens=10), None),
        ({"max_input_tokens": 0}, ModelFacts(context_tokens=10), None),
        ({"max_input_tokens": -1}, ModelFacts(context_tokens=10), None),
        ({}, ModelFacts(), None),
    ],
)
def test_a_file_that_alone_is_longer_than_the_context_is_refused(config: Any, facts: ModelFacts, limit: Any) -> None:
    from jackfield.attachments import _MOST_BYTES_PER_TOKEN

    def request(tokens: int, *more: Message) -> ChatRequest:
        file = f"data:text/plain;name=c.txt,{'x' * tokens * _MOST_BYTES_PER_TOKEN}"
        return request_of(asks(file), *more, config=GenerateConfig(**config), facts=facts)

    assert read(request(10))[1] == []
    chinese = asks(f"data:text/plain;name=c.txt,{quote('字' * 11 * _MOST_BYTES_PER_TOKEN)}")  # three bytes each
    if limit is not None:
        with pytest.raises(ContextLengthError, match="at least 33 tokens"):
            read(request_of(chinese, config=GenerateConfig(**config), facts=facts))
    if limit is None:
        assert read(request(11))[1] == []
        return
    with pytest.raises(ContextLengthError, match=r"c\.txt is too long: at least 11 tokens, but the model limit is"):
        read(request(11))
    assert read(request(11, Message("assistant", "Hm."), Message("user", "Well?")))[1] == []


# --- in a chain ---


def events_of(request: ChatRequest, parser: Any = parse, **options: Any) -> tuple[list[ModelEvent], list[ChatRequest]]:
    seen: list[ChatRequest] = []

    async def backend(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        seen.append(request)
        yield ModelFinished("stop")

    async def gather() -> list[ModelEvent]:
        return [event async for event in read_files_before(backend, parser, **options)(request)]

    return asyncio.run(gather()), seen


def test_the_reading_of_a_new_question_is_reported_and_its_warnings_once() -> None:
    request = request_of(asks(TEXT, BINARY), files="read_if_possible")
    events, [sent] = events_of(request, refuse)
    warning = "only the file's name was sent: no parser for b.zip"
    assert events[0] == PreparationProgress("reading attached files", 0, 2)
    assert isinstance(events[1], PluginEvent)
    assert events[1].data == {"warnings": [warning], "note": warning}
    assert sent.files == "done"
    assert [event for event in events_of(request_of(asks(TEXT)))[0] if isinstance(event, PluginEvent)] == []
    later = replace(request, messages=(*request.messages, Message("function", "r", name="t")))
    assert [type(event) for event in events_of(later, refuse)[0]] == [ModelFinished]


@pytest.mark.parametrize("files", ["done", "name", "read"])
def test_files_that_are_read_or_only_named_are_not_opened(files: Any, tmp_path: Path) -> None:
    picture = Message("user", [ContentItem(image="http://h/a.png")])
    request = request_of(asks(str(tmp_path / "gone.txt")), picture, files=files)
    if files == "read":
        with pytest.raises(MissingFileError):
            events_of(request)
        return
    [finished], [sent] = events_of(request)
    assert isinstance(finished, ModelFinished)
    assert (sent is request) == (files == "done")
    if files == "name":
        assert sent.messages[0].items[1].text == "[file: gone.txt]"
    plain = request_of(Message("user", "q"))
    assert events_of(plain)[1][0] is plain


def test_a_chain_that_needs_text_says_that_its_model_takes_no_files() -> None:
    seen: list[ChatRequest] = []
    ask = send_as_text(seen.append)  # type: ignore[arg-type]
    plain = request_of(Message("user", "q"))
    ask(plain)
    ask(request_of(Message("user", "q"), facts=replace(PDFS, images=True)))
    assert seen[0] is plain
    assert seen[1].facts == ModelFacts(images=True)


def test_names_take_the_place_of_the_users_files_alone() -> None:
    answer = Message("assistant", [ContentItem(file=TEXT)])
    named = name_files([asks(TEXT), answer, Message("user", "q")])
    assert [item.text for item in named[0].items] == ["Look.", "[file: c.txt]"]
    assert named[1] is answer


# --- what is read of one file ---


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("é".encode(), "é"), (b"\xef\xbb\xbfa", "a"), ("é".encode("utf-16"), "é"), (b"\xff", None), (b"a\0b", None),
        (b"", ""), (b"%PDF-1.7", None), (b" \n%PDF-", None),
    ],
)  # fmt: skip
def test_only_text_is_decoded(content: bytes, text: str | None) -> None:
    decoded = decode_text(content)
    assert (decoded and decoded.removeprefix("\ufeff")) == text


@pytest.mark.parametrize(
    ("name", "is_parsed"),
    [("a.ipynb", True), ("A.IPYNB", True), ("a.Eml", True), ("a.txt", False), ("ipynb", False), ("a.ipynb.txt", False)],
)
def test_a_text_that_is_mostly_data_is_parsed_however_its_name_is_written(name: str, is_parsed: bool) -> None:
    async def parse(file: AttachedFile) -> str:
        return f"parsed {file.name}"

    asked = Message("user", [ContentItem(file=f"data:text/plain;name={name},text")])
    request, warnings = asyncio.run(read_files(ChatRequest("m", (asked,)), parse))
    assert (f"parsed {name}" in request.messages[0].get_text_content(), warnings) == (is_parsed, [])


def test_a_text_is_below_its_name() -> None:
    assert text_of_file('a "b"\n c.txt', "x \n").text == "<file name=\"a 'b' c.txt\">\nx\n</file>"
    assert text_of_file("a", " ").text == '<file name="a">\n(empty)\n</file>'


def test_a_data_uri_is_a_file_with_a_name() -> None:
    assert decode_uri(TEXT) == AttachedFile("c.txt", "", b"hello")
    assert decode_uri("data:text/plain;base64,aGVs\n bG8=") == AttachedFile("file.txt", "", b"hello")
    assert decode_uri("data:,a%20b") == AttachedFile("file", "", b"a b")
    assert decode_uri("data:text/plain;base64;name=a.md,aGVsbG8=") == AttachedFile("a.md", "", b"hello")
    with pytest.raises(UnsupportedInputError, match=r"not valid base64 \(.*\): use data:text/plain;base64,…"):
        decode_uri("data:text/plain;base64,###")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            AttachedFile("a.pdf", "", b"x"),
            "a.pdf cannot be read: the file is not UTF-8 text, and no processor that reads such files is "
            "installed and in use. To install one, run: pip install jackfield-multimodal jackfield-pdf",
        ),
        (
            AttachedFile("A.DOCX", "", b"x"),
            "A.DOCX cannot be read: the file is not UTF-8 text, and no processor that reads such files is "
            "installed and in use. To install one, run: pip install jackfield-multimodal jackfield-office",
        ),
        (AttachedFile("a.odd", "", b"x"), "a.odd cannot be read: the file is not UTF-8 text"),
        (AttachedFile("a.pdf", "https://h/a.pdf", None), "a.pdf cannot be read: the file is at a URL"),
    ],
    ids=["PDF", "upper case", "unknown", "URL"],
)
def test_a_file_without_a_reader_is_refused_with_the_packages_to_install(file: AttachedFile, said: str) -> None:
    with pytest.raises(UnsupportedInputError) as caught:
        asyncio.run(refuse_file(file))
    assert str(caught.value).startswith(said)
