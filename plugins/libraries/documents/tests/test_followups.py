"""Follow-ups are recognised by their words, and searched for with those of earlier turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_documents.followups import Dependence, Exchange, dependence, search_text

EARLIER = [Exchange("Where is the Kestrel217 made?", "In Lyon.")]


@pytest.mark.parametrize(
    "question",
    [
        "And its price?",
        "How much does it cost?",
        "What about the larger one?",
        "Why?",
        "Is that safe?",
        "How are they cleaned?",
        "价格呢？",
        "它多少钱？",
        "那冬天几点开？",
        "为什么？",
    ],
)
def test_a_continuation_depends_on_what_was_said(question: str) -> None:
    assert dependence(question) is Dependence.FULL
    assert search_text(question, EARLIER) == f"Where is the Kestrel217 made?\nIn Lyon.\n{question}"


@pytest.mark.parametrize(
    "question",
    [
        "Which exit status does a command return on success, and which variable holds the value?",
        "How can I recover a deleted file that is still open in an application?",
        "Is there a discount for large orders of spare batteries?",
        "硬链接和符号链接有什么区别？",
        "路由器的红色指示灯表示什么？",
    ],
)
def test_a_complete_question_is_searched_for_alone(question: str) -> None:
    assert dependence(question) is Dependence.NONE
    assert search_text(question, EARLIER) == question


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("battery charger", Dependence.SOME),
        ("battery charger price", Dependence.NONE),
        ("Does it need battery charger cable pump?", Dependence.FULL),
        ("Does it need battery charger cable pump filter?", Dependence.SOME),
        ("电池充电", Dependence.SOME),
        ("电池充电盘", Dependence.NONE),
    ],
)
def test_two_words_are_few_and_five_are_several_with_two_characters_to_a_word(
    question: str, expected: Dependence
) -> None:
    assert dependence(question) is expected


def test_the_own_words_of_a_question_that_depends_in_part_count_twice() -> None:
    question = "When a boat is longer than eight metres, how many crowns does it pay for every night?"
    assert dependence(question) is Dependence.SOME
    assert search_text(question, EARLIER).splitlines() == [EARLIER[0].question, "In Lyon.", question, question]


def test_a_follow_up_of_a_follow_up_leads_to_the_question_that_both_depend_on() -> None:
    earlier = [
        Exchange("Who wrote the Sandholm chronicle?", "Marin."),
        *EARLIER,
        Exchange("And its price?", "90 crowns"),
    ]
    text = search_text("And its weight?", earlier)
    assert text.splitlines() == [EARLIER[0].question, "In Lyon.", "And its price?", "90 crowns", "And its weight?"]


def test_only_the_beginning_of_an_answer_and_three_exchanges_are_added() -> None:
    earlier = [Exchange(f"And its price in year {year}?", f"{year} " + "crown " * 500) for year in range(6)]
    text = search_text("And its weight?", earlier)
    assert [year for year in range(6) if f"in year {year}?" in text] == [3, 4, 5]
    assert max(len(line) for line in text.splitlines()) <= 200


texts = st.text(min_size=1, max_size=400)
exchanges = st.lists(st.builds(Exchange, texts, st.text(max_size=1000)), max_size=6)


@given(texts, exchanges)
def test_the_question_is_always_searched_for_and_the_context_is_bounded(question: str, earlier: list[Exchange]) -> None:
    text = search_text(question, earlier)
    assert question.strip() in text
    asked = sum(len(exchange.question) for exchange in earlier[-3:])
    assert len(text) <= 2 * len(question) + asked + 3 * 200 + 8


@given(texts)
def test_a_first_question_is_searched_for_as_it_is(question: str) -> None:
    assert search_text(question, []) == question
