"""The suite for backends lets a correct one pass, and catches each that is broken in one place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.suites import LLMBackendSuite

BROKEN = {
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "NeverCloses": "test_closing_a_model_closes_its_connections",
    "EndsTwice": "test_a_stream_has_one_end_and_it_comes_last",
    "EndsEarly": "test_a_stream_that_ends_in_the_middle_is_an_error_with_the_text_so_far",
    "DecodesPieces": "test_delivering_a_stream_otherwise_changes_nothing[text]",
    "SplitsPieces": "test_delivering_a_stream_otherwise_changes_nothing[text]",
    "ReadsOneName": "test_reasoning_is_apart_from_the_text",
    "SkipsBrokenChunks": "test_a_malformed_chunk_is_an_error_with_the_text_so_far",
    "WaitsForAll": "test_text_is_passed_on_before_the_answer_is_complete",
    "KeepsConnections": "test_cancelling_a_call_closes_its_connection",
    "ConnectsAnew": "test_calls_one_after_the_other_share_a_connection",
    "ReusesBlindly": "test_an_answer_that_nobody_asked_for_is_nobodys[object]",
    "AsksOnce": "test_a_kept_connection_that_ends_without_an_answer_costs_no_call",
    "AlwaysAsksAgain": "test_a_new_connection_that_ends_without_an_answer_is_an_error",
    "SharesState": "test_streams_at_the_same_time_do_not_mix",
    "KeepsOneAnswer": "test_consecutive_answers_lose_nothing",
    "LeaksExtra": "test_extra_is_never_sent",
    "ForgetsIds": "test_a_result_goes_back_to_its_call",
    "MixesCalls": "test_calls_at_the_same_time_are_told_apart_by_their_index",
    "OptionsStick": "test_an_option_of_one_call_does_not_stick",
    "SendsDefaults": "test_options_that_nobody_set_are_not_sent",
    "IgnoresTheSeed": "test_the_seed_is_sent",
    "RetriesByItself": "test_nothing_is_repeated_unless_asked",
    "BelievesNumbers": "test_a_pause_that_nobody_can_read_is_no_pause[nan]",
    "AsksSooner": "test_a_server_cannot_choose_how_long_we_wait[429-1000000000]",
    "OneErrorForAll": "test_a_status_has_its_class_of_error_with_all_facts",
    "NeverTimesOut": "test_silence_for_longer_than_allowed_is_a_time_out[inside]",
    "TellsTheKey": "test_the_key_is_in_no_error_even_if_the_server_repeats_it",
    "KnowsOneForm": "test_the_key_is_in_no_error_in_whatever_form_and_field_the_server_repeats_it[upper case]",
    "TellsTheKeyInStreams": "test_the_key_is_in_no_error_of_a_stream_or_a_connection[error]",
    "TellsTheKeyOfAConnection": "test_the_key_is_in_no_error_of_a_stream_or_a_connection[no connection]",
    "BlocksTheLoop": "test_others_run_while_the_server_is_silent",
    "SleepsForEachPiece": "test_nothing_sleeps_on_the_event_loop",
    "AsksOneAfterTheOther": "test_calls_at_the_same_time_do_not_wait_for_each_other",
    "CutsAt64KiB": "test_a_long_text_is_whole",
    "MergesEqualCalls": "test_equal_calls_are_two_calls",
    "ChangesSchemas": "test_nothing_that_was_given_is_changed",
    "HasWordsOfItsOwn": "test_the_finish_reason_has_the_same_word_for_all_providers[length]",
    "LetsCallersSetTheKey": "test_an_extra_header_takes_the_place_of_no_key_and_of_no_content_type",
    "LetsCallersSendTwoKeys": "test_an_extra_header_takes_the_place_of_no_key_and_of_no_content_type",
    "LetsCallersSetTheType": "test_an_extra_header_takes_the_place_of_no_key_and_of_no_content_type",
    "PassesWordsOn": "test_the_providers_word_for_the_reason_is_kept_beside_ours",
    "TakesUnknownWordsForTheEnd": "test_the_providers_word_for_the_reason_is_kept_beside_ours",
    "ForgetsTheWord": "test_the_providers_word_for_the_reason_is_kept_beside_ours",
    "IgnoresPenalties": "test_an_option_is_sent[presence_penalty]",
    "KeepsADiary": "test_a_call_writes_no_file",
    "KeepsLocals": "test_the_key_is_in_no_local_variable_of_an_error[refusal]",
    "TrustsEveryAddress": "test_a_key_of_the_environment_goes_to_no_address_that_a_configuration_names",
    "ShowsItsAddress": "test_a_secret_in_an_address_is_in_no_representation_and_in_no_error[/{}/v1]",
    "StatesNoKey": "test_the_key_is_stated_for_records",
    "LogsTheKey": "test_the_key_is_in_no_log",
    "ConnectsAtOnce": "test_making_a_model_connects_to_nothing",
    "ClaimsImages": "test_an_image_is_sent_or_refused_as_the_facts_say",
    "ClaimsFiles": "test_a_pdf_is_sent_as_the_facts_say_or_refused",
    "TrustsHistories": "test_only_the_user_can_have_a_file_read_and_sent[path-image]",
    "Prints": "test_nothing_is_printed",
    "FallsBack": "test_a_server_without_tls_at_a_url_with_it_is_an_error_and_learns_nothing",
    "BelongsToOneProcess": "test_a_forked_process_can_ask_although_its_parent_has_open_connections",
    "KnowsNoProxy": "test_the_proxy_of_the_environment_is_used",
    "AlwaysByProxy": "test_what_needs_no_proxy_is_asked_without_it",
    "ListsNothing": "test_an_answer_that_is_no_list_is_an_error[{}]",
    "SortsLists": "test_all_models_are_listed_once_and_in_order_however_many_pages_they_take",
    "AsksForListsOnce": "test_a_list_is_retried_as_often_as_requests_are",
    "ListsWithoutKey": "test_a_list_is_asked_for_with_the_key_in_one_header",
    "RefusesListsInItsOwnWords": "test_a_refused_list_has_the_error_of_a_refused_request[401-ModelAuthError]",
    "RefusesListsLate": "test_a_list_that_the_service_does_not_have_is_refused_before_any_request",
}
"""A backend of backends/tiny_backend.py, and the test that is made for its fault."""

SUITES = """
import tiny_backend
from jackfield_testkit.suites import LLMBackendSuite


