"""How passages are cut, found and read for numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_offline.knowledge import Passage
from jackfield_offline.numbers import find_number, numbers_in
from jackfield_offline.sentences import Library, split_sentences, terms


def _cut(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(Passage(text, "a"))]


def _number(phrase: str, text: str) -> str | None:
    found = find_number(phrase, Library([Passage(text, "a")]))
    return found.number.value if found else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is 3.5 here. Two?  Three!", ["One is 3.5 here.", "Two?", "Three!"]),
        ("It is wrapped\nover lines. And on.", ["It is wrapped\nover lines.", "And on."]),
        ("一句。二句！“三句？”四", ["一句。", "二句！", "“三句？”", "四"]),
        ("# Heading\n\ntext\n\nmore", ["text", "more"]),
        ("- first\n- second\n  goes on\n1. third", ["first", "second\n  goes on", "third"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |", "| 1 | 2 |"]),
        ("He said e.g. nothing. \n\n...", ["He said e.g. nothing."]),
        ("", []),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert _cut(text) == expected


@given(st.text(st.sampled_from('ab 1.,。！\n|-#"`*?)'), max_size=60) | st.text(max_size=60))
def test_sentences_are_pieces_of_their_passage_in_its_order_and_no_word_is_in_two(text: str) -> None:
    position = 0
    for sentence in _cut(text):
        position = text.index(sentence, position) + len(sentence)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sockets", "socket"),
        ("the STUDIES", "study"),
        ("turn_limit", "turn limits"),
        ("我们的超时", "超时"),
        ("ＡＢＣ", "abc"),
        ("die Straße", "DIE STRASSE"),
    ],
)
def test_words_are_the_same_in_every_form(one: str, other: str) -> None:
    assert {term.text for term in terms(one)} == {term.text for term in terms(other)}


def test_a_rare_word_finds_more_than_a_common_one() -> None:
    library = Library([Passage("The panel is old. The panel is red. The panel has sockets.", "a")])
    assert library.find("panel sockets")[0].sentence.text == "The panel has sockets."


def test_chunks_that_overlap_have_each_sentence_once() -> None:
    library = Library([Passage("One. Two.", "a", 1), Passage("Two. Three.", "a", 2), Passage("Two.", "b")])
    assert [sentence.text for sentence in library.sentences] == ["One.", "Two.", "Three.", "Two."]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("60,000 of 1,234,567.89", ["60000", "1234567.89"]),
        ("3 万人, 2.5 亿, 3千克, 4 thousand", ["30000", "250000000", "3", "4000"]),
        ("2.5 million hours", ["2500000"]),
        ("v1, jackfield.v2, 1.2.3, a_3", []),
        ("超时是300秒", ["300"]),
        ("007 and 0.50", ["7", "0.50"]),
        ("-5 and 3-4 and 20%", ["-5", "3", "4", "20"]),
        ("１２３", ["123"]),
        ("1,2345", ["1", "2345"]),
    ],
)
def test_what_is_a_number_and_what_it_is_worth(text: str, values: list[str]) -> None:
    assert [number.value for number in numbers_in(text)] == values


@given(st.integers(-(10**15), 10**15))
def test_a_number_is_read_as_it_was_written(number: int) -> None:
    assert [int(found.value) for found in numbers_in(f"about {number:,} things")] == [number]


@given(st.text(st.sampled_from("0123456789.,-' 万千亿milon\n"), max_size=40) | st.text(max_size=40))
def test_every_number_can_stand_in_code_and_in_json(text: str) -> None:
    for number in numbers_in(text):
        assert Decimal(number.value).is_finite()
        assert set(number.value) <= set("-.0123456789")
        assert eval(number.value) is not None


@pytest.mark.parametrize(
    ("phrase", "text", "value"),
    [
        ("sockets on one panel", "Each panel has 48 sockets and 12 lamps.", "48"),
        ("lamps of a panel", "Each panel has 48 sockets and 12 lamps.", "12"),
        ("sockets", "48 audio sockets, 12 lamps", "48"),
        ("sockets", "48 audio sockets 12 lamps", "48"),
        ("lamps", "sockets: 48, lamps: 12", "12"),
        ("灯", "插孔48个，灯12盏", "12"),
        ("default turn limit", "The limit is high. The default turn limit of a run is 20 turns.", "20"),
        ("每次调用的默认超时", "最多 9 次。每次工具调用的默认超时是 300 秒。代码默认运行 30 秒。", "300"),
        ("工具超时", "| 设置 | 默认 |\n|---|---|\n| 工具超时 | 300 |\n| 页数 | 5 |", "300"),
        ("price of gold", "Each panel has 48 sockets.", None),
        ("sockets", "There are sockets.", None),
        ("", "48", None),
    ],
)
def test_a_phrase_finds_its_number(phrase: str, text: str, value: str | None) -> None:
    assert _number(phrase, text) == value


@given(st.text(st.sampled_from("abÄ 数据分析是的，.1-'"), max_size=30))
def test_a_term_is_where_it_says(text: str) -> None:
    for term in terms(text):
        assert 0 <= term.start < term.end <= len(text)
        assert text[term.start : term.end].casefold().startswith(term.text[:1])
        if not term.text.isascii() and "ä" not in term.text:
            assert text[term.start : term.end] == term.text
