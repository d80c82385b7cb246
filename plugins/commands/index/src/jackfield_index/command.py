"""`jackfield index`: keep documents in an index on disk, look into it, search it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NoReturn

from jackfield import AgentConfig, sync
from jackfield.cli import with_consent
from jackfield.consent import Request, record_consent, require_consent
from jackfield.errors import ConfigError, JackfieldError, PluginNotFoundError
from jackfield.plugins import default_host
from jackfield.retrieval import Corpus, Hit, Searcher, make_searcher, shown_path
from jackfield_agent_files.effects import request_for
from jackfield_agent_files.files import load_agent_config
from jackfield_documents import RAGConfig, WhyNot, ask_all, failures_noted, fuse, score_as_json, why_nothing_reads
from jackfield_index.progress import ProgressLine
from jackfield_knowledge import Built, KnowledgeIndex, index_names
from jackfield_knowledge.places import FILE

_EXAMPLES = """\
examples:
  jackfield index build notes ~/notes "papers/**/*.pdf"
  jackfield index build notes                     # bring it up to date
  jackfield index build notes --type hybrid --embedding-model openai:text-embedding-3-small
  jackfield index search notes how are invoices paid

An index is used as a file: files=["index:notes"] of an assistant.
NAME is a name of letters, digits, '.', '-' and '_', or a path with a slash.
"""
_SHOWN_CHARS = 200
_SHOWN_FAILURES = 10
_FUSED = 100  # hits of each searcher, where several are fused
_WORDS, _VECTORS = "keyword_search", "vector_search"
_OF_TYPES = ("retrieval_type", "embedding_model", "embedder_settings", "index_path")
_SEARCHER_JSON = """'{"name": "vector_search", "embedding_model": "openai:text-embedding-3-small"}'"""


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
    index, config = KnowledgeIndex(options.name), _config(options)
    noted = _noted(index, options)
    searchers = _made(_named_searchers(config) or noted)
    with ProgressLine() as line:
        work = index.build(
            options.files,
            reader=config.reader(default_host(), kept_chars=1),  # each file is read once
            why_not=_why_not(config),
            size_tokens=_given(config, "parser_page_size", options.chunk_size),
            overlap_chars=_given(config, "chunk_overlap", options.chunk_overlap),
            searchers=_named_searchers(config),
            on_progress=line,
        )
        return _changed(index, work, searchers, options, line)


def _add(options: argparse.Namespace) -> int:
    index, config = KnowledgeIndex(options.name), _config(options)
    reader = config.reader(default_host(), kept_chars=1)
    searchers = _made(_noted(index, options))
    with ProgressLine() as line:
        work = index.add(options.files, reader=reader, why_not=_why_not(config), on_progress=line)
        return _changed(index, work, searchers, options, line)


def _remove(options: argparse.Namespace) -> int:
    index, config = KnowledgeIndex(options.name), _config(options)
    reader = config.reader(default_host(), kept_chars=1)
    searchers = _made(_noted(index, options))
    with ProgressLine() as line:
        work = index.remove(options.files, reader=reader, why_not=_why_not(config), on_progress=line)
        return _changed(index, work, searchers, options, line)


def _list(options: argparse.Namespace) -> int:
    described = [_described(KnowledgeIndex(name)) for name in index_names()]
    if options.json:
        _say_json(described)
        return 0
    none = "There is no index yet. Make one: jackfield index build NAME FILES"
    _say_all(list(map(_in_a_line, described)) or [none])
    return 0


def _in_a_line(index: Mapping[str, object]) -> str:
    return str(index.get("error") or f"{index['name']}: {index['documents']} documents, {index['chunks']} chunks")


def _info(options: argparse.Namespace) -> int:
    index = KnowledgeIndex(options.name)
    if options.json:
        _say_json(_information(index))
    else:
        _say_all(_lines_about(index, options.name))
    return 0


def _information(index: KnowledgeIndex) -> dict[str, object]:
    facts = index.facts()
    return {
        **_described(index),
        "chunk_size": facts.size_tokens,
        "chunk_overlap": facts.overlap_chars,
        "tokens": facts.tokens,
        "names": [{"name": step.name, "adds": step.adds} for step in index.names()],
        "searchers": index.searchers(),
        "files": [
            {"location": one.location, "title": one.title, "chunks": one.chunks, "error": one.error}
            for one in index.documents()
        ],
    }


def _lines_about(index: KnowledgeIndex, name: str) -> Iterator[str]:
    facts = index.facts()
    sizes = f"{facts.chunks} chunks of up to {facts.size_tokens} tokens"
    yield f"{shown_path(name)}: {facts.documents} documents, {sizes}"
    yield f"in {shown_path(str(index.folder))}"
    yield from map("for {}".format, filter(None, [", ".join(index.searchers())]))
    for step in index.names():
        yield f"  {'+' if step.adds else '-'} {shown_path(step.name)}"
    for one in index.documents():
        yield f"    {_near(one.location)}: {shown_path(one.error) or f'{one.chunks} chunks'}"


def _search(options: argparse.Namespace) -> int:
    index, config = KnowledgeIndex(options.name), _config(options)
    corpus = index.corpus()
    wanted = _named_searchers(config) or _noted(index, options, follows=False) or config.searchers
    with failures_noted() as failures:
        hits = sync.run(_found(" ".join(options.query), corpus, config, wanted, limit=options.limit))
    sys.stderr.writelines(map("jackfield: {}\n".format, failures))
    if options.json:
        _say_json(list(map(_hit, hits)))
        return 0
    _say_all(list(chain.from_iterable(map(_lines_of_hit, count(1), hits))) or ["nothing found"])
    return 0


def _lines_of_hit(number: int, hit: Hit) -> tuple[str, str]:
    ranks = ", ".join(f"{name} {rank}" for name, rank in hit.ranks.items())
    return f"{number}. {_place(hit)}  ({ranks})", f"   {_excerpt(hit.chunk.text)}"


async def _found(
    query: str, corpus: Corpus, config: RAGConfig, wanted: Mapping[str, Mapping[str, object]], *, limit: int
) -> list[Hit]:
    searchers = {name: make_searcher(name, settings, host=default_host()) for name, settings in wanted.items()}
    # What a searcher has at a low place may be at a high one of them all.
    each = limit if len(searchers) == 1 else max(limit, _FUSED)
    try:
        rankings = await ask_all(
            {name: partial(one.search, query, corpus, limit=each) for name, one in searchers.items()}
        )
    finally:
        await _close(searchers.values())
    if len(searchers) == 1:
        return rankings[next(iter(searchers))]
    return fuse(rankings, weights=config.searcher_weights, k=config.fusion_k)[:limit]


async def _close(searchers: Iterable[Searcher]) -> None:
    for one in searchers:
        await one.aclose()


# --- building ---


def _changed(
    index: KnowledgeIndex,
    work: Coroutine[Any, Any, Built],
    searchers: Mapping[str, Searcher],
    options: argparse.Namespace,
    line: ProgressLine,
) -> int:
    try:
        built = sync.run(work)
        problems = sync.run(_prepared(index, searchers, line))
    except KeyboardInterrupt:
        sys.stderr.write(
            "\njackfield: stopped. What was read is kept, and so are vectors; the index can be searched, and the next "
            "build goes on from there\n"
        )
        raise
    finally:
        if _is_elsewhere(options) and index.exists:
            request = _request(index, index.searchers())
            if request.effects:
                record_consent(request)  # the user's own index, until another takes its place
    line.clear()
    sys.stderr.writelines(map("jackfield: {}\n".format, _troubles(built, problems)))
    if options.json:
        _say_json(_built(index, built))
    else:
        facts = index.facts()
        _say(
            f"{shown_path(options.name)}: {built.read} read, {built.unchanged} unchanged, {built.removed} removed, "
            f"{len(built.failed)} failed, {len(built.skipped)} skipped; it holds {facts.documents} documents, "
            f"{facts.chunks} chunks"
        )
    return int(bool(problems))


def _troubles(built: Built, problems: Sequence[str]) -> Iterator[str]:
    """What went wrong, a line each."""
    for path, reason in islice(built.failed.items(), _SHOWN_FAILURES):
        yield f"{_near(path)}: {shown_path(reason)}"
    if len(built.failed) > _SHOWN_FAILURES:
        yield f"and {len(built.failed) - _SHOWN_FAILURES} more files cannot be read"
    yield from map("{}. What was made is kept: build again, and it goes on from there".format, problems)


def _noted(
    index: KnowledgeIndex, options: argparse.Namespace, *, follows: bool = True
) -> Mapping[str, Mapping[str, object]]:
    """Return the searchers that an index was built for, if the user wrote it here or agrees to what they can cause.

    Args:
        index: It may be missing.
        options: Those of the command line.
        follows: The files of the index are read again, so their names count, too.

    Raises:
        ConsentNeededError: The index came from elsewhere, and the user has not agreed to it.
    """
    if not index.exists:
        return {}
    searchers = index.searchers()
    if _is_elsewhere(options):
        request = _request(index, searchers)
        if follows or _request(index, searchers, names=()).effects:
            with_consent(lambda: require_consent(request, trust=options.trust))
    return searchers


def _request(
    index: KnowledgeIndex, searchers: Mapping[str, Mapping[str, object]], *, names: Iterable[str] | None = None
) -> Request:
    """Say what an index can cause; its documents are texts, and cause nothing."""
    names = [step.name for step in index.names() if step.adds] if names is None else names
    table = {"rag_searchers": [{**one, "name": name} for name, one in searchers.items()], "files": list(names)}
    return request_for(index.folder / FILE, json.dumps(table, sort_keys=True), table, read_as="index")


def _is_elsewhere(options: argparse.Namespace) -> bool:
    """Return True if an index is named by its path; those with names are below the user's own data."""
    return "/" in options.name or os.sep in options.name


