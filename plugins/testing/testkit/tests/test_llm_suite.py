"""The suite for backends lets a correct one pass, and catches each that is broken in one place."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.suites import ChatModelSuite, LLMBackendSuite

BROKEN = {
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "NeverCloses": "test_closing_a_model_closes_its_connections",
    "EndsTwice": "test_a_stream_has_one_end_and_it_comes_last",
    "EndsTwiceWithTools": "test_a_stream_has_one_end_and_it_comes_last",
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
    "PrefersItsOptions": "test_extra_body_wins_over_an_option",
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
    "EndsTwice2": "test_every_answer_has_one_end_and_it_comes_last",
    "NeverLetsGo": "test_an_answer_that_is_left_does_not_hinder_the_next",
    "NeverLetsGo2": "test_the_next_call_after_an_abandoned_one_is_answered",
    "ReadsToTheEnd": "test_the_next_call_after_an_abandoned_one_is_answered",
    "TakesOneAtATime": "test_calls_at_the_same_time_are_all_answered",
    "BelongsToOneLoop": "test_one_model_serves_several_event_loops",
    "ClosesForGood": "test_a_closed_model_can_be_closed_again_and_used_again",
    "SharesState2": "test_threads_at_the_same_time_do_not_mix",
    "ConnectsAnew2": "test_blocking_calls_one_after_the_other_share_a_connection",
    "KeepsConnections2": "test_closing_a_stream_closes_its_connection",
    "KeepsConnections3": "test_leaving_a_blocking_iterator_closes_its_connection",
    "KeepsConnections4": "test_a_line_without_an_end_is_an_error_with_the_text_so_far",
    "IgnoresDeadlines": "test_a_deadline_ends_a_stream_that_is_never_silent",
    "TrustsKeptConnections": "test_a_server_that_closes_after_each_answer_costs_no_call[at once]",
    "TrustsKeptConnections2": "test_blocking_calls_survive_a_server_that_closes_after_each_answer",
    "TrustsKeptConnections3": "test_a_batch_survives_a_server_that_closes_after_each_answer",
    "AsksThreeTimes": "test_a_request_is_sent_twice_at_most",
    "AsksAgainInSilence": "test_a_kept_connection_that_is_silent_is_a_time_out_and_nothing_is_sent_twice",
    "TakesSilenceForALostConnection": "test_silence_for_longer_than_allowed_is_a_time_out[before]",
    "AsksAgainForTheRest": "test_an_answer_that_began_on_a_kept_connection_is_not_asked_for_again",
    "AsksAgainForTheRest2": "test_a_stream_that_broke_off_is_declared_void_before_it_starts_again",
    "ReusesBlindly2": "test_an_answer_that_comes_between_two_calls_is_nobodys",
    "NeedsTheEnd": "test_a_server_that_holds_a_finished_stream_open_costs_nothing",
    "LeavesTheEnd": "test_the_end_of_a_response_may_come_after_the_end_of_its_stream",
    "PutsSystemLast": "test_a_history_arrives_in_order",
    "AsksItsOwnModel": "test_the_configured_model_is_asked",
    "SendsAscii": "test_any_alphabet_arrives_unchanged[user]",
    "KeepsOneQuestion": "test_consecutive_questions_lose_nothing",
    "EndsWithAQuestion": "test_an_answer_that_was_begun_is_sent_last",
    "ReadsOneItem": "test_content_in_items_arrives_whole",
    "NeedsContent": "test_empty_content_is_sent_without_complaint",
    "SendsThoughts": "test_reasoning_of_earlier_turns_is_never_sent_as_text",
    "ChangesHistories": "test_a_history_is_left_as_it_was",
    "DropsFiles": "test_a_text_file_is_sent_as_text_with_its_name[user]",
    "DropsFiles2": "test_a_file_that_cannot_be_read_is_refused[gone.txt]",
    "ClaimsAudio": "test_audio_is_sent_or_refused_as_the_facts_say",
    "ClaimsVideo": "test_video_is_sent_or_refused_as_the_facts_say",
    "ForgetsItsOptions": "test_an_option_of_the_model_is_sent_with_every_call",
    "SendsBothNames": "test_the_longest_answer_is_sent_once",
    "SendsOurOptions": "test_jackfields_own_options_are_not_sent",
    "ChangesItsFacts": "test_its_facts_are_facts_and_stay_the_same",
    "FoldsOtherwise": "test_a_whole_answer_is_the_fold_of_its_stream[text]",
    "StripsPieces": "test_text_arrives_unchanged",
    "PassesHalvesOn": "test_characters_that_come_in_two_chunks_are_whole[text]",
    "DropsHalves": "test_half_a_character_that_stays_alone_is_replaced",
    "ChangesThoughtsOfObjects": "test_a_server_that_does_not_stream_is_understood[reasoning]",
    "NeedsAStream": "test_a_server_that_does_not_stream_is_understood[text]",
    "RepeatsItself": "test_growing_snapshots_end_with_the_whole_answer",
    "ForgetsWhoAnswered": "test_the_answer_says_which_model_and_which_response_it_is",
    "CountsTwice": "test_usage_is_reported_once",
    "NeedsUsage": "test_an_answer_without_usage_is_complete",
    "SimplifiesSchemas": "test_the_tools_are_sent_with_their_schemas",
    "SendsNoTools": "test_without_tools_nothing_about_them_is_sent",
    "ForgetsTheChoice": "test_the_choice_of_a_tool_is_sent[required-wire2]",
    "NamesCallsItself": "test_a_call_is_read",
    "GivesOneId": "test_calls_without_ids_get_different_ones",
    "NeedsArguments": "test_a_call_without_arguments_has_none[None]",
    "StripsArguments": "test_arguments_in_single_characters_and_any_alphabet_are_joined",
    "KnowsItsTools": "test_a_call_of_an_unknown_tool_is_reported_as_it_is",
    "JoinsNames": "test_a_name_that_is_repeated_with_every_piece_is_one_name",
    "DropsTextBesideCalls": "test_text_beside_a_call_is_kept",
    "MendsArguments": "test_broken_arguments_are_passed_on_as_they_are",
    "AnswersByIdAlone": "test_calls_of_two_turns_with_the_same_ids_are_answered_each",
    "SendsHistoriesAsTheyAre": "test_a_call_without_a_result_leaves_the_history_valid",
    "SendsHistoriesAsTheyAre2": "test_a_result_without_a_call_leaves_the_history_valid",
    "ForgetsIds2": "test_calls_without_ids_are_sent_with_ids",
    "IgnoresPauses": "test_a_rate_limit_says_how_many_seconds_to_wait",
    "ReadsNoDates": "test_a_rate_limit_says_until_when_to_wait",
    "ReadsNoCodes": "test_a_history_that_is_too_long_is_told_apart",
    "ReadsNoCodes2": "test_filtered_content_is_told_apart",
    "NeedsJsonErrors": "test_a_proxys_error_page_is_an_error_by_its_status",
    "TakesAnythingForAnAnswer": "test_a_response_that_nobody_can_read_is_an_error[]",
    "SkipsErrors": "test_an_error_inside_a_stream_is_an_error_with_the_text_so_far",
    "TakesAResetForTheEnd": "test_a_reset_is_an_error_with_the_text_so_far",
    "WaitsForAll2": "test_what_came_before_a_reset_is_passed_on",
    "CallsAbsenceAnAnswer": "test_a_server_that_is_not_there_is_a_connection_error",
    "IsPatientWithComments": "test_comments_do_not_prolong_an_answer_for_ever[event_timeout]",
    "ReadsNoComments": "test_comments_are_no_silence",
    "LimitsTheWhole": "test_a_slow_stream_that_is_never_silent_is_no_time_out",
    "CallsEverythingAnOverload": "test_what_cannot_succeed_is_not_repeated[400]",
    "CallsEverythingARefusal": "test_what_can_succeed_is_repeated_as_often_as_asked",
    "PicklesTextsAlone": "test_an_error_survives_pickling_with_its_facts",
    "SendsTheKeyTwice": "test_the_key_is_sent_in_a_header_alone",
    "ShowsTheKey": "test_the_key_is_in_no_representation",
    "ShowsRefusedAddresses": "test_an_address_with_a_password_is_refused_or_used_and_not_shown",
    "ListsWithOtherErrors": "test_a_server_that_does_not_answer_ends_at_the_time_out",
    "ListsWithForeignErrors": "test_a_broken_connection_is_an_error",
    "AsksForMorePages": "test_a_server_that_repeats_its_first_page_does_not_keep_the_client",
}
"""A backend of backends/, and the test that is made for its fault; a figure tells two laws for one fault apart."""

SUITES = """
import tiny_backend
import tiny_faults
import tiny_universal
from jackfield_testkit.suites import LLMBackendSuite


