"""Find the documents that a call refers to, and read them concurrently. Each document is parsed once."""

from __future__ import annotations

import asyncio
import fnmatch
import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jackfield.agents import BasicAgent
from jackfield.errors import DocParserError, ToolArgumentError
from jackfield.messages import basename_of
from jackfield.plugins import Plugins
from jackfield.results import WARNINGS
from jackfield.retrieval import Document, shown_path, unread_parts
from jackfield.sync import in_worker
from jackfield.tools import ToolContext
from jackfield_doc_parser.asking import agent_for
from jackfield_doc_parser.cache import DocumentCache, default_folder
from jackfield_doc_parser.describing import DESCRIBER, describe_pictures, fits_a_request
from jackfield_doc_parser.settings import ReadingConfig
from jackfield_documents import DocumentReader, Expanded, Fingerprint, expand, file_meant, why_nothing_reads

_AT_ONCE = 4
_INDEX = "index:"
_NO_MODEL = "describe_images needs an agent's model: add the tool to an agent, or set describe_images to False"


@dataclass(frozen=True, slots=True)
class Readings:
    """The outcome of reading several documents.

    Attributes:
        documents: The documents that could be read, in the order they were named.
        errors: An error for each file that could not be read.
        skipped: A line for each reason why files in folders were skipped.
    """

    documents: tuple[Document, ...]
    errors: tuple[DocParserError, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Lines for the model about documents that are missing, incomplete or skipped."""
        return [*(f"could not be read: {error}" for error in self.errors), *self.unread, *self.skipped]

    @property
    def unread(self) -> list[str]:
        """A line for each part of a document that could not be read."""
        return [line for document in self.documents for line in unread_parts(document)]

    def metadata(self) -> dict[str, object]:
        """Return the sources and problems as metadata of a tool result."""
        return {
            "sources": [shown_name(document.source) for document in self.documents],
            "errors": [str(error) for error in self.errors],
            "skipped": list(self.skipped),
            WARNINGS: [*(str(error) for error in self.errors), *self.unread, *self.skipped],
        }


def shown_name(source: str) -> str:
    """Return a document's name as shown to the model."""
    return shown_path(basename_of(source))  # in this order, because escaped names contain backslashes


class Documents:
    """Reads documents for the tools, with an on-disk cache of parsed documents.

    Args:
        config: The tool's configuration.
        host: The plugin host that provides the parsers.
    """

    def __init__(self, config: ReadingConfig, host: Plugins) -> None:
        self._host = host
        self._config = config
        self._reader = DocumentReader(host, fetch_cfg=config.fetch_cfg)
        self._cache: DocumentCache | None = None
        if config.cache_max_bytes:
            folder = Path(config.path).expanduser().absolute() if config.path else default_folder()
            self._cache = DocumentCache(folder, max_bytes=config.cache_max_bytes)

    async def of_call(self, names: Sequence[str], context: ToolContext) -> Readings:
        """Read the documents that a model names, or all documents of the conversation if it names none.

        Raises:
            ToolArgumentError: A name matches no document that the model may read.
            ConfigError: The names expand to too many files.
            DocParserError: No document could be read.
        """
        if not names:
            own = [name for name in context.files if not name.startswith(_INDEX)]
            return await self._read_expanded(await self._expanded(own), context)
        found = Expanded()
        for name in names:
            # Only a name of the conversation may mean several files; a model's name is taken literally.
            if name in context.files:
                more = await self._expanded([_no_index(name)])
            else:
                more = Expanded(tuple(_meant(name, await self._known(context), context)))
            found = Expanded(found.files + more.files, found.skipped + more.skipped, found.missing + more.missing)
        return await self._read_expanded(found, context)

    async def read(self, names: Iterable[str]) -> Readings:
        """Read documents from files, folders, glob patterns and URLs without restriction. Pictures are not described.

        Raises:
            ConfigError: The names expand to too many files.
            DocParserError: There are documents, but none could be read.
        """
        return await self._read_expanded(await self._expanded(names), None)

    async def _expanded(self, names: Iterable[str]) -> Expanded:
        return await in_worker(expand, list(names), why_not=why_nothing_reads(self._host))

    async def _known(self, context: ToolContext) -> list[str]:
        """Return the files that a model may name individually."""
        found = await self._expanded(context.files)
        return [name for name in (*found.files, *found.missing) if not name.startswith(_INDEX)]

    async def _read_expanded(self, found: Expanded, context: ToolContext | None) -> Readings:
        results = await self._read_all(list(dict.fromkeys((*found.files, *found.missing))), context)
        readings = Readings(
            tuple(result for result in results if isinstance(result, Document)),
            tuple(result for result in results if isinstance(result, DocParserError)),
            tuple(found.lines()),
        )
        if readings.problems and not readings.documents:
            reasons = (*(str(error) for error in readings.errors), *readings.skipped)
            raise DocParserError("none of the documents could be read: " + "; ".join(reasons))
        return readings

    async def _read_all(self, paths: Sequence[str], context: ToolContext | None) -> list[Document | DocParserError]:
        turn = asyncio.Semaphore(_AT_ONCE)
        done = 0

        async def attempt(path: str) -> Document | DocParserError:
            nonlocal done
            async with turn:
                result: Document | DocParserError
                try:
                    result = await self._read(path, context)
                except DocParserError as error:
                    result = error
            done += 1
            if context is not None:
                context.report(f"{done} of {len(paths)}: {shown_name(path)}")
            return result

        return await asyncio.gather(*(attempt(path) for path in paths))

    async def _read(self, path: str, context: ToolContext | None) -> Document:
        if self._cache is None and not self._config.describe_images:
            return await self._reader.read(path)
        fingerprint = await self._reader.fingerprint(path)
        document = await self._cached(fingerprint, path)
        if document is None:
            document = await self._reader.read(path)
            await self._keep(fingerprint, document)
        if not self._config.describe_images or context is None:
            return document
        agent = agent_for(None, context, self._host, name=DESCRIBER, what=_NO_MODEL)
        parser = (
            f"{fingerprint.parser} described in {context.lang} by {agent.model.address!r}, {self._config.max_images}"
        )
        described = replace(fingerprint, parser=parser)
        return await self._cached(described, path) or await self._describe(document, described, path, agent, context)

    async def _describe(
        self, document: Document, fingerprint: Fingerprint, path: str, agent: BasicAgent, context: ToolContext
    ) -> Document:
        pictures = await self._reader.pictures(path, most=self._config.max_images)
        pictures = tuple(picture for picture in pictures if fits_a_request(picture))
        described = await describe_pictures(document, pictures, agent, context) if pictures else document
        if described.metadata.get("described_pictures", 0) == len(pictures):
            await self._keep(fingerprint, described)
        return described

    async def _cached(self, fingerprint: Fingerprint, path: str) -> Document | None:
        for mark in dict.fromkeys((fingerprint.without_parts, fingerprint)):
            document = None if self._cache is None else await in_worker(self._cache.get, mark, source=path)
            if document is not None:
                return document
        return None

    async def _keep(self, fingerprint: Fingerprint, document: Document) -> None:
        # The file may have changed in between; pages that OCR could not read may be readable once it is installed.
        is_complete = document.content_hash == fingerprint.content_hash and not document.metadata.get("unread_pages")
        if self._cache is not None and is_complete:
            await in_worker(self._cache.put, fingerprint.of(document), replace(document, source=""))


def _meant(name: str, known_names: Sequence[str], context: ToolContext) -> list[str]:
    """Resolve a name given by a model, which may be a glob pattern for file names of the conversation.

    Raises:
        ToolArgumentError: The name matches no file that the model may read.
    """
    try:
        return [file_meant(name, known_names, context.workspace)]
    except ToolArgumentError:
        # The pattern is matched against known names, and opens no folder.
        if glob.has_magic(name):
            fitting = [path for path in known_names if fnmatch.fnmatchcase(basename_of(path), name)]
            if fitting:
                return fitting
        raise


def _no_index(name: str) -> str:
    if name.startswith(_INDEX):
        raise ToolArgumentError(f"{name!r} is an index, not a document: search it with the tool 'retrieval'")
    return name
