"""`jackfield index`: store documents in an index on disk, inspect the index, and search it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from jackfield import sync
from jackfield.cli import with_consent
from jackfield.consent import Request, record_consent, require_consent
from jackfield.errors import ConfigError, JackfieldError, PluginNotFoundError
from jackfield.plugins import default_host
from jackfield.plurals import format_count
from jackfield.retrieval import Corpus, Hit, Searcher, Where, make_searcher, shown_path
from jackfield_agent_files.effects import request_for
from jackfield_documents import RAGConfig, ask_all, failures_noted, fuse, why_nothing_reads
from jackfield_index.options import chosen_number, chosen_searchers, make_parser, read_config, read_values, read_where
from jackfield_index.output import (
    all_facts,
    build_facts,
    describe_failures,
    describe_hit,
    describe_index,
    describe_size,
    hit_facts,
    index_facts,
    say,
    say_json,
    summarize_index,
    warn,
)
from jackfield_index.progress import ProgressLine
from jackfield_knowledge import Built, KnowledgeIndex, index_names, watch
from jackfield_knowledge.places import FILE

_FUSED_HITS = 100  # hits per searcher if several are fused


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield index …` and return its exit code.

    Raises:
        ConfigError: A name is invalid, or an index cannot be used.
    """
    parser = make_parser(
        build=_build,
        add=_add,
        remove=_remove,
        set_values=_set,
        watch=_watch,
        list_all=_list,
        info=_info,
        search=_search,
    )
    options = parser.parse_args(arguments)
    work: Callable[[argparse.Namespace], int] = options.work
    return work(options)


# --- building ---


def _build(options: argparse.Namespace) -> int:
    index, config = KnowledgeIndex(options.name), read_config(options)
    recorded = _recorded_searchers(index, options)
    searchers = _make_searchers(chosen_searchers(config) or recorded)
    with ProgressLine() as line:
        work = index.build(
            options.files,
            reader=config.reader(default_host(), kept_chars=1),  # each file is read once
            why_not=why_nothing_reads(default_host(), also=config.parser_for),
            size_tokens=chosen_number(config, "parser_page_size", options.chunk_size),
            overlap_chars=chosen_number(config, "chunk_overlap", options.chunk_overlap),
            searchers=chosen_searchers(config),
            on_progress=line,
        )
        return _run_build(index, work, searchers, options, line)


def _add(options: argparse.Namespace) -> int:
    return _change_files(KnowledgeIndex.add, options)


def _remove(options: argparse.Namespace) -> int:
    where = read_where(options.where)
    if not options.files and where is None:
        raise ConfigError("specify the files to remove, or select them with --where")
    return _change_files(partial(KnowledgeIndex.remove, where=where), options)


def _set(options: argparse.Namespace) -> int:
    index = KnowledgeIndex(options.name)
    values = read_values(options.values)
    count = sync.run(index.set_metadata(values, where=read_where(options.where) or {}))
    if options.json:
        say_json({"documents": count})
    else:
        names = ", ".join(map(shown_path, options.values))
        say(f"{shown_path(options.name)}: set {names} on {format_count(count, 'document')}")
    return 0


def _change_files(change: Callable[..., Coroutine[Any, Any, Built]], options: argparse.Namespace) -> int:
    index, config = KnowledgeIndex(options.name), read_config(options)
    searchers = _make_searchers(_recorded_searchers(index, options))
    with ProgressLine() as line:
        work = change(
            index,
            options.files,
            reader=config.reader(default_host(), kept_chars=1),
            why_not=why_nothing_reads(default_host(), also=config.parser_for),
            on_progress=line,
        )
        return _run_build(index, work, searchers, options, line)


def _run_build(
    index: KnowledgeIndex,
    work: Coroutine[Any, Any, Built],
    searchers: Mapping[str, Searcher],
    options: argparse.Namespace,
    line: ProgressLine,
) -> int:
    try:
        built, problems = sync.run(_build_and_prepare(index, work, searchers, line))
    except KeyboardInterrupt:
        _say_stopped()
        raise
    finally:
        _record_own_index(index, options)
    _report(index, built, problems, options, line)
    return int(bool(problems))