def _made(wanted: Mapping[str, Mapping[str, object]]) -> dict[str, Searcher]:
    """The searchers that are to be prepared; a wrong setting is an error before the first file is read."""
    try:
        return {
            name: make_searcher(name, settings, host=default_host())
            for name, settings in (wanted or {_WORDS: {}}).items()
        }
    except PluginNotFoundError:
        if wanted:
            raise
        return {}  # nobody asked for it


async def _prepared(index: KnowledgeIndex, searchers: Mapping[str, Searcher], line: ProgressLine) -> list[str]:
    """Have searchers make what they need now, and not when somebody waits for an answer; gives what went wrong."""
    problems = []
    for name, searcher in searchers.items():
        line.say(f"{name}: indexing")
        try:
            await searcher.prepare(index.corpus(), on_progress=partial(line.count, name))
        except JackfieldError as error:
            problems.append(f"{name}: {shown_path(str(error))}")
        finally:
            await searcher.aclose()
    return problems


def _why_not(config: RAGConfig) -> WhyNot:
    return why_nothing_reads(default_host(), also=config.parser_for)


# --- what the options say of reading and searching ---


def _agent_of(options: argparse.Namespace) -> AgentConfig:
    return with_consent(lambda: load_agent_config(options.agent, trust=options.trust))


