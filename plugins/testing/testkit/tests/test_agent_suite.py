"""The suite for agents lets correct ones pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.agents import Agent, BasicAgent
from jackfield_testkit.suites import AgentSuite
from jackfield_testkit.suites.agent_parts import agents_in

BROKEN = {
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "ForgetsItsHost": "test_it_takes_plugins_and_keys_from_its_host",
    "FindsOtherPlugins": "test_agents_that_it_makes_find_the_plugins_that_it_finds",
    "SaysNothing": "test_it_answers_and_comes_to_an_end",
    "KnowsNoLimits": "test_a_limit_of_turns_ends_it_and_says_so",
    "NeverTires": "test_without_any_wish_it_ends_all_the_same",
    "CountsTurnsOnly": "test_other_limits_end_it_and_say_so",
    "CountsNoCalls": "test_other_limits_end_it_and_say_so",
    "CountsNoTokens": "test_other_limits_end_it_and_say_so",
    "AnswersInReverse": "test_calls_of_one_turn_run_beside_each_other_and_are_answered_in_order",
    "GivesTheLastWhenAwaited": "test_all_ways_to_run_give_the_same",
    "GivesTheLastAtOnce": "test_all_ways_to_run_give_the_same",
    "AsksWithoutCalls": "test_all_ways_to_run_give_the_same",
    "KeepsConfig": "test_model_options_of_a_run_reach_the_model_in_that_run",
    "HearsTheCaller": "test_its_system_message_and_the_callers_both_reach_the_model",
    "ReadsLanguagesOnly": "test_the_language_of_the_question_is_that_of_what_it_adds",
    "TakesThoughtsForAnAnswer": "test_an_empty_reply_is_no_answer_and_no_endless_run",
    "NamesFiles": "test_a_file_that_is_handed_over_is_used_or_named",
    "TakesSilenceForAnAnswer": "test_an_empty_reply_is_no_answer_and_no_endless_run",
    "LosesResults": "test_a_call_is_made_and_the_model_reads_the_result",
    "NeedsItsTools": "test_a_tool_that_does_not_exist_is_told_to_the_model",
    "FailsWithItsTools": "test_a_tool_that_fails_is_told_to_the_model_and_ends_nothing",
    "OneByOne": "test_calls_of_one_turn_run_beside_each_other_and_are_answered_in_order",
    "CountsFromZero": "test_events_are_numbered_and_the_last_says_how_it_ended",
    "EndsTwice": "test_events_are_numbered_and_the_last_says_how_it_ended",
    "HidesBeginnings": "test_turns_and_calls_begin_before_they_end",
    "BeginsTwice": "test_turns_and_calls_begin_before_they_end",
    "CostsNothing": "test_what_it_cost_is_summed_over_its_turns",
    "HidesErrors": "test_an_error_of_the_model_is_raised_and_is_the_last_event",
    "GivesTheLast": "test_all_ways_to_run_give_the_same",
    "GivesOneList": "test_lists_grow_and_those_given_out_never_change",
    "ChangesMessages": "test_the_messages_it_is_given_are_not_changed",
    "ForgetsConfig": "test_model_options_of_a_run_reach_the_model_in_that_run",
    "HearsItself": "test_its_system_message_and_the_callers_both_reach_the_model",
    "Forgets": "test_a_conversation_goes_on_with_what_a_run_gave",
    "GivesUpCalls": "test_a_conversation_that_broke_off_in_a_call_goes_on_with_the_call",
    "BelievesHistories": "test_a_call_that_stands_in_the_conversation_is_made_only_if_the_caller_says_so",
    "AsksNobody": "test_a_call_that_needs_approval_waits_for_a_yes",
    "TakesFilesOfAnybody": "test_files_of_the_conversation_are_those_that_the_user_gave",
    "DropsContainedFiles": "test_tools_read_the_files_that_messages_contain",
    "ReadsEachFile": "test_a_file_that_nobody_can_read_is_for_tools_and_ends_no_run",
    "DropsFiles": "test_a_file_that_is_handed_over_is_used_or_named",
    "ForgivesMissingFiles": "test_a_missing_file_is_an_error",
    "ForgetsWhoAsks": "test_what_a_program_passes_for_its_tools_reaches_them",
    "ForgetsRules": "test_rules_for_its_calls_hold",
    "ForgetsToolboxes": "test_tools_that_are_made_for_the_run_are_shown_and_called",
    "ThinksBeforeCancels": "test_a_cancel_ends_it_before_its_first_turn",
    "ThinksBeforeTheClock": "test_the_time_limit_ends_it_before_its_first_turn_and_its_progress_is_seen",
    "ReadsOn": "test_a_cancel_ends_it_while_a_document_is_read",
    "BeginsAnew": "test_an_answer_that_does_not_fit_is_asked_for_again_and_counts_against_the_limits",
    "SpeaksEnglish": "test_the_language_of_the_question_is_that_of_what_it_adds",
    "EndsInEnglish": "test_the_language_of_the_question_is_that_of_what_it_adds",
    "EndsAsItWasAsked": "test_the_language_of_the_question_is_that_of_what_it_adds",
    "SumsUp": "test_a_cancelled_run_asks_its_model_nothing_more",
    "LeavesCallsOpen": "test_a_cancelled_run_ends_with_a_history_that_is_valid",
    "SaysUndone": "test_a_call_that_was_stopped_is_not_said_to_be_undone",
    "AllowsRepetition": "test_as_a_tool_it_does_not_say_that_a_failed_call_may_be_repeated",
    "LeavesOpen": "test_a_run_that_is_left_early_leaves_nothing_behind",
    "ClosesByChance": "test_a_run_that_is_left_at_any_point_has_closed_all_that_it_iterates",
    "StaysBusy": "test_a_run_that_is_left_early_leaves_nothing_behind",
    "ForgetsWhoWaits": "test_as_a_tool_of_another_agent_it_answers_within_the_limits_of_both",
    "HidesAgentsBelow": "test_agents_are_tools_of_it_and_what_they_use_counts",
    "MakesMessagesOfDicts": "test_a_question_in_any_form_and_asked_in_any_way_has_one_answer",
    "TakesAnyOption": "test_an_option_that_it_does_not_have_is_refused_by_its_name",
    "HidesWhatTurnsUse": "test_as_a_tool_it_answers_one_level_deeper_and_what_it_uses_counts",
    "NeedsAQuestionLast": "test_a_conversation_that_is_handed_over_to_it_goes_on_in_the_same_run",
    "KeepsConversations": "test_it_hands_a_conversation_over_or_refuses_handoffs",
    "WorksInTheBackground": "test_cancelling_an_agent_above_ends_what_it_does",
    "LeavesAgentsOpen": "test_cancelling_it_ends_the_agents_that_it_has_asked",
    "ForgetsRulesAbove": "test_the_agent_above_decides_about_calls_that_need_approval",
    "AsksAgain": "test_an_answer_that_is_recorded_is_not_asked_for_again",
    "BeginsAgain": "test_what_it_has_recorded_is_not_done_again_wherever_it_was_interrupted",
    "MixesRuns": "test_runs_at_the_same_time_do_not_mix",
}
"""An agent kind of the zoo, and the test that is made for its fault."""

SUITES = """
import pytest

