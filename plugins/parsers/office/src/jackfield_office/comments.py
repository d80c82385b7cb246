"""Extract comments from spreadsheets and presentations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jackfield_markup import Element
from jackfield_office.package import Package, Relation

_COMMENT_KINDS = ("threadedComment", "comments")
_BODIES = ("{*}text", "{*}txBody")


def comments_of_sheet(package: Package, sheet: str, *, number: int) -> Iterator[str]:
    """Yield the cell comments of a sheet as `B2 (Ann): text`. Each reply in a thread is a separate line."""
    relations = [relation for relation in package.relations(sheet).values() if relation.kind in _COMMENT_KINDS]
    persons = _persons(package) if any(relation.kind == "threadedComment" for relation in relations) else {}
    threaded: set[str] = set()
    # A cell with a thread also has an old-style comment for older programs.
    for relation in sorted(relations, key=lambda relation: _COMMENT_KINDS.index(relation.kind)):
        root = package.part_or_none(relation.target, f"the comments of sheet {number}")
        if root is None:
            continue
        authors = ["".join(author.itertext()).strip() for author in _children(root, "author")]
        for comment in _children(root, "threadedComment"):
            threaded.add(comment.get("ref", ""))
            yield _on_cell(comment, persons.get(comment.get("personId", ""), ""))
        for comment in _children(root, "comment"):
            if comment.get("ref", "") not in threaded:
                yield _on_cell(comment, _at(authors, comment.get("authorId", "")))


def comments_of_slide(package: Package, relations: Mapping[str, Relation], *, number: int) -> Iterator[str]:
    """Yield the comments on a slide as `Ann: text`, in the old and the new format. Replies follow their comment."""
    parts = [relation.target for relation in relations.values() if relation.kind == "comments"]
    authors = _authors(package) if parts else {}
    for part in parts:
        root = package.part_or_none(part, f"the comments of slide {number}")
        for comment in () if root is None else _children(root, "cm", "reply"):
            author = authors.get(comment.get("authorId", ""), "")
            # Not all descendants, because the replies to a new-style comment are nested in it.
            texts = (
                node.text or "" for body in comment.iterchildren(*_BODIES) for node in _children(body, "t", "text")
            )
            if text := " ".join(" ".join(texts).split()):
                yield f"{author or 'someone'}: {text}"


def _on_cell(comment: Element, author: str) -> str:
    text = " ".join("".join(node.text or "" for node in _children(comment, "t", "text")).split())
    return f"{comment.get('ref', '')}{f' ({author})' if author else ''}: {text}"


def _at(authors: list[str], number: str) -> str:
    return authors[int(number)] if number.isdecimal() and int(number) < len(authors) else ""


def _persons(package: Package) -> dict[str, str]:
    roots = _parts(package, "person", "the authors of its comments")
    return {
        person.get("id", ""): person.get("displayName", "") for root in roots for person in _children(root, "person")
    }


def _authors(package: Package) -> dict[str, str]:
    roots = [
        root for kind in ("commentAuthors", "authors") for root in _parts(package, kind, "the authors of its comments")
    ]
    return {
        author.get("id", ""): author.get("name", "")
        for root in roots
        for author in _children(root, "cmAuthor", "author")
    }


def _parts(package: Package, kind: str, meaning: str) -> Iterator[Element]:
    """Yield the parts of a kind that the main part refers to."""
    for relation in package.relations(package.main).values():
        root = package.part_or_none(relation.target, meaning) if relation.kind == kind else None
        if root is not None:
            yield root


def _children(root: Element, *names: str) -> Iterator[Element]:
    """Yield descendants with these names in any namespace, because namespaces differ between versions of the format."""
    yield from root.iter(*(f"{{*}}{name}" for name in names))