async def _build_and_prepare(
    index: KnowledgeIndex, work: Coroutine[Any, Any, Built], searchers: Mapping[str, Searcher], line: ProgressLine
) -> tuple[Built, list[str]]:
    built = await work
    return built, await _prepare(index, searchers, line)


def _say_stopped() -> None:
    sys.stderr.write("\n")
    warn("stopped. The documents and vectors so far are kept and can be searched; the next build continues from here")


def _record_own_index(index: KnowledgeIndex, options: argparse.Namespace) -> None:
    """Record consent to an index given by path: it needs none until it is replaced, since the user built it."""
    if _has_path(options) and index.exists:
        request = _request(index, index.searchers())
        if request.effects:
            record_consent(request)


def _report(
    index: KnowledgeIndex, built: Built, problems: Sequence[str], options: argparse.Namespace, line: ProgressLine
) -> None:
    line.clear()
    for failure in describe_failures(built, problems):
        warn(failure)
    if options.work is _remove and not built.removed:
        warn("the index contains no matching documents, so none were removed")
    if options.json:
        say_json(build_facts(index, built))
    else:
        facts = index.facts()
        outdated = f" ({built.outdated} because parsers or settings changed)" if built.outdated else ""
        say(
            f"{shown_path(options.name)}: {built.read} read{outdated}, {built.unchanged} unchanged, "
            f"{built.removed} removed, {len(built.failed)} failed, {len(built.skipped)} skipped; "
            f"it contains {describe_size(facts)}"
        )
    sys.stdout.flush()  # `watch` keeps running


def _watch(options: argparse.Namespace) -> int:
    """Build the index, then rebuild it whenever its files change. Ctrl-C exits with 0 unless a build is in progress."""
    index, config = KnowledgeIndex(options.name), read_config(options)
    if options.files or not index.exists:
        code = _build(argparse.Namespace(**{"chunk_size": None, "chunk_overlap": None, **vars(options)}))
        if code:
            return code
    searchers = _make_searchers(_recorded_searchers(index, options))
    why_not = why_nothing_reads(default_host(), also=config.parser_for)
    is_building = False
    reported = ""

    async def build() -> bool:
        nonlocal is_building, reported
        is_building = True
        reader = config.reader(default_host(), kept_chars=1)
        with ProgressLine() as line:
            work = index.build(reader=reader, why_not=why_not, on_progress=line)
            try:
                built, problems = await _build_and_prepare(index, work, searchers, line)
            except JackfieldError as error:  # unlike Ctrl-C, which is reported below while `is_building`
                is_building = False
                # `watch` tries again after a ConfigError if the index exists, and ends with any other error.
                if isinstance(error, ConfigError) and index.exists and str(error) != reported:
                    reported = str(error)
                    line.clear()
                    warn(f"{reported}. The watch continues and tries again")
                raise
            if built.read or built.removed or problems or built.failed:
                _report(index, built, problems, options, line)
        is_building, reported = False, ""
        return not problems

    try:
        sync.run(watch(index, build, interval_s=options.interval, why_not=why_not))
    except KeyboardInterrupt:
        if is_building:
            _say_stopped()
            raise
    finally:
        _record_own_index(index, options)
    return 0


def _make_searchers(chosen: Mapping[str, Mapping[str, object]]) -> dict[str, Searcher]:
    """Create the searchers to prepare before any file is read, so that wrong settings fail early."""
    try:
        return {
            name: make_searcher(name, settings, host=default_host())
            for name, settings in (chosen or _default_searchers(RAGConfig())).items()
        }
    except PluginNotFoundError:
        if chosen:
            raise
        return {}  # the default searcher is optional


def _default_searchers(config: RAGConfig) -> Mapping[str, Mapping[str, object]]:
    return config.with_included_model(default_host()).searchers


async def _prepare(index: KnowledgeIndex, searchers: Mapping[str, Searcher], line: ProgressLine) -> list[str]:
    """Let the searchers index the documents now rather than at the first search; return any problems."""
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