from jackfield.agents import Agent, BasicAgent
from jackfield_testkit.suites import AgentSuite
from jackfield_testkit.suites.agent_parts import agents_in

for name in NAMES:
    members = {"component": f"jackfield-zoo/{name}", "patience_s": 0.2 if name == "Hangs" else 20.0}
    globals()[f"Test{name}"] = type(f"Test{name}", (AgentSuite,), members)


class TestFnCall(AgentSuite):
    component = "fncall"


class TestMadeByHand(AgentSuite):
    component = "jackfield-zoo/Honest"

    def make_agent(self, script, tools=(), **options):
        return super().make_agent(script, tools, **options)
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(AgentSuite) if name.startswith("test_")}


def test_correct_agents_pass_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("agent")
    pairs = checks.with_laws(BROKEN)
    selected = ["TestHonest", "TestFnCall", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['Honest', *{[name for name, _ in pairs]}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestHonest", "passed") == outcomes.of("TestFnCall", "passed") == EVERY_TEST
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert outcomes.cases("TestHonest") == checks.cases.keys()
    assert set(BROKEN.values()) == EVERY_TEST


@pytest.mark.parametrize("hold", [lambda one: [one], lambda one: (one,), lambda one: {"a": one}, lambda one: [(one,)]])
def test_the_agents_that_an_agent_holds_are_found_however_it_holds_them(hold: Callable[[Agent], object]) -> None:
    inner, outer = BasicAgent(), BasicAgent()
    vars(outer)["held"] = hold(inner)
    assert [*agents_in({"agent": outer})] == [outer, inner]
