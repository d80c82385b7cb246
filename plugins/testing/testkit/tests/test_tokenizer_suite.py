"""The suite for tokenizers lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import TokenizerSuite

BROKEN = {
    "Renames": "test_it_has_the_name_by_which_it_is_asked_for",
    "ReadsAtOnce": "test_making_one_reads_and_does_nothing",
    "LoadsAtOnce": "test_making_one_loads_no_library_that_encodes",
    "Connects": "test_it_does_what_it_declares_and_nothing_else",
    "BeginsWithAToken": "test_nothing_has_no_tokens_and_anything_else_has_some",
    "OverlooksLetters": "test_nothing_has_no_tokens_and_anything_else_has_some",
    "Miscounts": "test_a_count_is_the_number_of_tokens",
    "CountsBelowZero": "test_a_count_is_the_number_of_tokens",
    "GivesFloats": "test_a_count_is_the_number_of_tokens",
    "MarksNothing": "test_a_count_is_the_number_of_tokens",
    "CountsPairs": "test_two_texts_have_about_as_many_tokens_together_as_apart",
    "CountsDown": "test_a_beginning_has_no_more_tokens_than_the_whole",
    "CountsToThirty": "test_a_text_again_and_again_has_ever_more_tokens",
    "LosesMarks": "test_tokens_become_the_text_again",
    "ObeysUsers": "test_what_looks_like_a_control_token_is_text",
    "NeedsWholeTokens": "test_a_character_that_was_cut_is_the_replacement_character",
    "TakesAnyToken": "test_a_token_that_is_not_in_the_vocabulary_is_a_value_error",
    "PretendsToEncode": "test_without_a_vocabulary_there_are_no_tokens_and_it_says_so",
    "CutsByCharacters": "test_a_cut_is_a_beginning_that_has_no_more_tokens_than_it_may",
    "CutsTooMuch": "test_a_cut_is_as_long_as_it_may_be",
    "CutsAlways": "test_a_text_that_fits_is_not_cut_and_nothing_is_left_of_one_for_which_there_is_no_room",
    "NeedsWholeCharacters": "test_half_a_surrogate_pair_counts_as_the_replacement_character",
    "Panics": "test_a_text_as_long_as_a_book_is_counted_and_cut",
    "Throws": "test_the_same_text_always_has_the_same_tokens",
    "LoadsHalf": "test_threads_that_ask_at_the_same_time_get_what_they_get_alone",
}
"""A tokenizer of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import TokenizerSuite

for name in NAMES:
    globals()[f"Test{name}"] = type(f"Test{name}", (TokenizerSuite,), {"component": f"jackfield-zoo/{name}"})
"""
ESTIMATE = """
from jackfield_counting.estimating import EstimatingTokenizer
from jackfield_testkit.suites import TokenizerSuite


class TestEstimate(TokenizerSuite):
    component = "estimate"

    def make_tokenizer(self):
        return EstimatingTokenizer()
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(TokenizerSuite) if name.startswith("test_")}
OF_ESTIMATES = "test_without_a_vocabulary_there_are_no_tokens_and_it_says_so"


def test_a_correct_tokenizer_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("tokenizer")
    pairs = checks.with_laws(BROKEN)
    selected = ["TestHonest", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['Honest', *{[name for name, _ in pairs]}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST - {OF_ESTIMATES}
    assert outcomes.of("TestHonest", "skipped") == {OF_ESTIMATES}
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert set(BROKEN.values()) == EVERY_TEST


def test_an_estimate_is_a_tokenizer_without_tokens(run_suites: Callable[..., Any]) -> None:
    left_out = {
        # It has no descriptor and cannot be looked up: it is the core's.
        "test_making_one_loads_no_library_that_encodes",
        "test_it_does_what_it_declares_and_nothing_else",
        "test_a_text_as_long_as_a_book_is_counted_and_cut",  # it can; but counting by a pattern takes long
    }
    outcomes = run_suites(ESTIMATE, [f"TestEstimate::{test}" for test in sorted(EVERY_TEST - left_out)])
    assert outcomes.of("TestEstimate", "failure") | outcomes.of("TestEstimate", "error") == set()
    assert OF_ESTIMATES in outcomes.of("TestEstimate", "passed")
