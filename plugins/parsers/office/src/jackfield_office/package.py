"""Office Open XML: the parts of a package, how they refer to each other, and what it says of itself."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from jackfield.errors import DocParserError
from jackfield_documents import Archive
from jackfield_markup import Element, xml_tree

R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_CORE = "docProps/core.xml"
_STATED = {
    "creator": "author",
    "created": "created",
    "modified": "modified",
    "subject": "subject",
    "keywords": "keywords",
}
# The strict form of the standard has other names for the same.
_STRICT = b"http://purl.oclc.org/ooxml/"
_NAMES = (
    (b"wordprocessingml/main", b"wordprocessingml/2006/main"),
    (b"presentationml/main", b"presentationml/2006/main"),
    (b"drawingml/main", b"drawingml/2006/main"),
    (b"officeDocument/relationships", b"officeDocument/2006/relationships"),
)


@dataclass(frozen=True, slots=True)
class Relation:
    """Where a part refers to: another part, or a URL."""

    kind: str
    target: str
    is_external: bool


class Package:
    """The parts of an office file.

    Raises:
        DocParserError: See `Archive`; or it is not an office file of this kind.
    """

    def __init__(self, data: bytes, *, source: str, kind: str, main: str) -> None:
        self.source = source
        self._archive = Archive(data, source=source)
        self.main = self._main(main)
        if not self.main:
            raise DocParserError(f"{source} is not a {kind} file: its extension may be wrong")

    @property
    def names(self) -> Collection[str]:
        """The names of its parts."""
        return self._archive.names

    def read(self, name: str) -> bytes:
        """A part as bytes.

        Raises:
            DocParserError: It is missing or damaged.
        """
        return self._archive.read(name)

    def part(self, name: str) -> Element:
        """A part as a tree.

        Raises:
            DocParserError: It is missing or damaged.
        """
        data = self._archive.read(name)
        if _STRICT in data[:4096]:
            for strict, usual in _NAMES:
                data = data.replace(_STRICT + strict, b"http://schemas.openxmlformats.org/" + usual)
        return xml_tree(data, source=self.source)

    def part_beside(self, name: str) -> Element | None:
        """A part next to the main one, or None."""
        path = posixpath.join(posixpath.dirname(self.main), name)
        return self.part(path) if path in self._archive.names else None

    def relations(self, name: str) -> Mapping[str, Relation]:
        """What a part refers to, by the ids that it uses."""
        folder, file = posixpath.split(name)
        path = posixpath.join(folder, "_rels", f"{file}.rels")
        if path not in self._archive.names:
            return {}
        found = {}
        for entry in self.part(path):
            target = entry.get("Target") or ""
            is_external = entry.get("TargetMode") == "External"
            if not is_external:
                target = _path(folder, target)
            kind = (entry.get("Type") or "").rpartition("/")[2]
            found[entry.get("Id") or ""] = Relation(kind, target, is_external)
        return found

    def stated(self) -> tuple[str, dict[str, str]]:
        """Its title, and what else it says of itself: `author`, `created`, `modified`, `subject`, `keywords`."""
        title, stated = "", {}
        if _CORE in self._archive.names:
            for entry in self.part(_CORE):
                name = entry.tag.rpartition("}")[2]
                text = " ".join((entry.text or "").split())
                if name == "title":
                    title = text
                elif name in _STATED and text:
                    stated[_STATED[name]] = text
        return title, stated

    def _main(self, main: str) -> str:
        """The part that the others hang on, if its name begins as it does in a file of this kind."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and relation.target in self._archive.names:
                return relation.target if relation.target.startswith(main) else ""
        return ""


@lru_cache(maxsize=1000)  # most slides refer to the same few layouts
def _path(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")
