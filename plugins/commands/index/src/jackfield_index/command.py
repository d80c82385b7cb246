"""`jackfield index`: keep documents in an index on disk, look into it, search it."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jackfield import sync
from jackfield.errors import JackfieldError, PluginNotFoundError
from jackfield.plugins import default_host
from jackfield.retrieval import Hit, make_searcher, shown_path
from jackfield_documents import DocumentReader, RAGConfig, fuse, why_nothing_reads
from jackfield_index.progress import ProgressLine
from jackfield_knowledge import Built, KeptCorpus, KnowledgeIndex, index_names

_EXAMPLES = """\
examples:
  jackfield index build notes ~/notes "papers/**/*.pdf"
  jackfield index build notes                     # bring it up to date
  jackfield index search notes how are invoices paid

An index is used as a file: files=["index:notes"] of an assistant.
NAME is a name of letters, digits, '.', '-' and '_', or a path with a slash.
"""
_SHOWN_CHARS = 200
_SHOWN_FAILURES = 10
_WORDS = "keyword_search"


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say; gives the exit code.

    Raises:
        ConfigError: A name is wrong, or an index cannot be used.
    """
    options = _parser().parse_args(arguments)
    work: Callable[[argparse.Namespace], int] = options.work
    return work(options)


# --- what it does ---


def _build(options: argparse.Namespace) -> int:
    index = KnowledgeIndex(options.name)
    with ProgressLine() as line:
        work = index.build(
            options.files,
            reader=_reader(),
            why_not=why_nothing_reads(default_host()),
            size_tokens=options.chunk_size,
            overlap_chars=options.chunk_overlap,
            on_progress=line,
        )
        return _changed(index, _run(work), options, line)


def _add(options: argparse.Namespace) -> int:
    index = KnowledgeIndex(options.name)
    with ProgressLine() as line:
        work = index.add(options.files, reader=_reader(), why_not=why_nothing_reads(default_host()), on_progress=line)
        return _changed(index, _run(work), options, line)


def _remove(options: argparse.Namespace) -> int:
    index = KnowledgeIndex(options.name)
    with ProgressLine() as line:
        work = index.remove(
            options.files, reader=_reader(), why_not=why_nothing_reads(default_host()), on_progress=line
        )
        return _changed(index, _run(work), options, line)


def _list(options: argparse.Namespace) -> int:
    described = [_described(KnowledgeIndex(name)) for name in index_names()]
    if options.json:
        _say_json(described)
    elif not described:
        _say("There is no index yet. Make one: jackfield index build NAME FILES")
    for one in () if options.json else described:
        _say(str(one.get("error") or "") or f"{one['name']}: {one['documents']} documents, {one['chunks']} chunks")
    return 0


def _info(options: argparse.Namespace) -> int:
    index = KnowledgeIndex(options.name)
    facts = index.facts()
    steps = [{"name": step.name, "adds": step.adds} for step in index.names()]
    documents = [
        {"location": one.location, "title": one.title, "chunks": one.chunks, "error": one.error}
        for one in index.documents()
    ]
    if options.json:
        size = {"chunk_size": facts.size_tokens, "chunk_overlap": facts.overlap_chars, "tokens": facts.tokens}
        _say_json({**_described(index), **size, "names": steps, "files": documents})
        return 0
    sizes = f"{facts.chunks} chunks of up to {facts.size_tokens} tokens"
    _say(f"{shown_path(options.name)}: {facts.documents} documents, {sizes}")
    _say(f"in {shown_path(str(index.folder))}")
    for step in index.names():
        _say(f"  {'+' if step.adds else '-'} {shown_path(step.name)}")
    for one in index.documents():
        _say(f"    {_near(one.location)}: {shown_path(one.error) or f'{one.chunks} chunks'}")
    return 0


def _search(options: argparse.Namespace) -> int:
    given = {"retrieval_type": options.type, "embedding_model": options.embedding_model}
    settings = {name: value for name, value in given.items() if value is not None}
    corpus = KnowledgeIndex(options.name).corpus()
    hits = sync.run(_found(" ".join(options.query), corpus, RAGConfig.parse(settings), limit=options.limit))
    if options.json:
        _say_json([_hit(hit) for hit in hits])
        return 0
    for number, hit in enumerate(hits, start=1):
        _say(f"{number}. {_place(hit)}  ({', '.join(f'{name} {rank}' for name, rank in hit.ranks.items())})")
        _say(f"   {_excerpt(hit.chunk.text)}")
    if not hits:
        _say("nothing found")
    return 0


async def _found(query: str, corpus: KeptCorpus, config: RAGConfig, *, limit: int) -> list[Hit]:
    searchers = {
        name: make_searcher(name, corpus.settings_for(name, settings), host=default_host())
        for name, settings in config.searchers.items()
    }
    found = await asyncio.gather(*(one.search(query, corpus, limit=limit) for one in searchers.values()))
    return found[0] if len(found) == 1 else fuse(dict(zip(searchers, found, strict=True)))[:limit]


# --- building ---


def _reader() -> DocumentReader:
    return DocumentReader(default_host(), kept_chars=1)  # each file is read once


