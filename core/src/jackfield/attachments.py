"""Prepare files that users attach for a model: send them unchanged, convert them to text, or reject them.

A PDF stays in the message if the model accepts PDFs. A text file is sent unchanged below its name. A parser, provided
by a processor, reads any other file. If there is no parser, the request is rejected. Notebooks, emails and other text
formats that consist mostly of data are read by a parser if one is available. Files are never dropped silently.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

from jackfield.defaults import AGENT_WITH_FILES, FETCHER, FIRST_PARSER, READER_OF_FILES
from jackfield.errors import ContextLengthError, DocParserError, MissingFileError, UnsupportedInputError
from jackfield.events import ModelEvent, PluginEvent, PreparationProgress
from jackfield.media import notes_of, path_of, read_file, stated_name
from jackfield.messages import ASSISTANT, SYSTEM, USER, ContentItem, Message, basename_of
from jackfield.plugins._known import known_distribution, parser_of_extension
from jackfield.processors import CallNext
from jackfield.request import ChatRequest
from jackfield.results import WARNINGS
from jackfield.streams import closing
from jackfield.sync import in_worker

UNREAD_FILES = "jackfield.unread_files"
"""The name of the event that lists files sent only by name."""

_PDF = b"%PDF"
_NO_TEXT = (_PDF, b"{\\rtf", b"%!PS")  # ASCII formats that are not plain text
_MOSTLY_DATA = (".ipynb", ".eml", ".fodt", ".fods", ".fodp")  # text formats full of base64 pictures and markup
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CONTROL = frozenset(map(chr, range(32))) - frozenset("\t\n\r\f\v\b\x1b")
_SHORT_CHARS = 40_000
_MOST_BYTES_PER_TOKEN = 6  # tables and prose have fewer, so a file that exceeds this never fits


class AttachedFile(NamedTuple):
    """A file that needs a parser because it is not plain text and the model does not accept it.

    Attributes:
        name: The file's name without directories.
        address: The file's path or URL, or '' for a `data:` URI.
        content: The file's bytes, or None for a URL.
    """

    name: str
    address: str
    content: bytes | None


Parse: TypeAlias = Callable[[AttachedFile], Awaitable[str]]
"""Returns the text of a file, or raises a `DocParserError` or `UnsupportedInputError` that names the file."""


def read_files_before(call_next: CallNext, parse: Parse, *, keep_unread: bool = False) -> CallNext:
    """Wrap part of a processor chain so that it receives requests whose attached files have already been read.

    Args:
        call_next: The part of the chain to wrap.
        parse: A function that reads files that are neither plain text nor accepted by the model.
        keep_unread: True to leave unreadable files in their messages for `call_next`. False to replace them with notes.
    """

    def ask(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        # Most conversations are plain text.
        if not request.itemized or request.files == "done" or not any(map(_names_files, request.itemized)):
            return call_next(request)
        if request.files == "name":
            return call_next(replace(request, messages=tuple(name_files(request.messages))))
        return _ask(request, call_next, parse, keep_unread=keep_unread)

    return ask


def send_as_text(call_next: CallNext) -> CallNext:
    """Wrap a processor chain to declare that the model accepts no PDFs, so that PDFs are read as text."""

    def ask(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if not request.facts.files:
            return call_next(request)
        return call_next(replace(request, facts=replace(request.facts, files=False)))

    return ask


async def read_files(request: ChatRequest, parse: Parse, *, keep_unread: bool = False) -> tuple[ChatRequest, list[str]]:
    """Read the files attached to user and system messages.

    Args:
        request: The request. `request.files` determines whether unreadable files are rejected.
        parse, keep_unread: As for `read_files_before`.

    Returns:
        The request with text in place of files, and a warning for each file of which only the name is sent.

    Raises:
        MissingFileError: A file does not exist.
        UnsupportedInputError: A file cannot be read. The message says what to install.
        ContextLengthError: A single file in the last question exceeds the model's context.
    """
    # Earlier questions, with their files, have been answered.
    answered = max((place for place, message in enumerate(request.messages) if message.role == ASSISTANT), default=-1)
    warnings: list[str] = []
    messages = list(request.messages)
    for place, message in enumerate(messages):
        if not _names_files(message):
            continue
        items: list[ContentItem] = []
        for item in message.items:
            try:
                items.append(await _read(item, request, parse, message.role, must_fit=place > answered))
            except (UnsupportedInputError, ContextLengthError) as error:
                is_missing = isinstance(error, MissingFileError)
                if place > answered if is_missing else request.files == "read":
                    raise
                items.append(item if keep_unread else _note(item))
                warnings.append(f"only the file's name was sent: {error}")
        messages[place] = message.replace(content=items)
    return replace(request, messages=tuple(messages), files="done"), warnings


def name_files(history: Sequence[Message]) -> list[Message]:
    """Replace attached files with their names."""
    return [
        message.replace(content=[_note(item) for item in message.items]) if _names_files(message) else message
        for message in history
    ]


async def refuse_file(file: AttachedFile) -> str:
    """Reject a file that needs a parser, because no processor provides one.

    Raises:
        UnsupportedInputError: Always raised. The message names the packages to install.
    """
    suffix = PurePosixPath(file.name).suffix[1:].lower()
    if file.content is None:
        needed, cause = FETCHER, "is at a URL"
    else:
        needed = known_distribution("parser", parser_of_extension(suffix) or "") or FIRST_PARSER
        cause = "is not UTF-8 text"
    raise UnsupportedInputError(
        f"{file.name} cannot be read: the file {cause}, and no processor that reads such files is installed and in "
        f"use. To install one, run: pip install {READER_OF_FILES} {needed}"
    )


def decode_text(content: bytes) -> str | None:
    """Decode a file as UTF-8, or as UTF-16 with a byte order mark. Return None if the content is neither."""
    if content.lstrip()[:5].startswith(_NO_TEXT):
        return None
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if any(mark in text for mark in _CONTROL) else text


def text_of_file(name: str, text: str) -> ContentItem:
    """Return a content item with a file's name and text."""
    shown = " ".join(name.replace('"', "'").split())
    return ContentItem(text=f'<file name="{shown}">\n{text.rstrip() or "(empty)"}\n</file>')


