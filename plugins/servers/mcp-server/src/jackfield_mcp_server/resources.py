"""Offer cited passages and the agents' documents as resources."""

from __future__ import annotations

import base64
import mimetypes
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    TextResourceContents,
)
from starlette.requests import Request

from jackfield.attachments import decode_text
from jackfield.citations import Citation, citations_in
from jackfield.errors import ConfigError, RunNotFoundError
from jackfield.events import PluginEvent, RunEvent
from jackfield.messages import basename_of
from jackfield.servers import owner_of
from jackfield.streams import closing
from jackfield.sync import in_worker
from jackfield_mcp_server.errors import errors_of_protocol
from jackfield_serving import RunSummary, Serving

_Context = ServerRequestContext[Any, Any]
_TEXT = "text/plain"
_PAGE = 100
_LATEST_RUNS = 20
_MAX_KEPT = 50 * _LATEST_RUNS
_MAX_DOCUMENTS = 1000
_MAX_DOCUMENT_BYTES = 10_000_000
_MAX_PASSAGE_CHARS = 200_000
_MAX_URI_CHARS = 2000
_SOURCE_TEMPLATE = ResourceTemplate(
    name="source",
    uri_template="jackfield://runs/{conversation}/sources/{number}",
    description="A passage that an answer cites: the `conversation` of the result, and a number starting at 1.",
    mime_type=_TEXT,
)
_DOCUMENT_TEMPLATE = ResourceTemplate(
    name="document",
    uri_template="jackfield://agents/{agent}/documents/{name}",
    description="A document that an agent uses for its answers.",
)


class Passages:
    """Collects the passages cited by a run's answers, in order and without duplicates.

    Attributes:
        number: The number of the last event read from the record, or 0 if none has been read.
    """

    def __init__(self) -> None:
        self.number = 0
        self._citations: dict[tuple[str, int | None, str], Citation] = {}

    def feed(self, event: RunEvent) -> None:
        """Add the passages cited in an event."""
        if event.depth == 0 and isinstance(event.event, PluginEvent):
            for one in citations_in(event.event.data):
                if one.passage:
                    self._citations.setdefault((one.location, one.page, one.passage), one)

    def texts(self) -> list[str]:
        """Return the passages' texts."""
        return [replace_surrogates(one.passage[:_MAX_PASSAGE_CHARS]) for one in self._citations.values()]

    def links(self, run_id: str) -> list[ResourceLink]:
        """Return a link to each passage."""
        return [
            ResourceLink(**_fields_of(run_id, number, one)) for number, one in enumerate(self._citations.values(), 1)
        ]

    def resources(self, run_id: str) -> list[Resource]:
        """Return each passage as a resource."""
        return [Resource(**_fields_of(run_id, number, one)) for number, one in enumerate(self._citations.values(), 1)]


@dataclass(frozen=True, slots=True)
class _Document:
    """An agent's document. The path is never sent to clients."""

    uri: str
    path: Path
    size: int

    @property
    def media_type(self) -> str:
        return mimetypes.guess_type(self.path.name)[0] or "application/octet-stream"