def _run(work: Coroutine[Any, Any, Built]) -> Built:
    try:
        return sync.run(work)
    except KeyboardInterrupt:
        sys.stderr.write(
            "\njackfield: stopped. What was read is kept, what the index held before can be searched, and the next "
            "build goes on from there\n"
        )
        raise


def _changed(index: KnowledgeIndex, built: Built, options: argparse.Namespace, line: ProgressLine) -> int:
    line.say("indexing words")
    _index_words(index)
    line.clear()
    for path, reason in list(built.failed.items())[:_SHOWN_FAILURES]:
        sys.stderr.write(f"jackfield: {_near(path)}: {shown_path(reason)}\n")
    if len(built.failed) > _SHOWN_FAILURES:
        sys.stderr.write(f"jackfield: and {len(built.failed) - _SHOWN_FAILURES} more files cannot be read\n")
    if options.json:
        _say_json(_built(index, built))
        return 0
    facts = index.facts()
    _say(
        f"{shown_path(options.name)}: {built.read} read, {built.unchanged} unchanged, {built.removed} removed, "
        f"{len(built.failed)} failed, {len(built.skipped)} skipped; it holds {facts.documents} documents, "
        f"{facts.chunks} chunks"
    )
    return 0


def _index_words(index: KnowledgeIndex) -> None:
    """Have the searcher by words make its index now, and not when somebody waits for an answer."""
    try:
        searcher = make_searcher(_WORDS, {}, host=default_host())
    except PluginNotFoundError:
        return
    sync.run(searcher.search(".", index.corpus(), limit=1))


# --- printing ---


def _described(index: KnowledgeIndex) -> dict[str, object]:
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


def _built(index: KnowledgeIndex, built: Built) -> dict[str, object]:
    return {
        **_described(index),
        "read": built.read,
        "unchanged": built.unchanged,
        "removed": built.removed,
        "failed": dict(built.failed),
        "skipped": {one.path: one.reason for one in built.skipped},
        "missing": list(built.missing),
    }


def _hit(hit: Hit) -> Mapping[str, object]:
    chunk = hit.chunk
    return {
        "location": chunk.source,
        "page": chunk.page,
        "headings": list(chunk.headings),
        "score": hit.score,
        "ranks": dict(hit.ranks),
        "text": chunk.text,
    }


def _place(hit: Hit) -> str:
    page = "" if hit.chunk.page is None else f", page {hit.chunk.page}"
    headings = f", {' > '.join(map(shown_path, hit.chunk.headings))}" if hit.chunk.headings else ""
    return f"{_near(hit.chunk.source)}{page}{headings}"


def _near(location: str) -> str:
    """A path as it is seen from here, and without what a terminal would take for orders."""
    path = Path(location)
    return shown_path(str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else location)


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return shown_path(line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}…")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _say_json(value: object) -> None:
    _say(json.dumps(value, indent=2))  # ASCII: half of a surrogate pair can be in a name


# --- arguments ---


class _Parser(argparse.ArgumentParser):
    """Says what is wrong before how it would be right, and repeats no control characters."""

    def error(self, message: str) -> NoReturn:
        shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in message)
        sys.stderr.write(f"{self.prog}: {shown}\nTry: {self.prog} --help\n")
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="jackfield index",
        description="Keep documents in an index on disk, and search it. Only what has changed is read again.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = _command(commands, "build", "make an index of files, or without FILES bring it up to date", _build)
    build.add_argument(
        "files", nargs="*", metavar="FILES", help="files, folders, URLs and patterns, such as 'docs/**/*.md'"
    )
    build.add_argument("--chunk-size", type=_at_least(1), metavar="N", help="tokens of a chunk; 500 if never given")
    build.add_argument(
        "--chunk-overlap", type=_at_least(0), metavar="N", help="characters that a chunk repeats; 150 if never given"
    )
    add = _command(commands, "add", "add files, and bring the others up to date", _add)
    add.add_argument("files", nargs="+", metavar="FILES", help="files, folders, URLs and patterns")
    remove = _command(commands, "remove", "take files out, and bring the others up to date", _remove)
    remove.add_argument("files", nargs="+", metavar="FILES", help="files, folders, URLs and patterns")
    _command(commands, "list", "the indexes that there are", _list, takes_name=False)
    _command(commands, "info", "what an index holds", _info)
    search = _command(commands, "search", "search an index", _search)
    search.add_argument("query", nargs="+", metavar="QUERY", help="a question, or keywords")
    search.add_argument("--limit", type=_at_least(1), default=10, metavar="N", help="the most hits (default: 10)")
    search.add_argument("--type", choices=("keyword", "vector", "hybrid"), help="how to search (default: keyword)")
    search.add_argument("--embedding-model", metavar="MODEL", help="for vectors: openai:text-embedding-3-small")
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    text: str,
    work: Callable[[argparse.Namespace], int],
    *,
    takes_name: bool = True,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
    parser.set_defaults(work=work)
    if takes_name:
        parser.add_argument("name", metavar="NAME", help="a name, or a path with a slash")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"it must be at least {least}, not {value}")
        return value

    return number
