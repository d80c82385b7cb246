"""The suite for sets of tools lets correct ones pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit.suites import ToolsetSuite

BROKEN = {
    "SetOfTwoKinds": "test_its_descriptor_names_a_set",
    "SetConnectsAtOnce": "test_making_an_agent_with_it_reaches_nothing",
    "SetLosesOne": "test_a_model_can_be_shown_its_tools",
    "SetGrowsWithRuns": "test_runs_one_after_the_other_and_at_the_same_time_have_the_same_tools",
    "SetReportsWhenAsked": "test_asking_for_its_tools_is_no_change",
    "SetLeavesATask": "test_a_run_leaves_no_task_behind",
    "SetHoldsOn": "test_a_run_that_is_cancelled_leaves_no_task_behind",
}
"""A set of the zoo, and the test that is made for its fault."""

SUITES = """
from jackfield_testkit.suites import ToolsetSuite

IMPATIENT = ("SetLeavesATask", "SetHoldsOn", "SetStartsATaskWhenCancelled")

class TestNamesNothing(ToolsetSuite):
    component = "jackfield-zoo/SetHonest"


for name in {*NAMES} - {"NamesNothing"}:
    globals()[f"Test{name}"] = type(f"Test{name}", (ToolsetSuite,), {
        "component": f"jackfield-zoo/{name}", "tools": ("now", "today"),
        "patience_s": 1.0 if name in IMPATIENT else 30.0})
"""
ZOO = Path(__file__).parent / "zoo"
EVERY_TEST = {name for name in dir(ToolsetSuite) if name.startswith("test_")}


def test_correct_sets_pass_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any]
) -> None:
    checks = read_checks("toolset")
    pairs = checks.with_laws(BROKEN)
    correct = ["SetHonest", "SetFixed", "SetChanging"]
    selected = [*(f"Test{name}" for name in correct), *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = {[*correct, *(name for name, _ in pairs)]}{SUITES}", selected, ZOO)
    assert [outcomes.of(f"Test{name}", "passed") for name in correct] == [EVERY_TEST] * 3
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert set(BROKEN.values()) == EVERY_TEST
