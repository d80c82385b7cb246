from __future__ import annotations

import threading
import time

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Part
from jackfield_documents import parts, places_of
from jackfield_documents.parts import NoParserError, PartBudget, part_names, with_parts


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


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["a.pdf", "b.pdf"], ["a.pdf", "b.pdf"]),
        (["a.pdf", "a.pdf", "a.pdf"], ["a.pdf", "a (2).pdf", "a (3).pdf"]),
        (["a.pdf", "a.pdf", "a (2).pdf"], ["a.pdf", "a (3).pdf", "a (2).pdf"]),
        (["a", "a", "a (2)", "a", "a (2)"], ["a", "a (3)", "a (2)", "a (4)", "a (2) (2)"]),
        (["x" * 300, "x" * 200], ["x" * 200, "x" * 200 + " (2)"]),
        (["a\u202e", "a\u202e"], ["a\\u202e", "a\\u202e (2)"]),
    ],
)
def test_parts_of_one_name_are_told_apart(names: list[str], unique: list[str]) -> None:
    of = [Part(name, b"text") for name in names]
    assert part_names(of) == unique
    assert list(dict.fromkeys(block.part for block in merge(*of, blocks=()).blocks)) == unique


def test_a_great_many_parts_of_one_name_are_numbered_in_one_pass() -> None:
    assert part_names([Part("a", b"")] * 100_000)[-1] == "a (100000)"


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


def test_what_the_document_itself_lacks_stays_named_beside_what_its_parts_lack() -> None:
    metadata = {"unread": ["its styles"], "title": "x"}
    of = (Part("a", b"damaged"), page(2, b"damaged"), page(3, b"three"))
    document = with_parts(Document("x", (Block("own"),), "", metadata=metadata, parts=of), read, PartBudget(wall_s=60))
    assert document.metadata == {"unread": ["its styles", "page 2", "a"], "title": "x", "unread_pages": [2]}


def test_the_name_of_a_part_is_on_the_first_page_of_its_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = (Block("in it", page=9, part="b"), Block("x"), Block("y", page=4), Block("z", page=5))
    monkeypatch.setitem(globals(), "read", lambda _: Document("a", inner, ""))
    heading, *rest = merge(Part("a", b""), blocks=()).blocks
    assert (heading.text, heading.page) == ("a", 4)
    assert [(block.page, block.part) for block in rest] == [(9, "a › b"), (None, "a"), (4, "a"), (5, "a")]


def test_a_long_list_of_names_is_cut() -> None:
    document = merge(*[Part(f"{number}.png", b"unknown") for number in range(60)])
    assert texts(document)[-1].endswith("49.png and 10 more)")


def test_a_part_without_pages_is_not_on_a_page_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    paged = Document("p", (Block("x", page=7),), "")
    monkeypatch.setitem(globals(), "read", lambda part: paged if part.name == "p" else Document("", (Block("y"),), ""))
    document = merge(Part("p", b""), Part("q", b""))
    pages = [(place.block.text, place.page) for place in places_of(document)]
    assert pages == [("own", None), ("p", 7), ("x", 7), ("q", None), ("y", None)]
    assert {block.page for block in merge(Part("q", b"")).blocks} == {None}


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("MAX_DEPTH", 0, "nested more than 0 levels deep"),
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


def test_the_time_of_inner_files_began_with_the_outer_one() -> None:
    budget = PartBudget(60, _start=time.monotonic() - 61)
    for one in (budget, budget.deeper()):
        assert "(a was not read: reading the files before it took more than 60 s)" in texts(
            merge(Part("a", b"text"), budget=one)
        )


# --- parts that are pages ---

TEXT = (Block("one", page=1), Block("[note]", page=2), Block("four", page=4))


def page(number: int, data: bytes) -> Part:
    return Part("page.scan", data, page=number)


def paged(document: Document) -> list[tuple[int | None, str]]:
    return [(block.page, block.text) for block in document.blocks]


def test_a_part_that_is_a_page_replaces_the_blocks_of_its_page() -> None:
    document = merge(page(2, b"two"), page(3, b"three"), blocks=TEXT)
    assert paged(document) == [(1, "one"), (2, "One"), (2, "two"), (3, "One"), (3, "three"), (4, "four")]
    assert (document.parts, document.metadata) == ((), {})


def test_pages_keep_their_order_however_long_each_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = threading.Barrier(2, timeout=60)

    def slow(part: Part) -> Document:
        barrier.wait()  # two pages are read at the same time
        return read(part)

    monkeypatch.setattr(parts, "processes_at_once", lambda: 2)
    document = with_parts(Document("x.pdf", (), "", parts=(page(1, b"a"), page(2, b"b"))), slow, PartBudget(wall_s=60))
    assert paged(document) == [(1, "One"), (1, "a"), (2, "One"), (2, "b")]


def test_pages_without_a_parser_leave_the_document_as_it_is() -> None:
    document = merge(page(2, b"unknown"), page(3, b"unknown"), blocks=TEXT)
    assert (document.blocks, document.parts, document.metadata) == (TEXT, (), {})


def test_pages_that_cannot_be_read_are_named_once_for_each_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    document = merge(page(2, b"damaged"), page(3, b"damaged"), page(5, b"five"), page(6, b"damaged"), blocks=TEXT)
    reason = "page.scan is damaged"
    assert paged(document) == [
        (1, "one"),
        (2, f"[No text on pages 2-3: {reason}]"),
        (4, "four"),
        (5, "One"),
        (5, "five"),
        (6, f"[No text on page 6: {reason}]"),
    ]
    assert document.metadata == {"unread": ["page 2", "page 3", "page 6"], "unread_pages": [2, 3, 6]}
    monkeypatch.setattr(parts, "MAX_FILES", 1)
    assert "[No text on page 3: x.zip was not read: only the first 1 files are read]" in texts(
        merge(page(2, b"two"), page(3, b"three"), blocks=TEXT)
    )


def test_a_document_of_pages_none_of_which_can_be_read_is_refused() -> None:
    blocks = (Block("[note]", page=1),)
    with pytest.raises(DocParserError, match=r"^page.scan is damaged$"):
        merge(page(1, b"damaged"), page(2, b"damaged"), blocks=blocks)
    with pytest.raises(DocParserError, match=r"^x.zip has no text layer: 2 pages are images, and no parser with OCR"):
        merge(page(1, b"unknown"), page(2, b"unknown"), blocks=blocks)
