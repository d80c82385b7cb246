"""Read OpenDocument files, zipped or as a single XML file: content, styles and metadata."""

from __future__ import annotations

import posixpath
import re
from typing import Literal

from jackfield.errors import DocParserError
from jackfield_documents import Archive
from jackfield_markup import Element, xml_tree
from jackfield_opendocument.names import DC, META, OFFICE
from jackfield_opendocument.styles import Styles

_MANIFEST = "META-INF/manifest.xml"
_ENCRYPTED = b"encryption-data"
# Pictures in flat files: libxml2 refuses texts of more than 10 MB.
_PICTURE = re.compile(rb"<office:binary-data>[^<]*+</office:binary-data>")
_STATED = {
    META + "initial-creator": "author",
    META + "creation-date": "created",
    DC + "date": "modified",
    DC + "subject": "subject",
    META + "keyword": "keywords",
    DC + "language": "language",
}


class Package:
    """An OpenDocument file.

    Attributes:
        source: The file's name in errors.
        body: The element with the content.
        styles: The paragraph and list styles.
        unread: Descriptions of parts that could not be read.

    Raises:
        DocParserError: The file is empty, encrypted, damaged, too large when unpacked, or of another kind.
    """

    def __init__(self, data: bytes, *, source: str, kind: Literal["text", "spreadsheet", "presentation"]) -> None:
        self.source = source
        self.unread: list[str] = []
        self._archive = None if _is_flat(data) else Archive(data, source=source)
        root = self._root(data, kind)
        body = root.find(f"{OFFICE}body/{OFFICE}{kind}")
        if body is None:
            raise self._wrong_kind(kind)
        self.body: Element = body
        self.styles = Styles([root, *self._optional("styles.xml", "its styles")])
        self._meta = next(iter(self._optional("meta.xml", "its metadata")), root).find(OFFICE + "meta")

    def object_root(self, element: Element, reference: str) -> Element | None:
        """Return the root of an embedded object, such as a chart.

        None if the object cannot be read, in which case it is added to `unread`.
        """
        if len(element):  # of a flat file
            return element[0]
        name = posixpath.normpath(reference.removeprefix("./")) + "/content.xml"
        if self._archive is not None:
            try:
                return xml_tree(self._archive.read(name), source=self.source)
            except DocParserError:  # the text around it is still worth reading
                pass
        self.unread.append(f"the object {reference[:100]!r}")
        return None

    def metadata(self) -> tuple[str, dict[str, object]]:
        """Return the title and the metadata, including `unread` if any part could not be read."""
        texts: dict[str, list[str]] = {}
        for entry in () if self._meta is None else self._meta:
            if text := " ".join("".join(entry.itertext()).split()):
                texts.setdefault(entry.tag, []).append(text)
        title = " ".join(texts.get(DC + "title", ()))
        if DC + "creator" in texts:  # the person who saved it last
            texts.setdefault(META + "initial-creator", texts[DC + "creator"])
        stated: dict[str, object] = {name: ", ".join(texts[tag]) for tag, name in _STATED.items() if tag in texts}
        return title, {**stated, **({"unread": self.unread} if self.unread else {})}

    def _root(self, data: bytes, kind: str) -> Element:
        if self._archive is None:
            root = xml_tree(_PICTURE.sub(b"", data), source=self.source)
            if root.tag != OFFICE + "document":
                raise self._wrong_kind(kind)
            return root
        if _MANIFEST in self._archive.names and _ENCRYPTED in self._archive.read(_MANIFEST):
            raise DocParserError(f"{self.source} is encrypted: save it without a password")
        if "content.xml" not in self._archive.names:
            raise self._wrong_kind(kind)
        return xml_tree(self._archive.read("content.xml"), source=self.source)

    def _optional(self, name: str, label: str) -> list[Element]:
        """Return the root of an optional part as a list of one, or [] if the part is missing or damaged."""
        if self._archive is None or name not in self._archive.names:
            return []
        try:
            return [xml_tree(self._archive.read(name), source=self.source)]
        except DocParserError:
            self.unread.append(label)
            return []

    def _wrong_kind(self, kind: str) -> DocParserError:
        return DocParserError(f"{self.source} is not an OpenDocument {kind}: its extension may be wrong")


def _is_flat(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<"
