"""The suite for processors lets correct ones pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import ProcessorSuite

BROKEN = {
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "ForgetsItsHost": "test_it_takes_plugins_and_keys_from_its_host",
    "SaysAnotherPhase": "test_it_stands_in_a_phase_and_says_the_same_in_its_descriptor",
    "SaysNoOrder": "test_it_stands_in_a_phase_and_says_the_same_in_its_descriptor",
    "ChangesMetadata": "test_the_request_is_not_changed_but_replaced",
    "SendsNothing": "test_the_request_is_not_changed_but_replaced",
    "DropsMetadata": "test_tools_and_metadata_get_through",
    "DropsFunctions": "test_tools_and_metadata_get_through",
    "ForgetsSignatures": "test_an_answer_ends_once_and_nothing_comes_after",
    "ForgetsIds": "test_an_answer_ends_once_and_nothing_comes_after",
    "EndsInErrors": "test_an_error_inside_comes_out_as_it_is_and_closes_everything",
    "ReadsTheName": "test_another_processor_beside_it_changes_nothing",
    "ChangesMessages": "test_the_request_is_not_changed_but_replaced",
    "DropsTools": "test_tools_and_metadata_get_through",
    "Improves": "test_what_does_not_concern_it_passes_as_it_is",
    "DropsCalls": "test_calls_pass_as_they_are",
    "ThinksAloud": "test_reasoning_passes_and_stays_apart_from_the_text",
    "KnowsAll": "test_events_that_it_does_not_know_pass_in_their_order",
    "EndsTwice": "test_an_answer_ends_once_and_nothing_comes_after",
    "EndsAnew": "test_an_answer_ends_once_and_nothing_comes_after",
    "LooksAtPieces": "test_cutting_the_stream_elsewhere_never_changes_the_answer",
    "KeepsAfterReset": "test_after_a_reset_the_answer_begins_anew",
    "CountsCalls": "test_streaming_and_waiting_give_the_same",
    "NumbersItsThoughts": "test_streaming_and_waiting_give_the_same",
    "WaitsForAll": "test_it_holds_back_no_more_than_it_says",
    "ReadsAllAgain": "test_the_work_grows_with_the_length_and_not_with_its_square",
    "LooksBack": "test_no_text_makes_the_work_grow_faster_than_its_length[[1](]",
    "CutsOff": "test_no_text_makes_the_work_grow_faster_than_its_length[[1](]",
    "Backtracks": "test_no_text_makes_the_work_grow_faster_than_its_length[[1](]",
    "Translates": "test_an_error_inside_comes_out_as_it_is_and_closes_everything",
    "LeavesOpen": "test_leaving_early_closes_what_is_inside",
    "GoesOn": "test_a_cancelled_call_closes_what_is_inside",
    "SharesItsState": "test_a_call_leaves_nothing_behind_for_the_next",
    "SharesItsState2": "test_calls_at_the_same_time_do_not_mix",
    "DropsOptions": "test_options_get_through",
    "NeedsTextBesideCalls": "test_calls_pass_as_they_are",
    "EndsEmptyAnswersAnew": "test_an_answer_ends_once_and_nothing_comes_after",
    "EndsChangedAnswersAnew": "test_an_answer_ends_once_and_nothing_comes_after",
    "ForgivesLateErrors": "test_an_error_inside_comes_out_as_it_is_and_closes_everything",
    "LeavesOpenWhatItChanges": "test_leaving_early_closes_what_is_inside",
    "NotesOnce": "test_events_that_it_does_not_know_pass_in_their_order",
}
"""A processor of the zoo, and the test that is made for its fault; a figure tells two faults of one apart."""

SUITES = """
from jackfield.messages import Message
from jackfield.models import Retry
from jackfield_testkit.suites import ProcessorSuite

TEXTS = ["It is [secret], or [secre", "[secret][secret] [[secret] [sec"]

class TestHoldsAnything(ProcessorSuite):
    component = "jackfield-zoo/Honest"
    max_held = None


for name in {*NAMES} - {"HoldsAnything"}:
    limits = {} if name == "Honest" else {"patience_s": 1.0, "giving_up_s": 0.2}
    globals()[f"Test{name}"] = type(f"Test{name}", (ProcessorSuite,), {
        "component": f"jackfield-zoo/{name.rstrip('2')}", "texts": TEXTS, "max_held": 7, **limits})


class TestKnowsOneConversation(ProcessorSuite):
    component = "jackfield-zoo/KnowsOneConversation"
    messages = [Message("user", "Keep [secret] to yourself.")]
    texts = TEXTS


class TestRetry(ProcessorSuite):
    max_held = 0

    def make_processor(self):
        return Retry()
"""
ZOO = Path(__file__).parent / "zoo"
FOR_PLUGINS = "test_it_takes_plugins_and_keys_from_its_host"
EVERY_TEST = {name for name in dir(ProcessorSuite) if name.startswith("test_")}


def test_correct_processors_pass_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("processor")
    pairs = checks.with_laws(BROKEN)
    of_messages = "test_a_call_leaves_nothing_behind_for_the_next"
    selected = [
        "TestHonest",
        "TestRetry",
        f"TestKnowsOneConversation::{of_messages}",
        *(f"Test{name}::{test}" for name, test in pairs),
    ]
    outcomes = run_suites(f"NAMES = ['Honest', *{[name for name, _ in pairs]}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST
    assert outcomes.of("TestKnowsOneConversation", "passed") == {of_messages}
    assert outcomes.of("TestRetry", "skipped") == {FOR_PLUGINS}
    assert outcomes.of("TestRetry", "passed") == EVERY_TEST - {FOR_PLUGINS}
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert {test.partition("[")[0] for test in BROKEN.values()} == EVERY_TEST
