"""The suite for conversations lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import ConversationSuite

BROKEN = {
    "NamesNobody": "test_each_speaks_under_its_own_name_in_the_one_run",
    "Deaf": "test_each_hears_what_was_said_before_in_a_valid_conversation",
    "CountsNothing": "test_what_they_use_adds_up_and_a_limit_holds_for_all",
    "HearsNoHistory": "test_it_goes_on_where_it_ended",
    "BeginsWithTheFirst": "test_a_call_that_needs_approval_waits_and_is_made_by_the_one_who_wanted_it",
    "AsksForNothing": "test_its_rules_for_calls_hold_for_its_members",
    "LosesTheLastResult": "test_cancelling_it_ends_the_speech_and_leaves_a_valid_history",
    "ClosesNothing": "test_left_at_any_point_it_has_closed_all_that_it_iterates",
    "ResumesFromTheStart": "test_a_recorded_one_goes_on_wherever_it_was_interrupted_or_says_that_it_cannot",
    "Polite": "test_a_member_that_fails_ends_it_with_the_error",
    "LikesSilence": "test_an_empty_answer_ends_it_and_says_so",
    "TakesTwins": "test_members_that_cannot_be_told_apart_are_refused",
}
"""A kind of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import ConversationSuite

for name in NAMES:
    globals()[f"Test{name}"] = type(f"Test{name}", (ConversationSuite,), {"component": f"jackfield-zoo/{name}"})
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(ConversationSuite) if name.startswith("test_")}


def test_a_correct_conversation_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("conversation")
    pairs = checks.with_laws(BROKEN)
    selected = ["TestPanel", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['Panel', *{[name for name, _ in pairs]}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestPanel", "passed") == EVERY_TEST
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert set(BROKEN.values()) == EVERY_TEST
