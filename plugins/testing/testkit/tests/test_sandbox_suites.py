"""The suites for sandboxes let a correct one pass, and catch each that is wrong in one place."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.suites import CodeSandboxSuite, SandboxSuite


def bubblewrap_works() -> bool:
    return (
        shutil.which("bwrap") is not None
        and subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], check=False).returncode == 0
    )


pytestmark = pytest.mark.skipif(not bubblewrap_works(), reason="the sandboxes of the zoo need bubblewrap")

BROKEN = {
    "Boasts": "test_what_it_protects_from_is_stated",
    "SplitsPaths": "test_a_program_gets_its_arguments_its_folder_and_its_input",
    "ForgetsTheCode": "test_how_a_program_ends_is_known",
    "HandsOnTheEnvironment": "test_its_environment_is_what_it_was_given",
    "Forgets": "test_what_it_writes_in_its_folders_stays",
    "NeverStops": "test_a_program_that_takes_too_long_is_ended",
    "ReadsAll": "test_files_elsewhere_cannot_be_read",
    "WritesAll": "test_files_elsewhere_cannot_be_written",
    "ChangesAttributes": "test_attributes_of_files_elsewhere_cannot_be_changed",
    "ReachesSockets": "test_sockets_in_folders_elsewhere_cannot_be_reached",
    "LeavesSetUid": "test_no_file_that_it_leaves_runs_as_its_owner",
    "SpeaksUDP": "test_no_other_way_leads_to_the_network",
    "ShowsProcesses": "test_other_processes_cannot_be_seen",
    "HoldsMemory": "test_memory_that_is_no_address_space_is_limited",
    "CountsEachAlone": "test_the_memory_of_all_processes_is_limited",
    "LetsItselfBeTraced": "test_tracing_its_first_process_does_not_keep_it_alive",
    "WritesReadable": "test_what_is_readable_can_be_read_and_not_changed",
    "SharesTheNetwork": "test_the_network_can_be_used_only_where_that_is_asked_for",
    "SharesProcesses": "test_other_processes_cannot_be_signalled",
    "IgnoresMemory": "test_memory_is_limited",
    "IgnoresFiles": "test_the_size_of_a_file_is_limited",
    "CountsNothing": "test_the_number_of_processes_is_limited",
    "IgnoresCPU": "test_cpu_time_is_limited",
    "LeavesOrphans": "test_ending_it_ends_all_that_it_started",
    "OutlivesItsHost": "test_it_ends_with_the_process_that_started_it",
}
BROKEN_CODE = {
    "BoastsOfCode": "test_what_it_protects_from_is_stated",
    "Describes": "test_the_value_of_the_last_expression_comes_back_as_plain_data",
    "KeepsQuiet": "test_what_it_prints_comes_back",
    "TakesNothing": "test_it_finds_the_values_it_was_given",
    "HidesErrors": "test_what_goes_wrong_in_the_code_is_in_the_result",
    "Remembers": "test_nothing_is_kept_for_the_next_run",
    "Patient": "test_code_that_takes_too_long_is_ended",
    "ReadsFiles": "test_files_cannot_be_read",
    "Calls": "test_the_network_cannot_be_used",
}
"""A sandbox of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import CodeSandboxSuite, SandboxSuite

for suite, names in ((SandboxSuite, PROGRAMS), (CodeSandboxSuite, CODE)):
    for name in names:
        settings = {"component": f"jackfield-zoo/{name}"}
        if not name.startswith("Honest"):
            settings["patience_s"] = 1.0
        globals()[f"Test{name}"] = type(f"Test{name}", (suite,), settings)
"""
ZOO = Path(__file__).parent / "zoo"


def laws_of(suite: type) -> set[str]:
    return {name for name in dir(suite) if name.startswith("test_")}


def test_correct_sandboxes_pass_all_and_each_broken_one_is_caught(run_suites: Callable[..., Any]) -> None:
    every = {**BROKEN, **BROKEN_CODE}
    names = f"PROGRAMS = ['Honest', *{list(BROKEN)}]\nCODE = ['HonestCode', *{list(BROKEN_CODE)}]\n"
    selected = ["TestHonest", "TestHonestCode", *(f"Test{name}::{test}" for name, test in every.items())]
    outcomes = run_suites(names + SUITES, selected, ZOO)
    # It covers the number neither for root nor for others, and no machine's control group.
    not_claimed = {"test_the_number_of_processes_is_limited", "test_the_memory_of_all_processes_is_limited"}
    assert outcomes.of("TestHonest", "passed") == laws_of(SandboxSuite) - not_claimed
    assert outcomes.of("TestHonest", "skipped") == not_claimed
    assert outcomes.of("TestHonestCode", "passed") == laws_of(CodeSandboxSuite)
    assert {name: outcomes.of(f"Test{name}", "failure") for name in every} == {
        name: {test} for name, test in every.items()
    }


NEVER_WORKS = """
from jackfield_testkit.suites import SandboxSuite

class TestSilent(SandboxSuite):
    component = "jackfield-zoo/NeverWorks"

class TestExplained(SandboxSuite):
    component = "jackfield-zoo/NeverWorks"
    unusable_because = "the stars are not always right"

class TestLess(SandboxSuite):
    component = "jackfield-zoo/Honest"
    must_cover = frozenset({"files", "total_memory"})
"""


def test_a_sandbox_that_never_works_passes_only_if_its_author_says_why_and_one_that_covers_less_never(
    run_suites: Callable[..., Any],
) -> None:
    stated = "test_what_it_protects_from_is_stated"
    outcomes = run_suites(NEVER_WORKS, ["TestSilent", "TestExplained", f"TestLess::{stated}"], ZOO)
    assert outcomes.of("TestLess", "failure") == {stated}
    for outcome in ("passed", "failure"):
        assert outcomes.of("TestExplained", outcome) == set()
    assert outcomes.of("TestSilent", "passed") == set()
    assert outcomes.of("TestExplained", "skipped") == laws_of(SandboxSuite)
    assert outcomes.of("TestSilent", "error") == laws_of(SandboxSuite)


def test_every_test_has_a_sandbox_that_fails_it() -> None:
    assert set(BROKEN.values()) == laws_of(SandboxSuite)
    assert set(BROKEN_CODE.values()) == laws_of(CodeSandboxSuite)