def _config(options: argparse.Namespace) -> RAGConfig:
    """`rag_cfg` of the agent file, with what the options say over it."""
    config = RAGConfig.parse(_agent_of(options).rag_cfg if options.agent else None)
    named = _named(options)
    kept = config.model_fields_set.difference(_OF_TYPES * bool(named))
    given: dict[str, object] = {key: getattr(config, key) for key in kept}
    given |= {"rag_searchers": named} if named else {}
    given |= {"retrieval_type": options.type} if options.type else {}
    given |= {"embedding_model": options.embedding_model} if options.type and options.embedding_model else {}
    return RAGConfig.parse(given)


def _named(options: argparse.Namespace) -> list[dict[str, object]]:
    """The searchers that options name.

    Raises:
        ConfigError: A model for vectors is named, and nothing that has vectors.
    """
    model = options.embedding_model
    named = [_with_model(_searcher(text), model) for text in options.searcher]
    if model and not (options.type or _VECTORS in (entry["name"] for entry in named)):
        raise ConfigError("--embedding-model is for vectors: add --type vector or hybrid, or --searcher vector_search")
    return named


def _with_model(searcher: dict[str, object], model: str | None) -> dict[str, object]:
    is_meant = model and searcher["name"] == _VECTORS
    return {**searcher, "embedding_model": model} if is_meant else searcher


def _searcher(text: str) -> dict[str, object]:
    """A searcher as an option names it."""
    if not text.lstrip().startswith("{"):
        return {"name": text}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--searcher: this is not JSON ({error}): write a name, or {_SEARCHER_JSON}") from error
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        raise ConfigError(f"--searcher: 'name' is missing: write a name, or {_SEARCHER_JSON}")
    return found


def _named_searchers(config: RAGConfig) -> dict[str, dict[str, object]] | None:
    """The searchers that somebody has named; None if nobody has."""
    return config.searchers if {"rag_searchers", "retrieval_type", "rerank"} & config.model_fields_set else None


def _given(config: RAGConfig, setting: str, option: int | None) -> int | None:
    if option is not None or setting not in config.model_fields_set:
        return option
    return int(getattr(config, setting))


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
        "score": score_as_json(hit.score),
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


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        _say(line)


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
    _of_searching(build, "which searchers make their index now, and search it later")
    _of_reading(build)
    add = _command(commands, "add", "add files, and bring the others up to date", _add)
    add.add_argument("files", nargs="+", metavar="FILES", help="files, folders, URLs and patterns")
    _of_reading(add)
    remove = _command(commands, "remove", "take files out, and bring the others up to date", _remove)
    remove.add_argument("files", nargs="+", metavar="FILES", help="files, folders, URLs and patterns")
    _of_reading(remove)
    _command(commands, "list", "the indexes that there are", _list, takes_name=False)
    _command(commands, "info", "what an index holds", _info)
    search = _command(commands, "search", "search an index", _search)
    search.add_argument("query", nargs="+", metavar="QUERY", help="a question, or keywords")
    search.add_argument("--limit", type=_at_least(1), default=10, metavar="N", help="the most hits (default: 10)")
    _of_searching(search, "how to search (default: as the index was built)")
    _of_reading(search)
    return parser


def _of_searching(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--type", choices=("keyword", "vector", "hybrid"), help=text)
    parser.add_argument(
        "--searcher",
        action="append",
        default=[],
        metavar="NAME",
        help="a searcher, or JSON of its 'name' and settings; again for more",
    )
    parser.add_argument("--embedding-model", metavar="MODEL", help="for vectors: openai:text-embedding-3-small")


def _of_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="FILE", help="take rag_cfg of this agent file: parsers, searchers, sizes")
    parser.add_argument("--trust", action="store_true", help="use the agent file and the index whatever they ask for")


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    text: str,
    work: Callable[[argparse.Namespace], int],
    *,
    takes_name: bool = True,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
    parser.set_defaults(work=work, agent=None, searcher=(), type=None, embedding_model=None)
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
