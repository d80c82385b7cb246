"""The suite for tools lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import ToolSuite

BROKEN: dict[str, str] = {
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "ReadsPasswords": "test_it_does_what_it_declares_and_nothing_else",
    "ForgetsItsHost": "test_it_takes_plugins_and_keys_from_its_host",
    "SeesNoFiles": "test_a_tool_with_access_to_files_is_given_some",
    "LeavesOpen": "test_it_leaves_nothing_open",
    "Mumbles": "test_a_model_is_told_what_it_does_and_what_each_argument_is",
    "Backtracks": "test_a_model_is_told_what_it_does_and_what_each_argument_is",
    "TwoFaced": "test_its_descriptor_and_its_class_say_the_same",
    **dict.fromkeys(
        (
            "TwoFacedAboutRepeats",
            "TwoFacedAboutTurns",
            "TwoFacedAboutTime",
            "TwoFacedAboutFiles",
            "TwoFacedAboutText",
            "HidesAnEffect",
        ),
        "test_its_descriptor_and_its_class_say_the_same",
    ),
    "SaysResumableToo": "test_a_call_that_may_be_made_twice_does_no_more_the_second_time",
    "SaysTwoThings": "test_its_descriptor_and_its_class_say_the_same",
    "MisspellsAType": "test_parameters_in_a_list_lose_nothing_when_they_become_a_schema",
    "RequiresInWords": "test_parameters_in_a_list_lose_nothing_when_they_become_a_schema",
    "NamesTwice": "test_parameters_in_a_list_lose_nothing_when_they_become_a_schema",
    "ReadsByPattern": "test_who_declares_text_reads_arguments_however_they_are_written",
    "Miscounts": "test_its_examples_give_what_they_promise",
    "TakesDictsOnly": "test_arguments_may_be_a_dict_or_json_text",
    "EatsArguments": "test_a_call_does_not_change_its_arguments",
    "GivesAnything": "test_what_it_gives_fits_into_a_message",
    "Floods": "test_a_long_result_can_be_cut_and_none_is_a_flood",
    "KeepsItsLoop": "test_it_answers_on_any_event_loop_and_outside_of_a_run",
    "NeedsARun": "test_it_answers_on_any_event_loop_and_outside_of_a_run",
    "ReportsNumbers": "test_its_reports_are_texts",
    "ActsFirst": "test_arguments_that_do_not_fit_are_refused_before_anything_is_done",
    "BelievesAll": "test_arguments_that_do_not_fit_are_refused_before_anything_is_done",
    "BelievesText": "test_text_that_is_no_object_is_refused_before_anything_is_done",
    "NeedsWholeCharacters": "test_any_text_gives_a_result_or_an_error_for_the_model",
    "TellsItsTraceback": "test_what_a_model_is_told_of_an_error_has_no_traceback_and_no_path",
    "TellsItsPath": "test_what_a_model_is_told_of_an_error_has_no_traceback_and_no_path",
    "NeverFails": "test_what_a_model_is_told_of_an_error_has_no_traceback_and_no_path",
    "NeedsShortTexts": "test_a_megabyte_in_an_argument_gives_a_result_or_an_error_for_the_model",
    "StatesNoSecret": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "ShowsItsToken": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "LogsItsToken": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "TellsItsToken": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "WritesItsToken": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "CountsCalls": "test_what_may_be_cached_is_the_same_for_everybody_and_later",
    "DoesItTwice": "test_a_call_that_may_be_made_twice_does_no_more_the_second_time",
    "WritesOutside": "test_it_does_what_it_declares_and_nothing_else",
    "WritesAboutUmlauts": "test_it_does_what_it_declares_and_nothing_else",
    "Connects": "test_it_does_what_it_declares_and_nothing_else",
    "Starts": "test_it_does_what_it_declares_and_nothing_else",
    "StartsAtFirst": "test_it_does_what_it_declares_and_nothing_else",
    "ReadsAndWrites": "test_what_only_reads_writes_nothing",
    "Opens": "test_a_name_from_a_model_does_not_lead_out_of_the_workspace",
    "OpensInside": "test_a_name_from_a_model_does_not_lead_out_of_the_workspace",
    "OpensAbsolute": "test_a_name_from_a_model_does_not_lead_out_of_the_workspace",
    "OpensDecoded": "test_a_name_from_a_model_does_not_lead_out_of_the_workspace",
    "OpensRoundabout": "test_a_name_from_a_model_does_not_lead_out_of_the_workspace",
    "KnowsItsCaller": "test_what_may_be_cached_is_the_same_for_everybody_and_later",
    "PrintsAsItsToken": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "Overwrites": "test_a_name_from_a_model_does_not_lead_out_of_the_workspace",
    "WaitsForPipes": "test_a_pipe_in_the_workspace_makes_no_call_wait",
    "WritesIntoPipes": "test_a_pipe_in_the_workspace_makes_no_call_wait",
    "MixesCalls": "test_calls_of_one_turn_give_what_they_give_alone",
    "Swallows": "test_a_cancelled_call_ends_and_the_next_one_is_answered",
    "GoesOn": "test_a_cancelled_call_ends_and_the_next_one_is_answered",
    "StaysBusy": "test_a_cancelled_call_ends_and_the_next_one_is_answered",
    "NeverFree": "test_a_call_whose_time_is_over_is_a_result_and_the_next_one_is_answered",
}
"""A tool of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import ToolSuite

