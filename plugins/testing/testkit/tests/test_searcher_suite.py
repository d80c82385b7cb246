"""The suite for searchers lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import SearcherSuite

BROKEN = {
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "ForgetsItsHost": "test_it_takes_plugins_and_keys_from_its_host",
    "AlwaysFinds": "test_a_query_that_matches_nothing_finds_nothing",
    "FindsNothing": "test_it_finds_the_passage_that_answers",
    "NoChinese": "test_it_finds_chinese",
    "ChokesOnNothing": "test_nothing_is_found_where_nothing_is",
    "AlwaysOne": "test_nothing_is_found_where_nothing_is",
    "Generous": "test_hits_are_chunks_of_the_corpus_and_no_more_than_asked_for",
    "MakesChunks": "test_hits_are_chunks_of_the_corpus_and_no_more_than_asked_for",
    "GivesTwice": "test_hits_are_chunks_of_the_corpus_and_no_more_than_asked_for",
    "ScoresByTheLimit": "test_the_best_come_first_whatever_the_limit",
    "CountsFromTen": "test_places_count_from_one",
    "RemembersOddQueries": "test_any_text_can_be_a_query",
    "NeverReady": "test_progress_grows_to_all_chunks",
    "CountsTooFar": "test_progress_grows_to_all_chunks",
    "FiltersTooMuch": "test_a_filter_selects_what_is_found",
    "KeepsTheFilter": "test_a_filter_leaves_as_many_hits_as_there_are",
    "WorstFirst": "test_the_best_come_first_whatever_the_limit",
    "NoNumber": "test_the_best_come_first_whatever_the_limit",
    "TiesBackwards": "test_equal_scores_stand_in_document_order",
    "CountsFromZero": "test_places_count_from_one",
    "NeedsWords": "test_any_text_can_be_a_query",
    "NeedsWholeCharacters": "test_any_text_can_be_a_chunk",
    "ReadsShortChunks": "test_any_text_can_be_a_chunk",
    "Throws": "test_the_same_search_gives_the_same",
    "IgnoresFilters": "test_a_filter_selects_what_is_found",
    "FiltersTheBestOnly": "test_a_filter_leaves_as_many_hits_as_there_are",
    "TellsByText": "test_documents_with_the_same_text_are_told_apart",
    "FindsNothingForWrongFilters": "test_a_filter_that_does_not_fit_is_an_error",
    "KeepsTheFirst": "test_a_corpus_that_has_grown_is_searched_as_a_new_one",
    "IndexesAgain": "test_a_corpus_is_indexed_once_and_searched_often",
    "PreparesNothing": "test_a_corpus_that_was_prepared_is_not_read_again",
    "TakesTheBeginningForAll": "test_a_preparation_that_is_stopped_can_be_taken_up_again",
    "CountsDown": "test_progress_grows_to_all_chunks",
    "ClosesForGood": "test_any_corpus_can_be_prepared_and_a_closed_searcher_used_again",
    "MixesCalls": "test_searches_at_the_same_time_give_what_they_give_alone",
    "KeepsItsLoop": "test_searches_from_several_event_loops_give_what_they_give_alone",
    "Connects": "test_it_does_what_it_declares_and_nothing_else",
    "CountsBackwards": "test_nothing_is_found_where_nothing_is",
    "OverlooksTheBestOfFew": "test_the_best_come_first_whatever_the_limit",
    "KnowsNoExceptions": "test_a_filter_selects_what_is_found",
    "RemembersSets": "test_documents_with_the_same_text_are_told_apart",
    "PreparesOnce": "test_a_preparation_that_is_stopped_can_be_taken_up_again",
    "GrowsOnly": "test_a_corpus_that_has_grown_is_searched_as_a_new_one",
    "ClosesWhatItUsed": "test_any_corpus_can_be_prepared_and_a_closed_searcher_used_again",
    "StaysBusy": "test_a_cancelled_search_ends_and_does_not_hinder_the_next",
    "GoesOn": "test_a_cancelled_search_ends_and_does_not_hinder_the_next",
}
"""A searcher of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import SearcherSuite

class TestClaimsToFind(SearcherSuite):
    component = "jackfield-zoo/Honest"
    always_finds = "a reason"


class TestIgnoresQueries(SearcherSuite):
    component = "jackfield-zoo/Honest"
    ignores_query = "a reason"


class TestMadeByHand(SearcherSuite):
    def make_searcher(self):
        from jackfield_zoo.searchers import Honest

        return Honest()


for name in {*NAMES} - {"ClaimsToFind", "IgnoresQueries", "MadeByHand"}:
    globals()[f"Test{name}"] = type(f"Test{name}", (SearcherSuite,), {
        "component": f"jackfield-zoo/{name}", "patience_s": 20.0 if name == "Honest" else 1.0})
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(SearcherSuite) if name.startswith("test_")}


def test_a_correct_searcher_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("searcher")
    pairs = checks.with_laws(BROKEN)
    selected = ["TestHonest", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['Honest', *{[name for name, _ in pairs]}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert set(BROKEN.values()) == EVERY_TEST