class Tiny(LLMBackendSuite):
    secrets = ("TINY_KEY",)

    def make_model(self, server_url, **overrides):
        name = type(self).__name__.removeprefix("Test").rstrip("0123456789").replace("HasNoSeed", "Tiny")
        backends = {**vars(tiny_universal), **vars(tiny_faults), **vars(tiny_backend)}
        return backends[name]({"model": "test-model", "base_url": server_url, "api_key": "sk-test-SECRET", **overrides})


class TestTiny(Tiny):
    pass


class TestHasNoSeed(Tiny):
    unsupported_options = {"seed": "a reason"}


TestRefusesLate = type("TestRefusesLate", (TestHasNoSeed,), {"patience_s": 1.0})
for name in BROKEN:
    if f"Test{name}" not in globals():
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


def test_a_correct_backend_passes_all(run_suites: Callable[..., Any], read_checks: Callable[[str], Any]) -> None:
    outcomes = run_suites("BROKEN = ()" + SUITES, ["TestTiny"], BACKENDS)
    assert outcomes.of("TestTiny", "failure") | outcomes.of("TestTiny", "error") == set()
    assert outcomes.of("TestTiny", "skipped") == set()
    assert outcomes.of("TestTiny", "passed") == EVERY_TEST
    assert outcomes.cases("TestTiny") == read_checks("llm").cases.keys()