EXAMPLES = [({"text": "four"}, "4 characters"), ({"text": "grün 数据"}, lambda content: content == "7 characters")]

class TestOfAFunction(ToolSuite):
    component = "jackfield-zoo/count_letters"


for name in {*NAMES} - {"WithoutExamples", "OfAFunction"}:
    globals()[f"Test{name}"] = type(f"Test{name}", (ToolSuite,), {
        "component": f"jackfield-zoo/{name}", "examples": EXAMPLES,
        "config": {"token": "zoo-Zq83bXw4Rk2LpV7Tn", "password": "zoo-Hd82mNc5Jq9WsY3Gf"},
        "failures": [{"text": "fail"}], **LIMITS})


class TestWithoutExamples(ToolSuite):
    component = "jackfield-zoo/Honest"
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(ToolSuite) if name.startswith("test_")}
FOR_READERS = "test_what_only_reads_writes_nothing"
FOR_CACHES = "test_what_may_be_cached_is_the_same_for_everybody_and_later"
FOR_LISTS = "test_parameters_in_a_list_lose_nothing_when_they_become_a_schema"
FOR_TEXT = "test_who_declares_text_reads_arguments_however_they_are_written"
FOR_REPEATS = "test_a_call_that_may_be_made_twice_does_no_more_the_second_time"
FOR_FILES = "test_a_tool_with_access_to_files_is_given_some"
CORRECT = {
    "Honest": {FOR_READERS, FOR_REPEATS, FOR_LISTS, FOR_TEXT, FOR_CACHES},
    "Today": {FOR_READERS, FOR_REPEATS, FOR_LISTS, FOR_TEXT, FOR_CACHES},
    "Keeps": {FOR_READERS, FOR_REPEATS, FOR_LISTS, FOR_TEXT},
    "Waits": {FOR_READERS, FOR_REPEATS, FOR_LISTS, FOR_TEXT, FOR_CACHES},
    "Boasts": {FOR_READERS, FOR_REPEATS, FOR_LISTS, FOR_TEXT, FOR_CACHES},
    "OfQwen": {FOR_READERS, FOR_REPEATS, FOR_CACHES},
    "TakesText": {FOR_READERS, FOR_REPEATS, FOR_LISTS, FOR_CACHES},
}
"""A correct tool of the zoo, and the tests that are not for it."""


def test_a_correct_tool_passes_all(run_suites: Callable[..., Any]) -> None:
    outcomes = run_suites(f"LIMITS, NAMES = {{}}, {list(CORRECT)}{SUITES}", [f"Test{name}" for name in CORRECT], ZOO)
    for name, others in CORRECT.items():
        skipped = {*others, FOR_FILES}
        assert outcomes.of(f"Test{name}", "failure") | outcomes.of(f"Test{name}", "error") == set()
        assert outcomes.of(f"Test{name}", "skipped") == skipped
        assert outcomes.of(f"Test{name}", "passed") == EVERY_TEST - skipped


# One run for all of them: starting pytest costs more than most of these tests.
def test_each_broken_tool_is_caught(run_suites: Callable[..., Any], read_checks: Callable[[str], Any]) -> None:
    checks = read_checks("tool")
    without = ["test_its_examples_give_what_they_promise", "test_a_cancelled_call_ends_and_the_next_one_is_answered"]
    pairs = [*checks.with_laws(BROKEN), *(("WithoutExamples", test) for test in without)]
    selected = [f"Test{name}::{test}" for name, test in pairs]
    made = f"LIMITS, NAMES = {{'patience_s': 1.0}}, {[name for name, _ in pairs]}"
    outcomes = run_suites(made + SUITES, selected, ZOO)
    assert outcomes.not_caught(BROKEN) == {}
    assert outcomes.of("TestWithoutExamples", "failure") >= {*without}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
