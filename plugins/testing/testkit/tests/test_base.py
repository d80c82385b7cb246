"""The contract of suites: nothing is overridden, what is newer than a suite's level is told and breaks nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jackfield_testkit.suites import Suite
from jackfield_testkit.suites.base import since

LEVELS = """
import pytest
from jackfield_testkit.suites.base import Suite, since


class Contract(Suite):
    @since("0.2")
    @pytest.mark.parametrize("number", [1, 2])
    def test_new(self, number, tmp_path):
        assert tmp_path.is_dir() and self.fine, f"it is not fine {number}"

    @since("0.2")
    def test_told(self):
        if not self.fine:
            pytest.fail("not fine")

    @since("0.1")
    def test_old(self):
        assert self.fine


class TestBehind(Contract):
    fine = False


class TestGood(Contract):
    fine = True


class TestAhead(Contract):
    level = "0.10"
    fine = False


class TestKnown(Contract):
    level = "0.2"
    fine = False
    xfail = {"test_new": "known", "test_told": "known", "test_old": "known"}
"""


class Contract(Suite):
    def test_a(self) -> None:
        """Nothing."""


def test_a_newer_test_that_fails_is_expected_to_until_the_level_is_raised(run_suites: Callable[..., Any]) -> None:
    outcomes = run_suites(LEVELS, ["TestBehind", "TestGood", "TestAhead", "TestKnown"])
    assert outcomes.of("TestBehind", "xfailed") == {"test_new", "test_told"}
    assert outcomes.of("TestBehind", "failure") == {"test_old"}
    assert outcomes.of("TestGood", "passed") == {"test_new", "test_told", "test_old"}
    assert outcomes.of("TestAhead", "failure") == {"test_new", "test_told", "test_old"}
    assert outcomes.of("TestKnown", "xfailed") == {"test_new", "test_told", "test_old"}


def test_an_expected_failure_of_a_newer_test_says_why() -> None:
    @since("0.2")
    def test_new(self: Suite) -> None:
        raise ValueError("no seed\nand more")

    with pytest.raises(pytest.xfail.Exception, match=r"^new in 0.2; your level is 0.1 \(ValueError: no seed\)$"):
        test_new(Contract())


def test_a_newer_test_is_a_plain_function() -> None:
    async def test_async(self: Suite) -> None:
        """Nothing."""

    with pytest.raises(TypeError, match="must be a regular function"):
        since("0.2")(test_async)  # type: ignore[type-var]


@pytest.mark.parametrize("level", ["new", "", None, 0.1])
def test_a_level_is_a_version(level: object) -> None:
    with pytest.raises(TypeError, match="must be a version"):
        type("TestX", (Contract,), {"level": level})
    with pytest.raises(TypeError, match="must be a version"):
        since(level)  # type: ignore[arg-type]


def test_a_class_that_pytest_would_not_collect_is_refused() -> None:
    with pytest.raises(TypeError, match="silently skip its tests"):
        type("TestX", (Contract,), {"__init__": lambda self: None})


def test_a_class_beside_the_suite_cannot_override_a_test_either() -> None:
    class Mixin:
        def test_a(self) -> None:
            """Pass always."""

    with pytest.raises(TypeError, match="overrides test_a"):
        type("TestX", (Mixin, Contract), {})
    type("TestY", (Contract, Mixin), {})  # here the suite's own comes first


@pytest.mark.parametrize("name", ["_expect_failures", "_stay_on_this_machine"])
def test_how_tests_are_run_cannot_be_overridden(name: str) -> None:
    with pytest.raises(TypeError, match=f"overrides {name}"):
        type("TestX", (Contract,), {name: None})
