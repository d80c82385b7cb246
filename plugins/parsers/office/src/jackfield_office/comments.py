"""Comments on the cells of spreadsheets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jackfield_markup import Element
from jackfield_office.package import Package, R, Relation


def comments_by_sheet(package: Package) -> Mapping[str, list[str]]:
    """Return the comments of each sheet, by its name, as `B2 (Ann): text`."""
    if not any("comments" in name.lower() for name in package.names):
        return {}  # most files have none
    relations = package.relations(package.main)
    persons = _persons(package, relations.values())
    comments: dict[str, list[str]] = {}
    for sheet in _children(package.part(package.main), "sheet"):
        relation = relations.get(sheet.get(R + "id", ""))
        if relation is not None and relation.target in package.names:
            comments[sheet.get("name", "")] = list(_comments(package, relation.target, persons))
    return comments


def _comments(package: Package, sheet: str, persons: Mapping[str, str]) -> Iterator[str]:
    parts: dict[str, list[Element]] = {}
    for relation in package.relations(sheet).values():
        if relation.kind in ("comments", "threadedComment") and relation.target in package.names:
            parts.setdefault(relation.kind, []).append(package.part(relation.target))
    threaded: set[str] = set()
    for part in parts.get("threadedComment", ()):
        for comment in _children(part, "threadedComment"):
            threaded.add(comment.get("ref", ""))
            yield _line(comment, persons.get(comment.get("personId", ""), ""))
    for part in parts.get("comments", ()):
        authors = ["".join(author.itertext()).strip() for author in _children(part, "author")]
        for comment in _children(part, "comment"):
            number = comment.get("authorId", "")
            author = authors[int(number)] if number.isdecimal() and int(number) < len(authors) else ""
            if comment.get("ref", "") not in threaded:  # otherwise it tells older programs of the thread
                yield _line(comment, author)


def _line(comment: Element, author: str) -> str:
    text = " ".join("".join(node.text or "" for node in _children(comment, "t", "text")).split())
    return f"{comment.get('ref', '')}{f' ({author})' if author else ''}: {text}"


def _persons(package: Package, relations: Iterable[Relation]) -> dict[str, str]:
    return {
        person.get("id", ""): person.get("displayName", "")
        for relation in relations
        if relation.kind == "person" and relation.target in package.names
        for person in _children(package.part(relation.target), "person")
    }


def _children(root: Element, *names: str) -> Iterator[Element]:
    """Yield the elements below one with these names, in any namespace: versions of the format have several."""
    yield from root.iter(*(f"{{*}}{name}" for name in names))
