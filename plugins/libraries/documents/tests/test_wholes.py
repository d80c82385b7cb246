"""Questions about documents as a whole are recognised, and answered from all of their length."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Chunk
from jackfield_documents import asks_for_whole, outline_of, overview, scripts_of


@pytest.mark.parametrize(
    "question",
    [
        "Summarise the whole document",
        "Summarize this report in five bullet points, please.",
        "Summarise policy.pdf",
        "What is this document about?",
        "Give me an overview",
        "What are the main points?",
        "Summarise the entire text about tides",
        "总结整个文档",
        "请总结一下",
        "这篇文章讲了什么？",
        "用三句话概括全文",
        "主要内容是什么",
        "Summarise report 7",
        "总结潮",
    ],
)
def test_a_question_about_the_whole_is_recognised(question: str) -> None:
    assert asks_for_whole(question, names=["reports/policy.pdf"])


@pytest.mark.parametrize(
    "question",
    [
        "Summarise the section on time stamps",
        "What is a hard link about?",
        "Outline the steps to install it",
        "List all prices",
        "What does the paper say about tides?",
        "When is the library open?",
        "概括第三章关于权限的内容",
        "硬链接是什么？",
        "总结潮汐",
        "",
    ],
)
def test_a_question_about_a_part_is_not_taken_for_one_about_the_whole(question: str) -> None:
    assert not asks_for_whole(question, names=["reports/policy.pdf"])


def chunks_of(source: str, sizes: list[int]) -> list[Chunk]:
    return [Chunk(f"{source}{number}", source, "x " * size, number, size) for number, size in enumerate(sizes)]


def count_words(text: str) -> int:
    return len(text.split())


@given(st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=40), min_size=1, max_size=4), st.integers(1, 900))
def test_an_overview_keeps_to_its_tokens_and_to_the_order_of_documents(sizes: list[list[int]], most: int) -> None:
    chunks = [chunk for number, of_one in enumerate(sizes) for chunk in chunks_of(f"s{number}", of_one)]
    chosen = overview(chunks, max_tokens=most, count_tokens=count_words)
    assert sum(chunk.tokens for chunk in chosen) <= most
    order = {chunk.id: number for number, chunk in enumerate(chunks)}
    assert [order[chunk.id] for chunk in chosen] == sorted({order[chunk.id] for chunk in chosen})


def test_an_overview_has_the_beginning_the_end_and_what_is_between() -> None:
    chosen = overview(chunks_of("a", [10] * 100), max_tokens=200)
    numbers = [chunk.index for chunk in chosen]
    assert numbers[:6] == [0, 1, 2, 3, 4, 5]
    assert numbers[-1] == 99
    gaps = [after - before for before, after in pairwise(numbers[6:])]
    assert max(gaps) <= 8


def test_an_outline_lists_headings_once_and_only_as_deep_as_fits() -> None:
    paths = [("Tides",), ("Tides", "High water"), ("Tides", "High water"), ("Ships",)]
    chunks = [Chunk(str(number), "a", "", number, 1, headings=path) for number, path in enumerate(paths)]
    assert outline_of(chunks, max_tokens=100) == "- Tides\n  - High water\n- Ships"
    assert outline_of(chunks, max_tokens=4, count_tokens=count_words) == "- Tides\n- Ships"
    assert outline_of(chunks, max_tokens=3, count_tokens=count_words) == ""


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("When is high water?", {"latin"}),
        ("什么时候涨潮？", {"chinese"}),
        ("用 ping 找出最佳 MTU", {"chinese", "latin"}),
        ("Когда прилив?", {"cyrillic"}),
        ("満潮はいつですか", {"chinese", "kana"}),
        ("42 %", set()),
    ],
)
def test_the_scripts_of_a_text_are_those_of_most_of_it(text: str, scripts: set[str]) -> None:
    assert scripts_of(text) == scripts
