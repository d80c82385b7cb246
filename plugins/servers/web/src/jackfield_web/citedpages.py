"""Draw the document pages that citations refer to."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from jackfield.attachments import decode_uri
from jackfield.citations import Citation, citations_in
from jackfield.errors import ConfigError, DocParserError, UnsupportedInputError
from jackfield.events import PluginEvent
from jackfield.media import stated_name
from jackfield.messages import USER, Message, basename_of
from jackfield.retrieval import shown_path
from jackfield.servers import RequestRefusedError
from jackfield.streams import closing
from jackfield.sync import in_worker
from jackfield_serving import RunInfo, Serving

_WAIT_S = 5.0
_MOST_CANDIDATES = 3  # files of the same name


async def read_citation(serving: Serving, run_id: str, number: int, place: int, *, owner: str) -> Citation:
    """Return the citation at position `place` in event `number` of a run.

    Clients refer to citations rather than files, so they can see only pages cited in an answer to them.

    Raises:
        RunNotFoundError: The owner has no such run.
        RequestRefusedError: The run has no such citation.
    """
    try:
        # Following an active run would wait for its next event.
        async with (
            asyncio.timeout(_WAIT_S),
            closing(serving.attach(run_id, after=max(0, number - 1), owner=owner)) as events,
        ):
            async for found, placed in events:
                citations = citations_in(placed.event.data) if isinstance(placed.event, PluginEvent) else []
                if found == number and place < len(citations):
                    return citations[place]
                break
    except TimeoutError:
        pass
    raise RequestRefusedError("the run has no such citation: reload the page")


async def draw_citation(serving: Serving, run: RunInfo, citation: Citation) -> dict[str, Any] | None:
    """Return an image of the page with the cited passage and the bounding boxes of its lines, or None if not found.

    Scanned pages have no bounding boxes.
    """
    if citation.page is None:
        return None
    try:
        from jackfield_documents import DocumentReader
    except ImportError:
        return None
    reader = DocumentReader()
    folder = await in_worker(TemporaryDirectory, prefix="jackfield-")
    try:
        attached = await in_worker(_save_attached, run.messages, citation.location, Path(folder.name))
        for path in (*attached, *await in_worker(_paths_of, serving.documents(run.agent), citation.location)):
            try:
                passage = citation.quote or citation.passage
                image = await reader.draw_page(path, page=citation.page, passage=passage, part=citation.part)
            except DocParserError:
                continue
            # A page without the passage comes from a file that has changed, or from another file of the same name.
            if image.boxes or not image.has_text:
                address = "data:image/png;base64," + base64.b64encode(image.png).decode()
                size = {"width": image.width, "height": image.height}
                return {"page": image.page, "address": address, "boxes": image.boxes, **size}
        return None
    finally:
        await in_worker(folder.cleanup)


def _save_attached(messages: Sequence[Message], location: str, folder: Path) -> list[str]:
    """Save the user's attachments whose name matches the citation, newest first, and return their paths."""
    items = [item for message in reversed(messages) if message.role == USER for item in message.items]
    uris = dict.fromkeys(item.file for item in items if item.file is not None and item.file[:5].lower() == "data:")
    named = [uri for uri in uris if shown_path(stated_name(uri)) == location]
    paths: list[str] = []
    for uri in named[:_MOST_CANDIDATES]:
        with suppress(UnsupportedInputError, OSError):  # the page shows the text instead
            file = decode_uri(uri)
            path = folder / f"{len(paths)}{PurePath(file.name).suffix}"
            path.write_bytes(file.content or b"")
            paths.append(str(path))
    return paths


def _paths_of(names: Sequence[str], location: str) -> list[str]:
    """Return the files whose name matches the citation, which does not include a directory."""
    from jackfield_documents import expand, is_url

    try:
        files = expand(names).files
    except ConfigError:
        return []
    paths = (file for file in files if not is_url(file) and shown_path(basename_of(file)) == location)
    return [path for path, _ in zip(paths, range(_MOST_CANDIDATES), strict=False)]