class Tiny(LLMBackendSuite):
    secrets = ("TINY_KEY",)

    def make_model(self, server_url, **overrides):
        made = getattr(tiny_backend, type(self).__name__.removeprefix("Test"))
        return made({"model": "test-model", "base_url": server_url, "api_key": "sk-test-SECRET", **overrides})


class TestTiny(Tiny):
    pass


for name in BROKEN:
    globals()[f"Test{name}"] = type(f"Test{name}", (Tiny,), {"patience_s": 1.0})
"""
EXPECTED = """
import pytest
from jackfield_testkit.suites import Suite


class Contract(Suite):
    def test_a(self):
        assert False

    def test_b(self):
        assert True


class TestKnown(Contract):
    xfail = {"test_a": "it cannot"}


class Parameters(Suite):
    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_odd(self, number):
        assert number % 2


class TestOneOfThem(Parameters):
    xfail = {"test_odd[2]": "it is even"}


class TestAnotherOfThem(Parameters):
    xfail = {"test_odd[2]": "it is even", "test_odd[3]": "it was even once"}


class TestGone(Parameters):
    xfail = {"test_odd[2]": "it is even", "test_odd[4]": "it was there once"}


class TestMended(Contract):
    xfail = {"test_a": "it cannot", "test_b": "it could not once"}
