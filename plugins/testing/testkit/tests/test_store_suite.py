"""The suite for stores lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import StoreSuite

BROKEN = {
    "HoldsUpTheLoop": "test_the_event_loop_is_never_held_up",
    "PutsTheNewestFirst": "test_entries_come_back_as_they_were_and_in_their_order",
    "StripsTexts": "test_entries_may_be_any_text",
    "WritesAtTheEnd": "test_what_was_appended_is_there_for_others_at_once",
    "BelievesWhatItIsTold": "test_a_run_is_listed_with_what_was_said_of_it",
    "ForgetsTitles": "test_a_run_is_listed_with_what_was_said_of_it",
    "ForgetsAgents": "test_a_run_is_listed_with_what_was_said_of_it",
    "ForgetsModels": "test_a_run_is_listed_with_what_was_said_of_it",
    "ForgetsSessions": "test_a_run_is_listed_with_what_was_said_of_it",
    "ForgetsParents": "test_a_run_is_listed_with_what_was_said_of_it",
    "ListsTheRunsOfAllSessions": "test_the_newest_run_is_the_first_of_the_list",
    "ListsTheRunsOfAllStates": "test_runs_are_listed_by_their_owner_and_state",
    "ListsBeforeItChooses": "test_runs_are_listed_by_their_owner_and_state",
    "DeletesWhatIsHeld": "test_a_run_is_held_by_whoever_began_it",
    "CallsAnOutageAtTheEndAnError": "test_an_outage_is_said_to_be_one",
    "ListsTheOldestFirst": "test_the_newest_run_is_the_first_of_the_list",
    "ListsTwenty": "test_a_list_has_the_newest_100_runs_unless_it_is_asked_for_more",
    "ListsTheRunsOfAllOwners": "test_runs_are_listed_by_their_owner_and_state",
    "ReadsOneEntryTooMany": "test_entries_are_read_from_any_place_on",
    "SignalsOneListener": "test_a_signal_reaches_every_other_process_that_listens",
    "TakesAnIdTwice": "test_an_id_is_given_once",
    "KnowsEveryRun": "test_a_run_that_there_is_not_is_an_error_of_its_own",
    "KeepsWhatIsDeleted": "test_a_run_that_is_deleted_is_gone_with_its_entries",
    "ForgetsConversations": "test_a_run_of_a_conversation_is_whole_without_the_runs_before_it",
    "ForgetsWhoWaits": "test_a_run_that_can_go_on_never_makes_room",
    "ForgetsWhatWasInterrupted": "test_a_run_that_can_go_on_never_makes_room",
    "LendsToAnybody": "test_a_run_is_held_by_whoever_began_it",
    "NeverLetsGo": "test_a_run_that_has_ended_is_free_and_has_its_state",
    "PutsEndsLast": "test_what_came_with_an_end_stays_where_it_was_when_the_run_goes_on",
    "ChangesTheStateOfWhatItHolds": "test_taking_hold_of_a_run_leaves_its_record_as_it_is",
    "KeepsWhatIsReleased": "test_a_run_that_was_released_is_free_and_keeps_its_record",
    "ListsWhatIsReleasedAsHeld": "test_a_run_that_was_released_is_free_and_keeps_its_record",
    "ReleasesEveryHold": "test_a_late_release_leaves_the_next_hold_of_the_same_store",
    "ReportsTheFirstWrite": "test_a_store_that_reports_writes_does_so_after_each_of_another_process",
    "RefusesOddTitles": "test_texts_about_a_run_may_be_any_text",
    "ConfirmsEveryHold": "test_an_append_of_nothing_confirms_the_hold",
    "CallsAnOutageAnError": "test_a_run_waits_for_its_store_and_acts_once",
    "WritesTwiceAfterAnOutage": "test_an_outage_is_said_to_be_one",
    "NeedsAWriteToLetGo": "test_a_run_that_ends_in_an_outage_is_free_while_its_process_lives",
    "LosesWhatItCannotWrite": "test_an_outage_is_said_to_be_one",
    "TrustsWhoWasThere": "test_who_has_lost_a_run_changes_nothing",
    "HoldsForEver": "test_a_store_that_is_closed_holds_nothing",
    "LetsSomeIn": "test_of_many_that_want_a_run_one_gets_it",
    "LendsToItsOwnTasks": "test_of_many_tasks_that_want_a_run_one_gets_it",
    "FailsInThreads": "test_runs_at_once_are_apart",
    "MixesRuns": "test_runs_at_once_are_apart",
    "LosesTheLastEntry": "test_a_run_that_waits_goes_on_with_another_store_object",
    "FindsAnyWord": "test_a_search_finds_the_runs_with_all_of_its_words",
    "FindsWithoutALimit": "test_a_search_gives_no_more_than_was_asked_for",
    "SearchesTheRunsOfAllOwners": "test_a_search_finds_the_runs_of_one_owner",
    "RenamesNothing": "test_a_run_gets_another_title_also_while_it_runs",
    "RenamesWhatIsMissing": "test_a_run_gets_another_title_also_while_it_runs",
    "SearchesTheFirstEntries": "test_a_run_is_found_as_it_is_now_and_not_after_it_was_deleted",
    "StatesNoSecret": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "ShowsItsPassword": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "TellsItsPassword": "test_a_secret_that_it_is_given_is_stated_and_shown_nowhere",
    "WritesAFile": "test_it_does_what_it_declares_and_nothing_else",
    "IgnoresLateEntries": "test_who_has_lost_a_run_changes_nothing",
    "ReadsTheLastAgain": "test_entries_are_read_from_any_place_on",
    "ReleasesOnce": "test_a_run_that_was_released_is_free_and_keeps_its_record",
    "HoldsWhatIsMissing": "test_a_run_that_there_is_not_is_an_error_of_its_own",
    "DeletesWhatIsMissing": "test_a_run_that_there_is_not_is_an_error_of_its_own",
    "NeedsTheRunBefore": "test_a_run_of_a_conversation_is_whole_without_the_runs_before_it",
}
"""A store of the zoo, and the test that is made for its fault."""

SUITES = """
import contextlib
from pathlib import Path

import pytest

from jackfield_testkit.suites import StoreSuite
from jackfield_zoo.stores import outages


class Suite(StoreSuite):
    patience_s = 5.0

    @pytest.fixture
    def outage(self):
        @contextlib.contextmanager
        def outage():
            outages.add(Path.cwd())
            try:
                yield
            finally:
                outages.discard(Path.cwd())

        return outage

    @pytest.fixture
    def limits(self):
        return {"most_runs": 5}


class TestDoesNoMore(StoreSuite):
    component = "jackfield-zoo/DoesNoMore"


for name in NAMES:
    if name == "DoesNoMore":
        continue
    globals()[f"Test{name}"] = type(f"Test{name}", (Suite,), {
        "component": f"jackfield-zoo/{name}", "config": {"password": "zoo-Zq83bXw4Rk2LpV7Tn"}})
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(StoreSuite) if name.startswith("test_")}


def test_a_correct_store_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("store")
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
