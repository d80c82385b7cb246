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


def suite_for(suite, name, **more):
    settings = {"component": f"jackfield-zoo/{name}"}
    if not name.startswith("Honest"):
        settings["patience_s"] = 1.0
    return type(f"Test{name}", (suite,), {**settings, **more})


for suite, names in ((SandboxSuite, PROGRAMS), (CodeSandboxSuite, CODE)):
    for name in names:
        globals()[f"Test{name}"] = suite_for(suite, name)

TestSilent = suite_for(SandboxSuite, "NeverWorks")
TestExplained = suite_for(SandboxSuite, "NeverWorks", unusable_because="the stars are not always right")
TestCoversLess = suite_for(SandboxSuite, "Honest", must_cover=frozenset({"files", "total_memory"}))
TestRunsOnlyCode = suite_for(SandboxSuite, "HonestCode")
"""
ZOO = Path(__file__).parent / "zoo"


def laws_of(suite: type) -> set[str]:
    return {name for name in dir(suite) if name.startswith("test_")}


ONLY_CODE = laws_of(CodeSandboxSuite) - laws_of(SandboxSuite)


def test_correct_sandboxes_pass_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("sandbox")
    every = {**BROKEN, **BROKEN_CODE}
    pairs = checks.with_laws(every)
    code = {name for name, test in pairs if test.partition("[")[0] in ONLY_CODE} | {"BoastsOfCode"}
    programs = {name for name, _ in pairs} - code - {"Silent", "Explained", "CoversLess", "RunsOnlyCode"}
    names = f"PROGRAMS = {sorted(programs)}\nCODE = ['HonestCode', *{sorted(code)}]\n"
    selected = ["TestHonest", "TestHonestCode", "TestSilent", "TestExplained"]
    selected += [f"Test{name}::{test}" for name, test in pairs if f"Test{name}" not in selected]
    outcomes = run_suites(names + SUITES, selected, ZOO)
    # It covers the number neither for root nor for others, and no machine's control group.
    not_claimed = {"test_the_number_of_processes_is_limited", "test_the_memory_of_all_processes_is_limited"}
    assert outcomes.of("TestHonest", "passed") == laws_of(SandboxSuite) - not_claimed
    assert outcomes.of("TestHonest", "skipped") == not_claimed
    assert outcomes.of("TestHonestCode", "passed") == laws_of(CodeSandboxSuite)
    assert outcomes.not_caught(every) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert checks.cases.keys() <= outcomes.cases("TestHonest") | outcomes.cases("TestHonestCode")
    # A sandbox that never works passes only if its author says why.
    assert outcomes.of("TestExplained", "skipped") == outcomes.of("TestSilent", "error") == laws_of(SandboxSuite)


def test_every_test_has_a_sandbox_that_fails_it() -> None:
    assert set(BROKEN.values()) == laws_of(SandboxSuite)
    assert set(BROKEN_CODE.values()) == laws_of(CodeSandboxSuite)
