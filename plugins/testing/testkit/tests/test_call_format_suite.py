"""The suite for call formats lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import CallFormatSuite

BROKEN = {
    "ForgetsArguments": "test_a_model_is_told_all_about_each_tool",
    "TwoSystemMessages": "test_the_prompt_is_one_system_message_at_the_front",
    "ChangesMessages": "test_a_request_is_not_changed_but_replaced",
    "AlwaysPrompts": "test_a_request_without_tools_and_calls_stays_as_it_is",
    "DeafToChoice": "test_a_choice_of_tools_is_told_to_the_model_and_not_to_the_backend",
    "PassesChoiceOn": "test_a_choice_of_tools_is_told_to_the_model_and_not_to_the_backend",
    "OffersAnyway": "test_where_no_tool_may_be_called_none_is_offered_and_no_call_is_read",
    "LosesResults": "test_past_calls_and_results_are_told_in_order",
    "LeavesCalls": "test_past_calls_and_results_are_told_in_order",
    "LosesImages": "test_images_in_results_are_kept",
    "KeepsOneLine": "test_an_image_in_a_result_is_a_note_for_a_model_that_takes_none",
    "NeedsJson": "test_broken_and_empty_arguments_of_the_past_are_told_all_the_same",
    "EnglishOnly": "test_it_speaks_to_people_of_each_language",
    "ReadsAscii": "test_a_call_is_read_as_it_is_written",
    "SaysStop": "test_a_call_is_read_as_it_is_written",
    "OneIdForAll": "test_several_calls_are_read_in_order_each_with_an_id",
    "ReadsOneCall": "test_several_calls_are_read_in_order_each_with_an_id",
    "LosesWords": "test_text_before_a_call_stays_text",
    "KnowsItsTools": "test_a_call_of_an_unknown_tool_is_a_call",
    "HoldsOn": "test_text_without_a_call_passes_whole",
    "Mends": "test_half_a_call_at_the_length_limit_runs_no_tool_with_half_of_its_arguments",
    "Chokes": "test_whatever_a_model_writes_the_answer_ends_once_and_raises_nothing",
    "LooksAtPieces": "test_cutting_the_stream_elsewhere_never_changes_the_answer",
    "WaitsForAll": "test_text_is_passed_on_before_the_answer_is_complete",
    "DropsNative": "test_a_native_call_is_honoured_beside_those_in_the_text",
    "MixesIndices": "test_a_native_call_is_honoured_beside_those_in_the_text",
    "KnowsAll": "test_reasoning_and_other_events_pass_as_they_are",
    "SharesItsReader": "test_answers_at_the_same_time_do_not_mix",
    "ReadsAllAgain": "test_the_work_grows_with_the_length_and_not_with_its_square",
    "LooksBack": "test_no_text_makes_the_work_grow_faster_than_its_length[<tool_call>]",
    "CutsOff": "test_no_text_makes_the_work_grow_faster_than_its_length[```]",
    "Backtracks": "test_no_text_makes_the_work_grow_faster_than_its_length[```]",
}
"""A call format of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import CallFormatSuite

for name in NAMES:
    members = {"component": f"jackfield-zoo/{name}", "giving_up_s": 20.0 if name == "Honest" else 0.2}
    globals()[f"Test{name}"] = type(f"Test{name}", (CallFormatSuite,), members)
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(CallFormatSuite) if name.startswith("test_")}


def test_a_correct_format_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("call_format")
    pairs = checks.with_laws(BROKEN)
    selected = ["TestHonest", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['Honest', *{[name for name, _ in pairs]}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert {test.partition("[")[0] for test in BROKEN.values()} == EVERY_TEST
