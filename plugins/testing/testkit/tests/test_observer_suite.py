"""The suite for observers lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import ObserverSuite

BROKEN = {
    "ChokesOnFilters": "test_it_takes_every_kind_of_event",
    "KnowsAllEvents": "test_it_takes_events_that_it_does_not_know",
    "NeedsWholeCharacters": "test_it_takes_any_text",
    "NeedsABeginning": "test_it_takes_what_it_has_not_seen_the_beginning_or_the_end_of",
    "MixesRuns": "test_runs_at_the_same_time_are_apart",
    "FailsAtTheEnd": "test_a_run_is_the_same_with_it",
    "Meddles": "test_a_run_is_the_same_with_it",
    "Edits": "test_it_changes_no_event",
    "Sleeps": "test_it_waits_for_nothing",
    "Asks": "test_it_waits_for_nothing",
    "NeverReturns": "test_it_comes_back_from_every_event",
    "KeepsAll": "test_it_holds_no_run_that_has_ended",
    "KeepsWhatWasLeft": "test_it_holds_no_run_that_has_ended",
    "StaysAwake": "test_it_keeps_no_program_from_ending",
    "LogsText": "test_what_is_said_in_a_run_is_in_no_log_and_in_no_file",
    "PrintsErrors": "test_what_is_said_in_a_run_is_in_no_log_and_in_no_file",
    "WritesADiary": "test_what_is_said_in_a_run_is_in_no_log_and_in_no_file",
    "StatesNoSecret": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "ShowsItsToken": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "LogsItsToken": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "WritesItsToken": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "Connects": "test_it_does_what_it_declares_and_nothing_else",
    "BeginsOnce": "test_it_takes_what_it_has_not_seen_the_beginning_or_the_end_of",
    "EndsOnce": "test_it_takes_what_it_has_not_seen_the_beginning_or_the_end_of",
}
"""An observer of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import ObserverSuite

class TestSaysLittle(ObserverSuite):
    component = "jackfield-zoo/Honest"
    writes_conversations = "a reason"


for name in {*NAMES} - {"SaysLittle"}:
    members = {"component": f"jackfield-zoo/{name}", "patience_s": 10.0 if name == "Honest" else 1.0}
    members["config"] = {"token": "zoo-Zq83bXw4Rk2LpV7Tn"}
    globals()[f"Test{name}"] = type(f"Test{name}", (ObserverSuite,), members)
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(ObserverSuite) if name.startswith("test_")}


def test_a_correct_observer_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("observer")
    pairs = checks.with_laws(BROKEN)
    selected = ["TestHonest", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['Honest', *{[name for name, _ in pairs]}]{SUITES}", selected, ZOO)
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST
    assert outcomes.of("TestHonest", "failure") == set()
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert outcomes.cases("TestHonest") == checks.cases.keys()
    assert set(BROKEN.values()) == EVERY_TEST