class AgentResources:
    """Request handlers for resources.

    Args:
        serving: The agents and their runs.
        has_documents: True to let clients read the agents' documents.
    """

    def __init__(self, serving: Serving, *, has_documents: bool) -> None:
        self._serving, self._has_documents = serving, has_documents
        self._sources: OrderedDict[tuple[str, float, int], list[Resource]] = OrderedDict()

    async def list_templates(
        self,
        context: _Context,  # noqa: ARG002
        params: PaginatedRequestParams | None,  # noqa: ARG002
    ) -> ListResourceTemplatesResult:
        """Return the URI templates."""
        templates = [_SOURCE_TEMPLATE, _DOCUMENT_TEMPLATE] if self._has_documents else [_SOURCE_TEMPLATE]
        return ListResourceTemplatesResult(resource_templates=templates)

    async def list_resources(self, context: _Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return a page of the agents' documents and the sources of the client's latest answers.

        Raises:
            MCPError: The cursor is invalid.
        """
        cursor = (params and params.cursor) or "0"
        if not cursor.isdecimal() or len(cursor) > 9:
            raise MCPError(INVALID_PARAMS, "invalid cursor: start again without a cursor")
        with errors_of_protocol():
            resources = [
                Resource(uri=one.uri, name=basename_of(one.path.name), mime_type=one.media_type, size=one.size)
                for agent in self._serving.agents
                for one in await self._documents(agent)
            ]
            owner = _owner_of(context)
            for run in await self._serving.runs(owner=owner, limit=_LATEST_RUNS):
                if run.phase == "ended":
                    resources += await self._sources_of(run)
        first = int(cursor)
        following = str(first + _PAGE) if first + _PAGE < len(resources) else None
        return ListResourcesResult(resources=resources[first : first + _PAGE], next_cursor=following)

    async def read(self, context: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return a document, or a source of one of the client's answers.

        Raises:
            MCPError: The client has no such resource.
        """
        uri = str(params.uri)
        parts = uri.removeprefix("jackfield://").split("/") if len(uri) <= _MAX_URI_CHARS else []
        with errors_of_protocol():
            match parts:
                case ["runs", run_id, "sources", number] if uri.startswith("jackfield://"):
                    text = await self._read_source(unquote(run_id), number, _owner_of(context))
                    if text is not None:
                        contents = TextResourceContents(uri=uri, mime_type=_TEXT, text=text)
                        return ReadResourceResult(contents=[contents])
                case ["agents", agent, "documents", *_]:
                    for document in await self._documents(unquote(agent)):
                        if document.uri == uri:
                            return ReadResourceResult(contents=[await in_worker(_read_document, document)])
        raise MCPError(INVALID_PARAMS, "no such resource: list the resources to find valid URIs", {"uri": uri[:200]})

    async def _read_source(self, run_id: str, number: str, owner: str) -> str | None:
        if not number.isdecimal() or len(number) > 9:
            return None
        try:
            run = await self._serving.run(run_id, owner=owner)
        except RunNotFoundError:
            return None
        if run.phase in ("queued", "running"):  # more events will follow
            return None
        texts = (await self._passages(run)).texts()
        return texts[int(number) - 1] if 0 < int(number) <= len(texts) else None

    async def _sources_of(self, run: RunSummary) -> list[Resource]:
        """Return the sources of a run that has ended, cached until its record grows."""
        key = (run.run_id, run.began, run.number)
        if (kept := self._sources.get(key)) is not None:
            self._sources.move_to_end(key)
            return kept
        passages = await self._passages(run)
        resources = passages.resources(run.run_id)
        if passages.number >= run.number:
            self._sources[key] = resources
            if len(self._sources) > _MAX_KEPT:
                self._sources.popitem(last=False)
        return resources

    async def _passages(self, run: RunSummary) -> Passages:
        passages = Passages()
        async with closing(self._serving.attach(run.run_id, owner=run.owner)) as events:
            async for number, event in events:
                passages.feed(event)
                passages.number = number
                if number >= run.number:  # the run may continue in the meantime
                    break
        return passages

    async def _documents(self, agent: str) -> list[_Document]:
        names = self._serving.documents(agent) if self._has_documents else ()
        return await in_worker(lambda: list(_documents_of(agent, names))) if names else []


def _fields_of(run_id: str, number: int, citation: Citation) -> dict[str, Any]:
    return {
        "uri": f"jackfield://runs/{run_id}/sources/{number}",
        "name": replace_surrogates(citation.place) or "source",
        "description": replace_surrogates(str(citation)),
        "mime_type": _TEXT,
        "size": len(replace_surrogates(citation.passage[:_MAX_PASSAGE_CHARS]).encode()),
    }


def _documents_of(agent: str, names: tuple[str, ...]) -> Iterator[_Document]:
    """Yield an agent's files up to the size limit. URIs omit directories, and files with the same name are numbered."""
    try:
        from jackfield_documents import expand, has_scheme
    except ImportError:
        return
    try:
        files = expand(names, most=_MAX_DOCUMENTS).files
    except ConfigError:  # too many
        return
    counts: dict[str, int] = {}
    for file in files:
        path = Path(file)
        if has_scheme(file) or not path.is_file():
            continue
        counts[path.name] = count = counts.get(path.name, 0) + 1
        suffix = "" if count == 1 else f"/{count}"
        uri = f"jackfield://agents/{quote(agent, safe='')}/documents/{quote(path.name, safe='')}{suffix}"
        size = path.stat().st_size
        if size <= _MAX_DOCUMENT_BYTES:
            yield _Document(uri, path, size)


def _read_document(document: _Document) -> TextResourceContents | BlobResourceContents:
    with document.path.open("rb") as file:
        content = file.read(_MAX_DOCUMENT_BYTES)
    return contents_of(document.uri, document.media_type, content)


def contents_of(uri: str, media_type: str, content: bytes) -> TextResourceContents | BlobResourceContents:
    """Return a file's content, as text where possible."""
    is_binary = media_type.startswith(("image/", "audio/", "video/")) or media_type == "application/pdf"
    text = None if is_binary else decode_text(content)
    if text is None:
        return BlobResourceContents(uri=uri, mime_type=media_type, blob=base64.b64encode(content).decode())
    return TextResourceContents(uri=uri, mime_type=media_type, text=replace_surrogates(text))


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()


def _owner_of(context: _Context) -> str:
    return owner_of(context.request.scope) if isinstance(context.request, Request) else ""
