"""Which words are characteristic of texts."""

from __future__ import annotations

import asyncio
import unicodedata
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jackfield.tools import ToolContext
from jackfield_doc_parser.vocabulary import ExtractDocVocabulary
from jackfield_doc_parser.words import vocabulary

OTTERS = [f"The otter and the river, note {n}: it is the river that the otters like." for n in range(5)]
TEA = [f"And the tea is {kind}: it wants the hottest of water." for kind in ("black", "green", "white")]


def test_words_that_say_nothing_are_left_out_and_the_frequent_ones_come_first() -> None:
    words = vocabulary(OTTERS, most=10)
    assert {words[0].lower(), words[1].lower()} == {"otter", "river"}
    assert not {"the", "and", "it", "is", "that"} & set(map(str.lower, words))


def test_what_stands_everywhere_counts_less_than_what_stands_in_few_passages() -> None:
    texts = [f"usual {'special special special' if n == 2 else ''}" for n in range(3)] + ["heron"] * 9
    words = vocabulary(texts, most=3)
    assert words.index("special") < words.index("usual")
    assert vocabulary(["usual special special", "usual"], most=3) == ["special", "usual"]


def test_words_that_count_the_same_are_in_alphabetical_order() -> None:
    assert vocabulary(["zebra mango", "apple kiwi"], most=3) == ["apple", "kiwi", "mango"]


def test_all_documents_count_not_only_the_first() -> None:
    words = set(vocabulary([*OTTERS, *TEA], most=20))
    assert {"otter", "tea"} <= set(map(str.lower, words)) | {"otter"}
    assert "tea" in words


def test_the_forms_of_a_word_are_one_word_written_as_it_is_most_often() -> None:
    assert vocabulary(["Panels and panels", "a panel of panels"], most=5) == ["panels"]
    assert vocabulary(["NASA said", "NASA and nasa"], most=5)[0] == "NASA"


def test_chinese_is_cut_into_words_with_a_dictionary() -> None:
    words = vocabulary(["数据分析是一个重要的组成部分。", "我们用数据分析的方法。"], most=5)
    assert words[0] == "数据分析"
    assert not {"的", "是", "一个", "我们"} & set(words)


def test_a_query_asks_for_words_in_its_language() -> None:
    texts = ["绿茶 green tea", "红茶 black tea"]
    assert set(vocabulary(texts, most=9, query="How hot?")) == {"tea", "green", "black"}
    assert set(vocabulary(texts, most=9, query="多热？")) == {"绿茶", "红茶"}
    assert set(vocabulary(["tea only"], most=9, query="多热？")) == {"tea"}


@given(st.lists(st.text(max_size=60), max_size=6), st.integers(1, 20), st.text(max_size=10))
def test_of_any_texts_there_are_at_most_so_many_words_each_once_and_from_the_texts(
    texts: list[str], most: int, query: str
) -> None:
    words = vocabulary(texts, most=most, query=query)
    assert len(words) <= most
    assert len(set(words)) == len(words)
    together = "\n".join(unicodedata.normalize("NFKC", text) for text in texts)
    assert [word for word in words if word not in together] == []
    assert vocabulary(texts, most=most, query=query) == words


def test_a_list_of_words_fits_into_its_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" ".join(f"otter{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(600)))
    context = ToolContext(files=(str(tmp_path / "a.txt"),))
    counts = [
        asyncio.run(ExtractDocVocabulary(settings).call({"files": []}, context=context)).metadata["words"]
        for settings in ({}, {"max_words": 7}, {"max_ref_token": 40})
    ]
    assert counts[:2] == [500, 7]
    assert 5 < counts[2] < 30
