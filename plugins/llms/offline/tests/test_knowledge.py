"""How passages are read out of messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.messages import Message
from jackfield_offline.knowledge import Passage, passages_in_block, passages_in_result, read_passages


def _block(*sources: tuple[str, str], fence: str = "```") -> str:
    snippets = [f"## The content from {source}:\n\n{fence}\n{text}\n{fence}" for source, text in sources]
    return "\n\n".join(["# Knowledge Base", *snippets])


def test_passages_have_their_source_and_page(knowledge: str) -> None:
    passages = passages_in_block(knowledge)
    assert [(passage.source, passage.page) for passage in passages] == [
        ("studio.pdf", 1),
        ("studio.pdf", 2),
        ("手册.md", None),
    ]
    assert passages[0].text.strip() == "The studio has 3 rooms. Each panel has 48 sockets and 12 lamps."


def test_a_chinese_block_is_read_as_an_english_one() -> None:
    text = "# 知识库\n\n## 来自 [文件](a.pdf) 的内容：\n\n```\n[page: 1]\n甲。\n\n...\n\n[page: 2]\n乙。\n```"
    assert passages_in_block(text) == [Passage("甲。", "a.pdf", 1), Passage("乙。", "a.pdf", 2)]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("[file](a (1).pdf)", "a (1).pdf"),
        ("uploaded document", "uploaded document"),
        ("docs/a.md", "a.md"),
        ("http://localhost/x/a.html", "a.html"),
    ],
)
def test_a_source_is_shown_by_its_name(source: str, name: str) -> None:
    assert passages_in_block(_block((source, "text")))[0].source == name


def test_a_longer_fence_may_hold_fences_and_headings_of_the_document() -> None:
    text = "```\ncode\n```\n## The content from elsewhere:\nmore"
    assert passages_in_block(_block(("a", text), fence="````")) == [Passage(text, "a")]


def test_a_block_that_was_cut_is_read_as_far_as_it_goes() -> None:
    assert passages_in_block("# Knowledge Base\n\n## The content from a:\n\n```\nhalf") == [Passage("half", "a")]


def test_a_fence_without_a_heading_of_its_own_belongs_to_no_source() -> None:
    text = _block(("a", "one")) + "\n\n```\nanother\n```\n\n## The content from b:\n\n```\ntwo\n```"
    assert passages_in_block(text) == [Passage("one", "a"), Passage("two", "b")]


def test_the_numbers_of_passages_are_not_part_of_them() -> None:
    text = "[1]\none [2]\n\n...\n\n[D12]\n[page: 3]\ntwo\n[1234]\nthree"
    assert passages_in_block(_block(("a", text))) == [Passage("one [2]", "a"), Passage("two\n[1234]\nthree", "a", 3)]


def test_a_system_message_without_a_block_holds_no_passages() -> None:
    assert passages_in_block("Be brief.\n```\nx\n```") == []


def test_results_are_documents_if_they_list_some_and_text_otherwise() -> None:
    listed = json.dumps([{"url": "/a/b.md", "text": ["[page: 2]\none", "two"]}])
    assert passages_in_result(Message("function", listed, name="retrieval")) == [
        Passage("one", "b.md", 2),
        Passage("two", "b.md"),
    ]
    for other in (
        "[" * 100_000,
        "[1, 2]",
        f"{listed[:-1]}, 2]",
        '[{"url": "a"}]',
        '[{"text": ["a"]}]',
        '[{"url": "a", "text": "b"}]',
    ):
        assert passages_in_result(Message("function", other, name="f")) == [Passage(other, "f", from_tool=True)]


def test_pieces_that_are_no_texts_are_shown_as_they_are_written() -> None:
    listed = json.dumps([{"url": 7, "text": [48, "two", None]}])
    found = passages_in_result(Message("function", listed, name="retrieval"))
    assert found == [Passage("48", "7"), Passage("two", "7"), Passage("None", "7")]


def test_no_passage_is_read_twice() -> None:
    result = Message("function", "x", name="f")
    assert len(read_passages([result, Message("user", "y"), result])) == 1


@given(
    st.lists(st.tuples(st.text("abc.md", min_size=1), st.text(st.characters(exclude_characters="`\n["))), max_size=4)
)
def test_what_was_put_into_a_block_comes_out(sources: list[tuple[str, Any]]) -> None:
    found = passages_in_block(_block(*sources))
    assert [passage.text for passage in found] == [text for _, text in sources if text.strip()]
