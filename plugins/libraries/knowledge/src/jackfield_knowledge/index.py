"""A document index on disk, kept in sync with the files it was built from."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from jackfield.config import without_secrets
from jackfield.errors import ConfigError, DocParserError
from jackfield.messages import basename_of
from jackfield.plugins import Plugins
from jackfield.retrieval import Where, check_metadata, document_values, kinds_in, shown_path
from jackfield.suggestions import suggest
from jackfield.sync import in_worker
from jackfield_documents import (
    DocumentReader,
    Expanded,
    Fingerprint,
    Skipped,
    chunk_document,
    expand,
    file_signature,
    has_scheme,
    is_settled,
    is_url,
    stated_metadata,
)
from jackfield_documents.chunking import CUT_VERSION
from jackfield_documents.expanding import WhyNot
from jackfield_documents.parsing import processes_at_once
from jackfield_knowledge.corpus import KeptCorpus
from jackfield_knowledge.places import index_folder, index_names
from jackfield_knowledge.store import Draft, IndexFacts, NewDocument, Step, Store, StoredDocument

MOST_FILES = 1_000_000


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a build.

    Attributes:
        done, total: The number of files checked so far, and in total.
        location: The file that was checked last.
        is_new: True if that file had to be parsed.
    """

    done: int
    total: int
    location: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a build.

    Attributes:
        read: The number of files that were parsed.
        unchanged: The number of unchanged files.
        removed: The number of files no longer in the index.
        failed: The reason for each unreadable file, by path. All others are in the index.
        skipped: The files that were found but left out.
        missing: Names that no longer match anything.
        outdated: The number of files in `read` that were parsed again although their content is unchanged, because the
            parser, a program it uses, or the way of splitting texts has changed.
    """

    read: int
    unchanged: int
    removed: int
    failed: Mapping[str, str]
    skipped: tuple[Skipped, ...]
    missing: tuple[str, ...]
    outdated: int = 0


class KnowledgeIndex:
    """An index, given by name or path. Any number of processes may search it while one changes it.

    Args:
        name: See `index_folder`.

    Raises:
        ConfigError: The name is invalid.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._store = Store(index_folder(name), name)
        self._corpus: KeptCorpus | None = None

    @property
    def folder(self) -> Path:
        """The index's folder."""
        return self._store.folder

    @property
    def exists(self) -> bool:
        """True if the index exists."""
        return self._store.exists

    # --- contents; these block ---

    def facts(self) -> IndexFacts:
        """Return the index's properties.

        Raises:
            ConfigError: There is no such index, or its file cannot be used.
        """
        self._check_exists()
        return self._store.facts()

    def names(self) -> list[Step]:
        """Return the names that were added and removed, in order.

        Raises:
            ConfigError: See `facts`.
        """
        self._check_exists()
        return self._store.steps()

    def searchers(self) -> dict[str, dict[str, object]]:
        """Return the searchers the index was built for, by name, with their settings. Empty if none were named.

        Raises:
            ConfigError: See `facts`.
        """
        self._check_exists()
        return self._store.searchers()

    def documents(self) -> list[StoredDocument]:
        """Return the index's documents, sorted by location.

        Raises:
            ConfigError: See `facts`.
        """
        return self._store.documents(self.facts().generation)

    def select(self, where: Mapping[str, object]) -> list[StoredDocument]:
        """Return the documents that match a filter, sorted by location.

        Raises:
            ConfigError: See `facts`. Also raised if the filter does not fit the documents, or selects parts of
                documents.
        """
        facts = self.facts()
        parsed = Where.parse(where)
        if not parsed.is_of_documents:
            raise ConfigError("where: page and heading select parts of documents; use metadata of whole documents")
        rules = facts.metadata_rules
        documents = [(one, one.values(rules)) for one in self._store.documents(facts.generation)]
        parsed = parsed.check(kinds_in(values for _, values in documents))
        return [one for one, values in documents if parsed.matches(document_values(one.location, one.title, values))]

    def corpus(self) -> KeptCorpus:
        """Return the current content for searching. Returns the same object as long as nothing changes.

        Raises:
            ConfigError: See `facts`.
        """
        facts = self.facts()
        if self._corpus is None or self._corpus.facts != facts:
            self._corpus = KeptCorpus(self._store, facts)
        return self._corpus

    def why_outdated(self, host: Plugins) -> str:
        """Return the reason why a build would parse documents again although their files are unchanged, or ''.

        Parsers that are no longer installed are ignored, and so are parser settings.

        Raises:
            ConfigError: See `facts`.
        """
        facts = self.facts()
        installed = {row.address: row.version for row in host.policy.rows("parser")}
        cut = _cut(facts)
        reasons = set()
        for parser, version, way in json.loads(facts.recipes):
            if installed.get(parser, version) != version:
                reasons.add(f"{parser} {version} is now {installed[parser]}")
            if way != cut:
                reasons.add("texts are now split differently")
        if not reasons:
            return ""
        name = shown_path(self.name)
        return (
            f"index {name!r} is outdated: {', '.join(sorted(reasons))}. To update it, run: jackfield index build {name}"
        )

    def fingerprint(self, why_not: WhyNot | None = None) -> str:
        """Return a text that changes with the files that the index's names match. No file is read.

        Args:
            why_not: Decides which files in folders are left out; see `expand`.

        Raises:
            ConfigError: See `facts`.
        """
        digest = hashlib.sha256()
        for path in _files_of(self.names(), why_not).files:
            with suppress(DocParserError):  # a URL, or a file that was deleted a moment ago
                digest.update(f"{path}\0{file_signature(path)}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def close(self) -> None:
        """Close the index's file, which is reopened when needed."""
        self._store.close()

    # --- changes ---

    async def build(
        self,
        names: Iterable[str] = (),
        *,
        reader: DocumentReader,
        why_not: WhyNot | None = None,
        size_tokens: int | None = None,
        overlap_chars: int | None = None,
        searchers: Mapping[str, Mapping[str, object]] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Built:
        """Index exactly the given files, or without names, update the files the index already has.

        Only changed files are parsed. Searches see the previous content until the build is complete. An interrupted
        build, even by `kill -9`, retains the documents it has read, and the next build continues from there.

        Args:
            names: Files, folders, patterns and URLs; see `expand`.
            reader: Reads the files.
            why_not: Decides which files in folders are left out; see `expand`.
            size_tokens, overlap_chars: The parameters for splitting documents, as in `chunk_document`. If None, they
                stay as before. A change splits all documents again.
            searchers: The searchers that use the index, by name, with their settings. If None, they stay as before. The
                build only records them; to prepare a searcher, pass `corpus` to its `prepare`.
            on_progress: Called after each file, in this task.

        Raises:
            ConfigError: A name matches nothing, the index is unusable or being built elsewhere, or a searcher's
                settings contain a secret.
        """
        _check_without_secrets(searchers or {})
        steps = [Step(name, True) for name in _absolute(names)]
        if not steps:
            self._check_exists()
        else:
            await in_worker(_check_found, steps)
        sizes = _Sizes(size_tokens, overlap_chars)
        return await self._change(lambda old: steps or old, sizes, reader, why_not, on_progress, searchers=searchers)

    async def add(
        self,
        names: Iterable[str],
        *,
        reader: DocumentReader,
        why_not: WhyNot | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Built:
        """Add files and update all others, like `build`."""
        steps = [Step(name, True) for name in _absolute(names)]
        await in_worker(_check_found, steps)
        return await self._change(lambda old: _followed(old, steps), _Sizes(), reader, why_not, on_progress)

    async def remove(
        self,
        names: Iterable[str] = (),
        *,
        where: Mapping[str, object] | None = None,
        reader: DocumentReader,
        why_not: WhyNot | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Built:
        """Remove files, including those from an added folder, and update all others.

        Args:
            names: The files, folders and patterns.
            where: A filter for further documents to remove; see `Where.parse`.
            reader, why_not, on_progress: See `build`.

        Raises:
            ConfigError: See `build`. Also raised if a name matches nothing in the index, or the filter does not fit the
                documents.
        """
        self._check_exists()
        removed = _absolute(names)
        await in_worker(self._check_contains, removed)
        selected = [] if where is None else await in_worker(self.select, where)
        steps = [Step(name, False) for name in [*removed, *(one.location for one in selected)]]
        return await self._change(lambda old: _followed(old, steps), _Sizes(), reader, why_not, on_progress)

    async def set_metadata(self, values: Mapping[str, object], *, where: Mapping[str, object]) -> int:
        """Set values on the documents that match a filter, now and after each build. No document is read again.

        Args:
            values: The values by which the documents can then be filtered.
            where: The filter.

        Returns:
            The number of documents that currently match.

        Raises:
            ConfigError: See `select`. Also raised if a value is invalid, or the index is being built elsewhere.
        """
        checked = check_metadata(values)
        selected = await in_worker(self.select, where)
        async with self._building() as draft:
            facts = await in_worker(self._store.facts)
            plain = json.loads(json.dumps(where, default=lambda day: day.isoformat()))
            rules = [rule for rule in json.loads(facts.rules) if rule[0] != plain or rule[1].keys() - checked.keys()]
            await in_worker(draft.set_rules, json.dumps([*rules, [plain, checked]]))
        return len(selected)

    async def _change(
        self,
        following: Callable[[list[Step]], list[Step]],
        sizes: _Sizes,
        reader: DocumentReader,
        why_not: WhyNot | None,
        on_progress: Callable[[Progress], None] | None,
        *,
        searchers: Mapping[str, Mapping[str, object]] | None = None,
    ) -> Built:
        async with self._building() as draft:
            steps = following(await in_worker(self._store.steps))
            facts = sizes.of(await in_worker(self._store.facts))
            await in_worker(draft.set_steps, steps, size_tokens=facts.size_tokens, overlap_chars=facts.overlap_chars)
            if searchers is not None:
                await in_worker(draft.set_searchers, searchers)
            found = await in_worker(_files_of, steps, why_not)
            build = _Build(draft, reader, facts, on_progress)
            return await build.run(found)

    @asynccontextmanager
    async def _building(self) -> AsyncIterator[Draft]:
        right = self._store.building()
        draft = await in_worker(right.__enter__)
        try:
            yield draft
        finally:
            await in_worker(right.__exit__, None, None, None)

    def _check_exists(self) -> None:
        if not self._store.exists:
            known = ", ".join(index_names()) or "none"
            name = shown_path(self.name)
            raise ConfigError(
                f"no index named {name!r}; available: {known}. To create it, run: jackfield index build {name} FILES"
            )

    def _check_contains(self, names: Sequence[str]) -> None:
        """Reject a name that matches no document, no file of an added folder, and no name of the index."""
        steps = self._store.steps()
        files = {*_files_of(steps, why_not=None).files, *(one.location for one in self.documents())}
        for name in names:
            matches = {*expand([name], most=MOST_FILES).files}
            is_known = any(_is_inside(step.name, name) for step in steps)
            if not is_known and len(_without(files, matches, name)) == len(files):
                shown, near = _relative(name), suggest(_relative(name), {_relative(file) for file in files})
                raise ConfigError(f"index {shown_path(self.name)!r} does not contain {shown}{near}")


def _relative(path: str) -> str:
    """Return a path as users write it: relative to the working directory if possible, and safe to print."""
    return shown_path(path.removeprefix(f"{os.getcwd()}{os.sep}"))  # noqa: PTH109 - paths are text here


@dataclass(frozen=True, slots=True)
class _Sizes:
    """New parameters for splitting documents, or None to leave them unchanged."""

    size_tokens: int | None = None
    overlap_chars: int | None = None

    def of(self, facts: IndexFacts) -> IndexFacts:
        """Return the index's properties with these values replaced."""
        size = facts.size_tokens if self.size_tokens is None else self.size_tokens
        overlap = facts.overlap_chars if self.overlap_chars is None else self.overlap_chars
        return replace(facts, size_tokens=size, overlap_chars=overlap)


def _cut(facts: IndexFacts) -> str:
    """Return an identifier for the way documents are split, which includes the version of the splitting code."""
    return f"{metadata.version('jackfield-documents')} {CUT_VERSION} {facts.size_tokens} {facts.overlap_chars}"


class _Build:
    """One pass over the files."""

    def __init__(
        self,
        draft: Draft,
        reader: DocumentReader,
        facts: IndexFacts,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._draft = draft
        self._reader = reader
        self._size, self._overlap = facts.size_tokens, facts.overlap_chars
        self._on_progress = on_progress
        self._parsers = reader.parsers()
        self._cut = _cut(facts)
        self._failed: dict[str, str] = {}
        self._read = self._done = self._outdated = 0

    async def run(self, found: Expanded) -> Built:
        stored = await in_worker(self._draft.documents)
        files = set(found.files)
        gone = [location for location in stored if location not in files]
        await in_worker(self._draft.retire, gone)
        changed = await in_worker(self._changed, found.files, stored)
        self._done = len(found.files) - len(changed)
        await _for_each(changed, lambda path: self._follow(path, stored.get(path), len(found.files)))
        await in_worker(self._draft.publish)
        unchanged = len(found.files) - self._read - len(self._failed)
        return Built(self._read, unchanged, len(gone), self._failed, found.skipped, found.missing, self._outdated)

    def _changed(self, files: Sequence[str], stored: Mapping[str, StoredDocument]) -> list[str]:
        """Return the files that may have changed. All are checked in one go, because most have not."""
        return [path for path in files if path not in stored or not self._is_same(path, stored[path])]

    def _is_same(self, path: str, stored: StoredDocument) -> bool:
        if not stored.signature or stored.parsers != self._parsers or not stored.recipe.endswith(f"\n{self._cut}"):
            return False
        try:
            return stored.signature == _signature(path)
        except DocParserError:
            return False

    async def _follow(self, path: str, stored: StoredDocument | None, total: int) -> None:
        is_new = False
        try:
            is_new = await self._read_if_changed(path, stored)
        except DocParserError as error:
            self._failed[path] = str(error)
            if _replaces(stored, path, str(error)):
                await in_worker(self._draft.put, path, NewDocument(error=str(error)))
        self._read += is_new
        self._done += 1
        if self._on_progress:
            self._on_progress(Progress(self._done, total, path, is_new))

    async def _read_if_changed(self, path: str, stored: StoredDocument | None) -> bool:
        """Read a file if its content or the way of reading it has changed, and return True if so."""
        signature = await in_worker(_signature, path)
        mark = await self._reader.fingerprint(path)
        if stored and stored.recipe in (self._recipe(mark), self._recipe(mark.without_parts)):
            await in_worker(self._draft.touch, stored, signature=signature, parsers=self._parsers)
            return False
        document = await self._reader.read(path)
        if document.content_hash != mark.content_hash:
            raise DocParserError(f"{shown_path(basename_of(path))} changed while it was being read: rebuild the index")
        chunks = await in_worker(chunk_document, document, size_tokens=self._size, overlap_chars=self._overlap)
        stated = stated_metadata(document)
        recipe = self._recipe(mark.of(document))
        new = NewDocument(signature, self._parsers, recipe, document.title, chunks=chunks, metadata=stated)
        await in_worker(self._draft.put, path, new)
        self._outdated += stored is not None and stored.recipe.startswith(f"{mark.content_hash}\n")
        return True

    def _recipe(self, mark: Fingerprint) -> str:
        """Return a text that changes with everything a document's chunks depend on."""
        return "\n".join((mark.content_hash, mark.parser, mark.of_parts, self._cut))


async def _for_each(paths: Iterable[str], work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Process paths, a few in parallel. On return, for whatever reason, none is still being processed."""
    waiting = iter(paths)

    async def worker() -> None:
        for path in waiting:
            await work(path)

    # Some are read while others are parsed.
    tasks = [asyncio.create_task(worker()) for _ in range(processes_at_once() + 2)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _replaces(stored: StoredDocument | None, path: str, error: str) -> bool:
    """Return True if an error replaces the stored document.

    A document that a server currently cannot deliver stays as it was. An unreadable file may have new content.
    """
    if stored is None or not stored.error:
        return stored is None or not is_url(path)
    return stored.error != error


def _signature(path: str) -> str:
    """Return a text that changes with the file, or '' for a URL, or if the file changed too recently to tell."""
    if is_url(path):
        return ""
    signature = file_signature(path)
    return " ".join(map(str, signature)) if is_settled(signature) else ""


# --- names ------------------------------------------------------------------------------------------------------------


def _absolute(names: Iterable[str]) -> list[str]:
    """Return names that mean the same in any working directory."""
    absolute = []
    for name in names:
        if is_url(name):
            absolute.append(name)
            continue
        if has_scheme(name):
            raise ConfigError(f"{shown_path(name)} cannot be indexed: only files, folders, patterns and URLs can")
        absolute.append(os.path.abspath(os.path.expanduser(name)))  # noqa: PTH100, PTH111 - links stay as they are named
    return list(dict.fromkeys(absolute))


def _check_without_secrets(searchers: Mapping[str, Mapping[str, object]]) -> None:
    for name, settings in searchers.items():
        try:
            plain = json.loads(json.dumps(settings))
        except TypeError as error:
            raise ConfigError(f"searcher {name!r}: its settings cannot be stored as JSON: {error}") from error
        if without_secrets(plain) != plain:
            raise ConfigError(
                f"searcher {name!r}: an index must not store secrets, but these settings contain one: remove it, "
                f"and set it as an environment variable, such as OPENAI_API_KEY"
            )


def _check_found(steps: Sequence[Step]) -> None:
    missing = expand([step.name for step in steps], most=MOST_FILES).missing
    if missing:
        raise ConfigError(
            f"no file or folder has this name or matches this pattern: {', '.join(map(shown_path, missing))}"
        )


def _followed(old: Sequence[Step], new: Sequence[Step]) -> list[Step]:
    """Return the old steps followed by the new ones, without steps that no longer have any effect."""
    steps = list(old)
    for one in new:
        steps = [step for step in steps if not _is_inside(step.name, one.name)]
        if one.adds or steps:
            steps.append(one)
    return steps


def _is_inside(name: str, other: str) -> bool:
    """Return True if a name equals the other or lies in its folder. A URL is not in a folder."""
    return name == other or (name.startswith(other + os.sep) and not is_url(other))


def _files_of(steps: Sequence[Step], why_not: WhyNot | None) -> Expanded:
    """Return the sorted files that remain after all names were added and removed in order."""
    files: dict[str, None] = {}
    skipped: dict[str, Skipped] = {}
    missing: list[str] = []
    for step in steps:
        found = expand([step.name], why_not=why_not if step.adds else None, most=MOST_FILES)
        if step.adds:
            files.update(dict.fromkeys(found.files))
            skipped.update((one.path, one) for one in found.skipped)
            missing += found.missing
        else:
            files = _without(files, {*found.files}, step.name)
    left_out = tuple(one for path, one in skipped.items() if path not in files)
    return Expanded(tuple(sorted(files)), left_out, tuple(missing))


def _without(files: Iterable[str], matches: Set[str], name: str) -> dict[str, None]:
    """Return the files except for the matches, and those in the named folder."""
    return {path: None for path in files if path not in matches and not _is_inside(path, name)}
