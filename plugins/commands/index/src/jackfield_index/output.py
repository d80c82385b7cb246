"""Print indexes, builds and hits, as text or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from jackfield.errors import JackfieldError
from jackfield.messages import name_in_file
from jackfield.plurals import format_count
from jackfield.retrieval import Hit, shown_path
from jackfield_documents import headings_in_part, score_as_json
from jackfield_knowledge import Built, IndexFacts, KnowledgeIndex

_SHOWN_CHARS = 200
_SHOWN_FAILURES = 10


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def say_json(value: object) -> None:
    """Print JSON, in ASCII because names may contain lone surrogates."""
    say(json.dumps(value, indent=2))


def warn(text: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(f"jackfield: {text}\n")


def index_facts(index: KnowledgeIndex) -> dict[str, object]:
    """Return an index's size as JSON values, or the reason it cannot be read."""
    try:
        facts = index.facts()
    except JackfieldError as error:
        return {"name": index.name, "folder": str(index.folder), "error": str(error)}
    return {
        "name": index.name,
        "folder": str(index.folder),
        "documents": facts.documents,
        "chunks": facts.chunks,
        "generation": facts.generation,
    }


def all_facts(index: KnowledgeIndex) -> dict[str, object]:
    """Return an index's settings, searchers and files as JSON values."""
    facts = index.facts()
    return {
        **index_facts(index),
        "chunk_size": facts.size_tokens,
        "chunk_overlap": facts.overlap_chars,
        "tokens": facts.tokens,
        "names": [{"name": step.name, "adds": step.adds} for step in index.names()],
        "searchers": index.searchers(),
        "files": [
            {"location": file.location, "title": file.title, "chunks": file.chunks, "error": file.error}
            for file in index.documents()
        ],
    }


def describe_index(index: KnowledgeIndex, name: str) -> Iterator[str]:
    """Yield an index's settings, searchers and files as lines."""
    facts = index.facts()
    yield f"{shown_path(name)}: {describe_size(facts)} of up to {format_count(facts.size_tokens, 'token')}"
    yield f"in {shown_path(str(index.folder))}"
    searchers = index.searchers()
    if searchers:
        yield f"for {', '.join(searchers)}"
    for step in index.names():
        yield f"  {'+' if step.adds else '-'} {shown_path(step.name)}"
    for file in index.documents():
        yield f"    {_relative(file.location)}: {shown_path(file.error) or format_count(file.chunks, 'chunk')}"


def summarize_index(index: KnowledgeIndex) -> str:
    """Return a line with an index's name and size, or the reason it cannot be read."""
    try:
        return f"{index.name}: {describe_size(index.facts())}"
    except JackfieldError as error:
        return str(error)


def describe_size(facts: IndexFacts) -> str:
    """Return the number of documents and chunks in an index, as in `1 document, 2 chunks`."""
    return f"{format_count(facts.documents, 'document')}, {format_count(facts.chunks, 'chunk')}"


def describe_failures(built: Built, problems: Sequence[str]) -> Iterator[str]:
    """Yield a line for each unreadable file, each name without files, and each searcher that failed."""
    for path, reason in islice(built.failed.items(), _SHOWN_FAILURES):
        yield f"{_relative(path)}: {shown_path(reason)}"
    if len(built.failed) > _SHOWN_FAILURES:
        yield f"and {format_count(len(built.failed) - _SHOWN_FAILURES, 'more file')} could not be read"
    for name in built.missing:
        yield f"{_relative(name)} no longer exists or matches nothing, so none of its documents are in the index"
    for problem in problems:
        yield f"{problem}. The finished part is kept: build again to continue"


def build_facts(index: KnowledgeIndex, built: Built) -> dict[str, object]:
    """Return a build's result as JSON values."""
    return {
        **index_facts(index),
        "read": built.read,
        "outdated": built.outdated,
        "unchanged": built.unchanged,
        "removed": built.removed,
        "failed": dict(built.failed),
        "skipped": {file.path: file.reason for file in built.skipped},
        "missing": list(built.missing),
    }


def hit_facts(hit: Hit) -> Mapping[str, object]:
    """Return a hit as JSON values."""
    chunk = hit.chunk
    return {
        "location": chunk.source,
        **({"part": chunk.part} if chunk.part else {}),
        "page": chunk.page,
        "headings": list(headings_in_part(chunk)),
        "score": score_as_json(hit.score),
        "ranks": dict(hit.ranks),
        "text": chunk.text,
    }


def describe_hit(number: int, hit: Hit) -> Iterator[str]:
    """Yield two lines for a hit: its location and ranks, and an excerpt."""
    page = "" if hit.chunk.page is None else f", page {hit.chunk.page}"
    headings = " > ".join(shown_path(heading) for heading in headings_in_part(hit.chunk))
    ranks = ", ".join(f"{name} {rank}" for name, rank in hit.ranks.items())
    name = name_in_file(_relative(hit.chunk.source), hit.chunk.part)
    yield f"{number}. {name}{page}{f', {headings}' if headings else ''}  ({ranks})"
    line = " ".join(hit.chunk.text.split())
    yield f"   {shown_path(line if len(line) <= _SHOWN_CHARS else f'{line[:_SHOWN_CHARS]}…')}"


def _relative(location: str) -> str:
    """Return a path relative to the working directory if possible, with control characters escaped."""
    path = Path(location)
    return shown_path(str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else location)