# --- consent ---


def _recorded_searchers(
    index: KnowledgeIndex, options: argparse.Namespace, *, reads_files: bool = True
) -> Mapping[str, Mapping[str, object]]:
    """Return the searchers recorded in an index, if the user built it here or agrees to its effects.

    Args:
        index: The index, which may not exist yet.
        options: The command's options.
        reads_files: True if the command reads the index's files again, in which case their names need consent as well.

    Raises:
        ConsentNeededError: The index came from elsewhere, and the user has not agreed to its effects.
    """
    if not index.exists:
        return {}
    searchers = index.searchers()
    if _has_path(options):
        request = _request(index, searchers)
        if reads_files or _request(index, searchers, names=()).effects:
            with_consent(lambda: require_consent(request, trust=options.trust))
    return searchers


def _request(
    index: KnowledgeIndex, searchers: Mapping[str, Mapping[str, object]], *, names: Iterable[str] | None = None
) -> Request:
    """Return the effects of an index that need consent. Documents are only text and have no effects."""
    names = [step.name for step in index.names() if step.adds] if names is None else names
    table = {
        "rag_searchers": [{**settings, "name": name} for name, settings in searchers.items()],
        "files": list(names),
    }
    return request_for(index.folder / FILE, json.dumps(table, sort_keys=True), table, read_as="index")


def _has_path(options: argparse.Namespace) -> bool:
    """Return True if the index is given by path; named indexes are stored in the user's own data directory."""
    return "/" in options.name or os.sep in options.name


# --- reading ---


def _list(options: argparse.Namespace) -> int:
    indexes = [KnowledgeIndex(name) for name in index_names()]
    if options.json:
        say_json([index_facts(index) for index in indexes])
        return 0
    for index in indexes:
        say(summarize_index(index))
    if not indexes:
        say("There is no index yet. To build one, run: jackfield index build NAME FILES")
    return 0


def _info(options: argparse.Namespace) -> int:
    index = KnowledgeIndex(options.name)
    if options.json:
        say_json(all_facts(index))
        return 0
    for line in describe_index(index, options.name):
        say(line)
    _warn_if_outdated(index)
    return 0


def _warn_if_outdated(index: KnowledgeIndex) -> None:
    outdated = index.why_outdated(default_host())
    if outdated:
        warn(outdated)


def _search(options: argparse.Namespace) -> int:
    index, config = KnowledgeIndex(options.name), read_config(options)
    corpus = index.corpus()
    _warn_if_outdated(index)
    chosen = chosen_searchers(config) or _recorded_searchers(index, options, reads_files=False)
    chosen = chosen or _default_searchers(config)
    with failures_noted() as failures:
        filters = read_where(options.where) or config.where
        where = Where.parse(filters) if filters else None
        hits = sync.run(_find(" ".join(options.query), corpus, config, chosen, limit=options.limit, where=where))
    for failure in failures:
        warn(failure)
    if options.json:
        say_json([hit_facts(hit) for hit in hits])
        return 0
    for number, hit in enumerate(hits, start=1):
        for line in describe_hit(number, hit):
            say(line)
    if not hits:
        say("nothing found")
    return 0


async def _find(
    query: str,
    corpus: Corpus,
    config: RAGConfig,
    chosen: Mapping[str, Mapping[str, object]],
    *,
    limit: int,
    where: Where | None,
) -> list[Hit]:
    searchers = {name: make_searcher(name, settings, host=default_host()) for name, settings in chosen.items()}
    # A hit ranked low by one searcher may rank high after fusion.
    each = limit if len(searchers) == 1 else max(limit, _FUSED_HITS)
    try:
        rankings = await ask_all(
            {
                name: partial(searcher.search, query, corpus, limit=each, where=where)
                for name, searcher in searchers.items()
            }
        )
    finally:
        for searcher in searchers.values():
            await searcher.aclose()
    if len(searchers) == 1:
        (ranking,) = rankings.values()
        return ranking
    return fuse(rankings, weights=config.weights, k=config.fusion_k, by=config.fusion)[:limit]
