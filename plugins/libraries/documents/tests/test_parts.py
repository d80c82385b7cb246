from __future__ import annotations

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Part
from jackfield_documents import parts
from jackfield_documents.parts import NoParserError, PartBudget, with_parts


def read(part: Part) -> Document:
    if part.data == b"damaged":
        raise DocParserError(f"{part.name} is damaged")
    if part.data == b"unknown":
        raise NoParserError(part.name)
    blocks = (Block("One", kind="heading", level=1), Block(part.data.decode()))
    return Document(part.name, blocks, "", metadata={"unread": ["page 2"]} if part.data == b"half" else {})


def merge(*of: Part, budget: PartBudget | None = None, blocks: tuple[Block, ...] = (Block("own"),)) -> Document:
    return with_parts(Document("x.zip", blocks, "", parts=of), read, budget or PartBudget(wall_s=60))


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def test_a_part_is_below_its_name() -> None:
    document = merge(Part("a/b.txt", b"text"))
    assert [(block.kind, block.text, block.level) for block in document.blocks] == [
        ("paragraph", "own", 0),
        ("heading", "a/b.txt", 1),
        ("heading", "One", 2),
        ("paragraph", "text", 0),
    ]
    assert document.parts == ()
    assert document.metadata == {}


def test_what_cannot_be_read_is_named_and_the_rest_is_read() -> None:
    document = merge(Part("a", b"damaged"), Part("b", b"unknown"), Part("c", b"half"), Part("d\u202e", b"unknown"))
    assert texts(document) == [
        "own",
        "a",
        "(a is damaged)",
        "c",
        "One",
        "half",
        "(Not read, because no installed parser reads files of this type: b, d\\u202e)",
    ]
    assert document.metadata == {"unread": ["a", "page 2 of c"]}


def test_a_long_list_of_names_is_cut() -> None:
    document = merge(*[Part(f"{number}.png", b"unknown") for number in range(60)])
    assert texts(document)[-1].endswith("49.png and 10 more)")


def test_a_part_without_pages_is_not_on_a_page_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    paged = Document("p", (Block("x", page=7),), "")
    monkeypatch.setitem(globals(), "read", lambda part: paged if part.name == "p" else Document("", (Block("y"),), ""))
    document = merge(Part("p", b""), Part("q", b""))
    pages = [(block.text, block.page) for block in document.blocks]
    assert pages == [("own", 1), ("p", 7), ("x", 7), ("q", 1), ("y", 1)]
    assert {block.page for block in merge(Part("q", b"")).blocks} == {None}


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("MAX_DEPTH", 0, "it is nested more than 0 levels deep"),
        ("MAX_FILES", 0, "only the first 0 files are read"),
        ("MAX_BYTES", 3, "only the first 0 MiB are read"),
    ],
)
def test_parts_have_limits(monkeypatch: pytest.MonkeyPatch, limit: str, value: int, reason: str) -> None:
    assert texts(merge(Part("a", b"text")))[-1] == "text"
    monkeypatch.setattr(parts, limit, value)
    assert texts(merge(Part("a", b"text")))[-1] == f"(a was not read: {reason})"


def test_no_part_is_begun_after_the_time_is_up() -> None:
    document = merge(Part("a", b"text"), budget=PartBudget(wall_s=-1))
    assert "(a was not read: reading the files before it took more than -1 s)" in texts(document)


def test_inner_files_spend_the_same_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_FILES", 1)
    budget = PartBudget(wall_s=60)
    merge(Part("a", b"text"), budget=budget.deeper())
    assert "a was not read" in texts(merge(Part("a", b"text"), budget=budget))[-1]