"""
BACKENDS = Path(__file__).parent / "backends"
EVERY_TEST = {name for name in dir(LLMBackendSuite) if name.startswith("test_")}


def test_a_correct_backend_passes_all(run_suites: Callable[..., Any]) -> None:
    outcomes = run_suites("BROKEN = ()" + SUITES, ["TestTiny"], BACKENDS)
    assert outcomes.of("TestTiny", "failure") | outcomes.of("TestTiny", "error") == set()
    assert outcomes.of("TestTiny", "skipped") == set()
    assert outcomes.of("TestTiny", "passed") == EVERY_TEST


# A few runs at the same time: of each, most is waiting for what must not come.
RUNS = 4


def test_each_broken_backend_is_caught(run_suites: Callable[..., Any]) -> None:
    def caught_of(part: int) -> dict[str, set[str]]:
        names = list(BROKEN)[part::RUNS]
        outcomes = run_suites(f"BROKEN = {names}{SUITES}", [f"Test{name}::{BROKEN[name]}" for name in names], BACKENDS)
        return {name: outcomes.of(f"Test{name}", "failure") for name in names}

    with ThreadPoolExecutor(RUNS) as pool:
        caught = dict(itertools.chain.from_iterable(part.items() for part in pool.map(caught_of, range(RUNS))))
    assert caught == {name: {test.partition("[")[0]} for name, test in BROKEN.items()}


def test_a_failure_that_is_expected_is_none_and_a_pass_that_is_not_is_one(run_suites: Callable[..., Any]) -> None:
    outcomes = run_suites(EXPECTED, ["TestKnown", "TestMended"])
    assert outcomes.of("TestKnown", "xfailed") == outcomes.of("TestMended", "xfailed") == {"test_a"}
    assert outcomes.of("TestKnown", "passed") == {"test_b"}
    assert outcomes.of("TestMended", "failure") == {"test_b"}


def test_one_parameter_of_a_test_may_be_expected_to_fail(run_suites: Callable[..., Any]) -> None:
    outcomes = run_suites(EXPECTED, ["TestOneOfThem", "TestAnotherOfThem"])
    assert outcomes.of("TestOneOfThem", "failure") == set()
    assert outcomes.of("TestOneOfThem", "xfailed") == {"test_odd"}
    assert outcomes.of("TestAnotherOfThem", "failure") == {"test_odd"}


def test_a_parameter_that_does_not_exist_is_an_error_where_all_run(run_suites: Callable[..., Any]) -> None:
    outcomes = run_suites(EXPECTED, ["TestGone", "TestOneOfThem"])
    assert outcomes.of("TestGone", "error") == {"test_odd"}
    assert outcomes.of("TestOneOfThem", "error") == set()
    # Who asks for one parameter need not have the others.
    outcomes = run_suites(EXPECTED, ["TestGone::test_odd[2]", "TestGone::test_odd[3]"])
    assert outcomes.of("TestGone", "error") == set()
    assert outcomes.of("TestGone", "xfailed") == outcomes.of("TestGone", "passed") == {"test_odd"}


def test_a_test_of_the_contract_cannot_be_overridden() -> None:
    def pass_always(self: LLMBackendSuite) -> None:
        """Nothing."""

    for replacement in (pass_always, None):
        with pytest.raises(TypeError, match="overrides test_nothing_is_printed"):
            type("TestX", (LLMBackendSuite,), {"test_nothing_is_printed": replacement})


@pytest.mark.parametrize(
    ("expected", "message"),
    [({"test_no_such_thing": "because"}, "not one of its tests"), ({"test_nothing_is_printed": " "}, "needs a reason")],
)
def test_an_expected_failure_needs_a_test_and_a_reason(expected: dict[str, str], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        type("TestX", (LLMBackendSuite,), {"xfail": expected})


def test_a_subclass_may_add_tests_of_its_own() -> None:
    type("TestX", (LLMBackendSuite,), {"test_of_my_own": lambda self: None})