async def _ask(
    request: ChatRequest, call_next: CallNext, parse: Parse, *, keep_unread: bool
) -> AsyncIterator[ModelEvent]:
    is_new = request.messages[-1].role == USER  # later turns would repeat the warnings
    if is_new:
        files = [item for message in request.messages for item in message.items if item.file is not None]
        yield PreparationProgress("reading attached files", 0, len(files))
    request, warnings = await read_files(request, parse, keep_unread=keep_unread)
    if warnings and is_new:
        yield PluginEvent(UNREAD_FILES, {WARNINGS: warnings, "note": "; ".join(warnings)})
    async with closing(call_next(request)) as events:
        async for event in events:
            yield event


def _names_files(message: Message) -> bool:
    if isinstance(message.content, str) or message.role not in (USER, SYSTEM):
        return False
    return any(item.file is not None for item in message.content)


async def _read(item: ContentItem, request: ChatRequest, parse: Parse, role: str, *, must_fit: bool) -> ContentItem:
    """Convert a file to text. Other items, and files that the model accepts, are returned unchanged.

    No provider accepts files in system messages.
    """
    if item.file is None:
        return item
    facts = request.facts
    file = await in_worker(_open, item.file)
    if file.content is None:
        is_taken = facts.files and facts.file_urls and urlsplit(file.address).path.lower().endswith(".pdf")
    else:
        is_taken = facts.files and file.content.startswith(_PDF)
    if is_taken and role == USER:
        return item
    text = None if file.content is None else await in_worker(decode_text, file.content)
    if text is None or file.name.lower().endswith(_MOSTLY_DATA):
        try:
            text = await parse(file)
        except (DocParserError, UnsupportedInputError) as error:
            if text is None:
                raise (
                    error if isinstance(error, UnsupportedInputError) else UnsupportedInputError(str(error))
                ) from error
        if not text.strip():
            raise UnsupportedInputError(
                f"{file.name} contains no readable text: if its pages are scanned, send them as images"
            )
    if request.files == "read_short" and len(text) > _SHORT_CHARS:
        raise UnsupportedInputError(f"{file.name} is {len(text):,} characters long, and a tool can open the file")
    if must_fit:
        _check_length(file.name, text, request)
    return text_of_file(file.name, text)


def _note(item: ContentItem) -> ContentItem:
    return item if item.file is None else ContentItem(text=notes_of([item])[0])


def _open(address: str) -> AttachedFile:
    if address[:5].lower() == "data:":
        return decode_uri(address)
    path = path_of(address)
    if path is None:
        return AttachedFile(basename_of(address) or address, address, None)
    return AttachedFile(basename_of(str(path)), str(path), read_file(path))


def decode_uri(uri: str) -> AttachedFile:
    """Decode the file in a `data:` URI. The file's name comes from the URI or, if missing, from the media type.

    Raises:
        UnsupportedInputError: The content is not valid base64.
    """
    import base64  # only needed for data: URIs, which are rare
    import mimetypes

    head, _, data = uri[5:].partition(",")
    media_type, *parameters = head.split(";")
    name = stated_name(uri) or f"file{mimetypes.guess_extension(media_type) or ''}"
    try:
        content = unquote_to_bytes(data)
        if "base64" in parameters:  # base64 may contain line breaks
            content = base64.b64decode(b"".join(content.split()), validate=True)
    except ValueError as error:
        raise UnsupportedInputError(
            f"data: URI of a file is not valid base64 ({error}): use data:{media_type};base64,…"
        ) from error
    return AttachedFile(name, "", content)


def _check_length(name: str, text: str, request: ChatRequest) -> None:
    limit = request.config.max_input_tokens
    if limit is None:
        limit = request.facts.context_tokens
    tokens = len(text.encode("utf-8", "replace")) // _MOST_BYTES_PER_TOKEN
    if limit is not None and 0 < limit < tokens:
        raise ContextLengthError(
            f"{name} is too long: at least {tokens:,} tokens, but the model limit is {limit:,}. To send only the "
            f"passages relevant to the question, use agent kind {AGENT_WITH_FILES!r}"
        )
