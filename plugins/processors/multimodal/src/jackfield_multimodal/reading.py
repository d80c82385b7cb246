"""Read attached files with the installed parsers."""

from __future__ import annotations

from functools import cached_property

from jackfield.attachments import AttachedFile
from jackfield.plugins import Plugins
from jackfield.retrieval import Block, unread_parts
from jackfield_documents import DocumentReader


class FileReader:
    """Reads files as text. Documents are cached by content, because a conversation resends its files with each turn.

    Args:
        host: The host used to look up parsers. If None, the default host is used.
    """

    def __init__(self, host: Plugins | None) -> None:
        self._host = host

    @cached_property
    def _reader(self) -> DocumentReader:
        return DocumentReader(self._host)

    async def read(self, file: AttachedFile) -> str:
        """Return a file's text, with headings and tables as Markdown.

        Raises:
            DocParserError: No installed parser supports the file, or it is damaged. The message names the file.
        """
        if file.address:
            document = await self._reader.read(file.address)
        else:
            document = await self._reader.read_bytes(file.content or b"", name=file.name)
        notes = [f"({line})" for line in unread_parts(document)]
        return "\n\n".join([*(_markdown_of(block) for block in document.blocks), *notes])


def _markdown_of(block: Block) -> str:
    return f"{'#' * block.level} {block.text}" if block.kind == "heading" else block.text
