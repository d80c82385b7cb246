"""The suites for embedders let a correct one pass, and catch each that is wrong in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield.retrieval import Embedded, Embedder, Purpose
from jackfield_testkit.suites import EmbedderSuite, LocalEmbedderSuite
from jackfield_testkit.suites.embedder_local import within

BROKEN = {
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "ForgetsItsHost": "test_it_takes_plugins_and_keys_from_its_host",
    "NeverCloses": "test_closing_an_embedder_closes_its_connections",
    "Centres": "test_each_text_has_its_vector_in_order",
    "GivesLists": "test_vectors_are_finite_numbers_and_of_one_length",
    "Boasts": "test_the_dimension_says_the_truth",
    "LosesOrder": "test_many_texts_keep_their_number_and_order",
    "DropsDoubles": "test_a_text_that_comes_twice_has_its_vector_twice",
    "NeedsWholeCharacters": "test_any_text_that_is_not_empty_has_a_vector",
    "MakesSomethingOfNothing": "test_of_no_texts_there_are_no_vectors",
    "HidesPlaces": "test_an_empty_text_is_refused_by_its_place",
    "SortsTexts": "test_texts_may_come_in_any_sequence_and_stay_as_they_are",
    "TwoLengths": "test_documents_and_queries_are_embedded_in_one_space",
    "CountsAnswers": "test_usage_counts_what_was_embedded",
    "SpaceOfItsOwn": "test_its_space_stays_the_same_for_the_same_settings",
    "OneSpace": "test_vectors_that_cannot_be_compared_are_of_two_spaces",
    "ConnectsAtOnce": "test_making_one_does_nothing",
    "Writes": "test_it_does_what_it_declares_and_nothing_else",
    "ClosesForGood": "test_a_closed_embedder_can_be_closed_again_and_used_again",
    "MixesCalls": "test_calls_at_the_same_time_give_what_they_give_alone",
    "KeepsItsLoop": "test_threads_with_event_loops_of_their_own_get_what_they_get_alone",
    "LooksForItsSpace": "test_it_connects_at_the_first_call_and_not_before",
    "Improves": "test_the_vectors_are_those_of_the_server",
    "SendsNothing": "test_of_no_texts_nothing_is_asked",
    "ChecksLate": "test_if_one_text_is_empty_none_is_sent",
    "SendsAllAtOnce": "test_many_texts_are_sent_in_several_requests_and_each_of_them_once",
    "LosesTheLast": "test_many_texts_are_sent_in_several_requests_and_each_of_them_once",
    "TakesThemAsTheyCome": "test_vectors_are_put_in_order_by_their_indices",
    "CountsTheLast": "test_usage_is_the_sum_of_all_requests",
    "KnowsOnePurpose": "test_the_purpose_is_told_where_there_is_a_word_for_it",
    "BelievesAll": "test_an_answer_that_nobody_can_read_is_an_error",
    "TakesTooFew": "test_too_few_vectors_too_many_and_two_for_one_text_are_errors",
    "TakesAnyLength": "test_vectors_of_different_lengths_are_an_error",
    "OneErrorForAll": "test_a_status_has_its_class_of_error_with_all_facts",
    "ShowsItsSockets": "test_a_broken_connection_is_an_error",
    "ShowsRefusals": "test_a_server_that_is_not_there_is_a_connection_error",
    "NeverTimesOut": "test_silence_for_longer_than_allowed_is_a_time_out",
    "Insists": "test_nothing_is_repeated_unless_asked",
    "GivesUp": "test_what_can_succeed_is_repeated_as_often_as_asked",
    "TriesAll": "test_what_cannot_succeed_is_not_repeated",
    "WaitsForAll": "test_one_request_that_fails_ends_the_others",
    "GoesOn": "test_a_call_that_is_cancelled_leaves_nothing_open",
    "LeavesOpen": "test_closing_an_embedder_closes_its_connections",
    "KeyInThePath": "test_the_key_is_sent_in_a_header_alone",
    "ShowsTheKey": "test_the_key_is_in_no_representation",
    "TellsTheKey": "test_the_key_is_in_no_error_even_if_the_server_repeats_it",
    "Prints": "test_nothing_is_printed_and_the_key_is_in_no_log",
}
"""An embedder of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import EmbedderSuite


class Zoo(EmbedderSuite):
    other_space = {"dimension": 16}

    def purpose_in(self, request):
        return request.json["purpose"]


class TestHonest(Zoo):
    component = "jackfield-zoo/Honest"


class TestMadeByHand(Zoo):
    def make_embedder(self, server_url, **overrides):
        from jackfield_zoo.embedders import Honest

        return Honest(model="m", base_url=server_url, api_key="key", **overrides)


class TestHasOneSpace(TestHonest):
    other_space = {}


for name in BROKEN:
    settings = {"component": f"jackfield-zoo/{name}", "patience_s": 1.0}
    if f"Test{name}" not in globals():
        globals()[f"Test{name}"] = type(f"Test{name}", (Zoo,), settings)
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(EmbedderSuite) if name.startswith("test_")}


def test_a_correct_embedder_passes_all(run_suites: Callable[..., Any], read_checks: Callable[[str], Any]) -> None:
    outcomes = run_suites("BROKEN = ()" + SUITES, ["TestHonest"], ZOO)
    assert outcomes.of("TestHonest", "failure") | outcomes.of("TestHonest", "error") == set()
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST
    assert outcomes.cases("TestHonest") == read_checks("embedder").cases.keys()


def test_each_broken_embedder_is_caught(run_suites: Callable[..., Any], read_checks: Callable[[str], Any]) -> None:
    checks = read_checks("embedder")
    pairs = checks.with_laws(BROKEN)
    selected = [f"Test{name}::{test}" for name, test in pairs]
    outcomes = run_suites(f"BROKEN = {[name for name, _ in pairs]}{SUITES}", selected, ZOO)
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()


def test_every_test_has_an_embedder_that_fails_it_and_those_without_a_server_are_among_them() -> None:
    assert set(BROKEN.values()) == EVERY_TEST
    assert {name for name in dir(LocalEmbedderSuite) if name.startswith("test_")} < EVERY_TEST


class Silent(Embedder):
    """An embedder of which each call fails with an error that the suite uses itself."""

    space = "silent"

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        raise TimeoutError("the server is silent")


def test_an_embedder_that_raises_a_timeout_is_not_said_to_be_slow() -> None:
    embedder = Silent()
    with pytest.raises(TimeoutError, match="the server is silent"):
        within(embedder, lambda: embedder.embed(["a"]))
    with pytest.raises(pytest.fail.Exception, match="the embedder did not finish within 0 s"):
        within(embedder, asyncio.Event().wait, limit_s=0)
