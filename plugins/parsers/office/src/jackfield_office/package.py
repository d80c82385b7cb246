"""Read Office Open XML packages: parts, relationships and metadata."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from jackfield.errors import DocParserError
from jackfield_documents import Archive
from jackfield_markup import Element, xml_tree

R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
LEVELS = {str(level): level for level in range(9)}
"""The valid levels of outlines and lists, by their notation in a file."""

_CORE = "docProps/core.xml"
_LONGEST_LINK = 300  # characters
_STATED = {
    "creator": "author",
    "created": "created",
    "modified": "modified",
    "subject": "subject",
    "keywords": "keywords",
}
# The strict variant of the standard uses different namespaces for the same elements.
_STRICT = b"http://purl.oclc.org/ooxml/"
_NAMES = (
    (b"wordprocessingml/main", b"wordprocessingml/2006/main"),
    (b"presentationml/main", b"presentationml/2006/main"),
    (b"drawingml/main", b"drawingml/2006/main"),
    (b"drawingml/chart", b"drawingml/2006/chart"),
    (b"officeDocument/relationships", b"officeDocument/2006/relationships"),
)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship from one part to another part or to a URL."""

    kind: str
    target: str
    is_external: bool


def links_in(relations: Mapping[str, Relation]) -> dict[str, str]:
    """Return a part's external URLs by relationship id, escaped for Markdown. Overlong URLs are dropped."""
    return {
        key: relation.target.replace("(", "%28").replace(")", "%29")
        for key, relation in relations.items()
        if relation.is_external and len(relation.target) <= _LONGEST_LINK
    }


class Package:
    """An office file. `unread` lists the parts that `part_or_none` could not read.

    Raises:
        DocParserError: The archive is unreadable as described in `Archive`, or the file is of another kind.
    """

    def __init__(self, data: bytes, *, source: str, kind: str, main: str) -> None:
        self.source = source
        self.unread: list[str] = []
        self._archive = Archive(data, source=source)
        self.main = self._main(main)
        if not self.main:
            raise DocParserError(f"{source} is not a {kind} file: its extension may be wrong")

    @property
    def names(self) -> Collection[str]:
        """The names of all parts."""
        return self._archive.names

    def read(self, name: str) -> bytes:
        """Return the content of a part.

        Raises:
            DocParserError: The part is missing or damaged.
        """
        return self._archive.read(name)

    def part(self, name: str) -> Element:
        """Return a part as an XML tree.

        Raises:
            DocParserError: The part is missing or damaged.
        """
        data = self._archive.read(name)
        if _STRICT in data[:4096]:
            for strict, usual in _NAMES:
                data = data.replace(_STRICT + strict, b"http://schemas.openxmlformats.org/" + usual)
        return xml_tree(data, source=self.source)

    def part_or_none(self, name: str, meaning: str) -> Element | None:
        """Return a part as an XML tree, or None if it is missing or damaged. Damaged parts are added to `unread`."""
        if name not in self._archive.names:
            return None
        try:
            return self.part(name)
        except DocParserError:
            self.unread.append(meaning)
            return None

    def part_beside(self, name: str, meaning: str) -> Element | None:
        """Like `part_or_none`, but the name is relative to the main part's folder."""
        return self.part_or_none(posixpath.join(posixpath.dirname(self.main), name), meaning)

    def relations(self, name: str) -> Mapping[str, Relation]:
        """Return a part's relationships by id."""
        folder, file = posixpath.split(name)
        root = self.part_or_none(posixpath.join(folder, "_rels", f"{file}.rels"), f"the list of the parts of {file}")
        return {} if root is None else {entry.get("Id", ""): _relation(entry, folder) for entry in root}

    def stated(self) -> tuple[str, dict[str, Any]]:
        """Return the title and the metadata: `author`, `created`, `modified`, `subject`, `keywords` and `unread`."""
        root = self.part_or_none(_CORE, "its title and author")
        entries = () if root is None else root
        texts = {entry.tag.rpartition("}")[2]: " ".join((entry.text or "").split()) for entry in entries}
        unread = {"unread": list(dict.fromkeys(self.unread))} if self.unread else {}
        return texts.get("title", ""), {**_known(texts), **unread}

    def _main(self, main: str) -> str:
        """Return the name of the main part, or '' if it does not have the prefix of this kind of file."""
        stated = (relation.target for relation in self.relations("").values() if relation.kind == "officeDocument")
        name = next(filter(self._archive.names.__contains__, stated), "")
        return name if name.startswith(main) else ""


def _known(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the supported metadata under our names."""
    return {_STATED[name]: text for name, text in texts.items() if text and name in _STATED}


def _relation(entry: Element, folder: str) -> Relation:
    kind, target = entry.get("Type", "").rpartition("/")[2], entry.get("Target", "")
    is_external = entry.get("TargetMode") == "External"
    return Relation(kind, target if is_external else _path(folder, target), is_external)


@lru_cache(maxsize=1000)  # most slides refer to the same few layouts
def _path(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")