# A few runs at the same time: of each, most is waiting for what must not come.
RUNS = 4


def test_each_broken_backend_is_caught_and_each_assertion_fails_for_one(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("llm")
    selected = checks.with_laws(BROKEN)
    names = list(dict.fromkeys(name for name, _ in selected))

    def run(part: int) -> Any:
        some = names[part::RUNS]
        tests = [f"Test{name}::{test}" for name, test in selected if name in some]
        return run_suites(f"BROKEN = {some}{SUITES}", tests, BACKENDS)

    with ThreadPoolExecutor(RUNS) as pool:
        outcomes = list(pool.map(run, range(RUNS)))
    failed = {name: set().union(*(one.of(f"Test{name}", "failure") for one in outcomes)) for name in BROKEN}
    assert {name: test for name, test in BROKEN.items() if test.partition("[")[0] not in failed[name]} == {}
    assert checks.not_failed(*outcomes) == {}
    assert checks.unknown() == set()


def test_every_law_has_a_backend_that_breaks_it() -> None:
    assert {test.partition("[")[0] for test in BROKEN.values()} == EVERY_TEST


LAWS = {
    "EndsTwice": "test_every_answer_has_one_end_and_it_comes_last",
    "ChangesSchemas": "test_nothing_that_was_given_is_changed",
    "Sleeps": "test_nothing_sleeps_on_the_event_loop",
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "NeverLetsGo": "test_an_answer_that_is_left_does_not_hinder_the_next",
    "TakesOneAtATime": "test_calls_at_the_same_time_are_all_answered",
    "KeepsADiary": "test_a_call_writes_no_file",
    "IgnoresItsTools": "test_tools_are_called_or_described_in_the_text",
}
"""A model of backends/tiny_model.py, and the test that is made for its fault."""

MODELS = """
import tiny_model
from jackfield_testkit.suites import ChatModelSuite


class Still(ChatModelSuite):
    tool_question = "What is the weather in Bern?"

    def make_model(self):
        return getattr(tiny_model, type(self).__name__.removeprefix("Test"))({"model": "test-model"})


for name in NAMES:
    globals()[f"Test{name}"] = type(f"Test{name}", (Still,), {})


class TestAsksForNothing(Still):
    tool_question = ""

    def make_model(self):
        return tiny_model.Still({"model": "test-model"})


class TestSaysWhy(TestAsksForNothing):
    cannot_show_tools = "its weights are not here"
"""


def test_a_correct_model_without_a_server_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    correct = ["Still", "StillOfFewFacts"]
    laws = {name for name in dir(ChatModelSuite) if name.startswith("test_")}
    checks = read_checks("chat")
    pairs = checks.with_laws(LAWS)
    selected = [*(f"Test{name}" for name in correct), *(f"Test{name}::{test}" for name, test in pairs)]
    names = dict.fromkeys([*correct, *(name for name, _ in pairs if name not in ("AsksForNothing", "SaysWhy"))])
    outcomes = run_suites(f"NAMES = {[*names]}{MODELS}", selected, BACKENDS)
    assert [outcomes.of(f"Test{name}", "passed") for name in correct] == [laws, laws]
    assert outcomes.not_caught(LAWS) == {}
    assert set(LAWS.values()) == laws
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()


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
    [
        ({"test_no_such_thing": "because"}, "not a test in this class"),
        ({"test_nothing_is_printed": " "}, "needs a reason"),
    ],
)
def test_an_expected_failure_needs_a_test_and_a_reason(expected: dict[str, str], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        type("TestX", (LLMBackendSuite,), {"xfail": expected})


def test_a_subclass_may_add_tests_of_its_own() -> None:
    type("TestX", (LLMBackendSuite,), {"test_of_my_own": lambda self: None})
