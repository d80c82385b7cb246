from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Chunk
from jackfield_documents.analyzer import Analyzer, parts_of, searched_texts
from jackfield_documents.stopwords import STOP_WORDS


@pytest.fixture(scope="module")
def analyzer() -> Analyzer:
    return Analyzer()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running shoes, and the runner's RUN!", ["run", "shoe", "runner", "run"]),
        ("It's what we don't have", []),
        ("He gives and shows what others get", []),
        ("version 3.14, and 2.0.1.", ["version", "3.14", "2.0.1"]),
        ("The U.S.A. and the U.N. met", ["usa", "un", "met"]),
        ("snake_case and well-known", ["snake", "case", "well", "known"]),
        ("parseTileHeader and TileWriter", ["parsetilehead", "pars", "tile", "header", "tilewrit", "tile", "writer"]),
        ("HTTPServerError2 of sha256", ["httpservererror2", "http", "server", "error2", "sha256"]),
        ("APIs, iOS and URLS", ["api", "io", "os", "url"]),
        ("the end.Next sentence", ["end", "next", "sentenc"]),
        ("Ｆｕｌｌ ｗｉｄｔｈ １２３", ["full", "width", "123"]),
        ("the café’s menu", ["café's", "menu"]),
        ("größeWert und GrößeX", ["größewert", "und", "größex"]),
        ("默认超时是300秒", ["默认", "超时", "默", "认", "超", "时", "300", "秒", "秒"]),
        ("机器学习(machine)方法", ["机器", "学习", "机", "器", "学", "习", "machin", "方法", "方", "法"]),
        ("テスト", ["テス", "スト"]),
        ("", []),
    ],
)
def test_a_text_has_these_terms(analyzer: Analyzer, text: str, terms: list[str]) -> None:
    assert analyzer.terms(text) == terms


def test_without_a_dictionary_chinese_is_cut_into_characters_and_pairs() -> None:
    assert Analyzer("bigrams").terms("超时长") == ["超", "时", "长", "超时", "时长"]
    assert Analyzer("bigrams").terms("茶 tea 茶") == ["茶", "tea", "茶"]
    assert Analyzer("bigrams").terms_of_query("请总结文件") == []


def test_words_about_the_document_itself_leave_no_characters_in_a_query(analyzer: Analyzer) -> None:
    assert analyzer.terms_of_query("请总结一下文件的内容") == []
    assert set(analyzer.terms_of_query("总结船票的价格")) == set(analyzer.terms("船票的价格"))
    assert "总结" in analyzer.terms("总结")


@pytest.mark.parametrize("word", ["文件夹", "论文集", "文化部"])
def test_a_word_that_contains_one_about_documents_is_searched_as_a_whole(analyzer: Analyzer, word: str) -> None:
    assert word in analyzer.terms_of_query(f"全{word}的权限")


@given(st.text(max_size=40))
def test_terms_are_lower_case_and_never_stop_words(analyzer: Analyzer, text: str) -> None:
    terms = analyzer.terms(text)
    assert not STOP_WORDS & set(terms)
    assert all(term for term in terms)


def test_the_stop_words_are_lower_case() -> None:
    assert {word for word in STOP_WORDS if word != word.lower()} == set()


def test_an_unknown_chinese_word_is_looked_up_by_its_longest_known_parts() -> None:
    known = {"研究", "究生", "生", "究"}.__contains__
    assert parts_of("研究生", known) == ["研究", "究生"]
    assert parts_of("学生", known) == ["生"]
    assert parts_of("学习", known) == []
    assert parts_of("research", {"res"}.__contains__) == []


def test_a_chunk_is_searched_by_what_it_stands_under_and_not_by_lines_that_name_pages() -> None:
    text = "[page: 1]\nThe [page: 2] of\n[page: 3]\nx"
    own, *above = searched_texts(Chunk("1", "a", text, 0, 5, headings=("Installation", "Linux"), title="Manual"))
    assert own.split() == ["The", "[page:", "2]", "of", "x"]
    assert above == ["Installation", "Linux", "Manual"]
