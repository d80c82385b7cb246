"""The record of a distribution says what was tested and how it ended, and nothing that changes by itself."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.forks import Forks

TESTS = """
import pytest
from jackfield_testkit.suites.base import Suite, since


class ToolSuite(Suite):
    def test_good(self):
        pass

    @pytest.mark.parametrize("value", ["b", "a"])
    def test_values(self, value):
        pass

    def test_bad(self):
        assert self.fine

    def test_left_out(self):
        pytest.skip("no such thing here")

    @since("0.2")
    def test_new(self):
        assert self.fine


class TestDist(ToolSuite):
    dist = "Jackfield_Acme"
    fine = FINE
    xfail = XFAIL


class TestTool(ToolSuite):
    component = "jackfield-acme/acme"
    level = "0.2"
    fine = True


class TestOwn:
    def test_of_my_own(self):
        pass
"""


@dataclass(frozen=True)
class Run:
    code: int
    said: str
    file: Path

    @property
    def record(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        return loaded


@pytest.fixture
def run(tmp_path: Path, forks: Forks) -> Callable[..., Run]:
    """Runs the tests above against a distribution in a folder, and gives what was recorded."""
    home = tmp_path / "site" / "jackfield_acme-1.2.3.dist-info"
    home.mkdir(parents=True)
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: jackfield-acme\nVersion: 1.2.3\n")
    (home / "entry_points.txt").write_text("[jackfield.v1]\ntool.acme = acme.plugin\nllm.acme = acme.plugin\n")

    def run(*options: str, fine: bool = True, tests: str = TESTS, xfail: str = "{}") -> Run:
        (tmp_path / "test_them.py").write_text(tests.replace("FINE", str(fine)).replace("XFAIL", xfail))
        named = [] if any(option.startswith("--conformance") for option in options) else ["--conformance=record.json"]
        program = "import sys, pytest; sys.exit(pytest.console_main())"
        command = ["-q", "-p", "no:cacheprovider", "-p", "jackfield_testkit.conformance", *named, *options]
        done = forks.run(
            program,
            *command,
            "test_them.py",
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(home.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            timeout_s=100,
        )
        return Run(done.returncode, done.stdout + done.stderr, tmp_path / "record.json")

    return run


def test_it_says_what_was_tested_and_how_each_test_ended(run: Callable[..., Run]) -> None:
    done = run()
    assert done.code == 0, done.said
    from jackfield import __version__

    assert done.record == {
        "format": 1,
        "kit": "0.1.0",
        "core": __version__,
        "distribution": "jackfield-acme",
        "version": "1.2.3",
        "components": ["llm.acme", "tool.acme"],
        "outcome": "passed",
        "suites": [
            {"suite": "ToolSuite", "class": "TestDist", "level": "0.1", "tests": _ended(new="passed")},
            {
                "suite": "ToolSuite",
                "class": "TestTool",
                "component": "jackfield-acme/acme",
                "level": "0.2",
                "tests": _ended(new="passed"),
            },
        ],
    }
    assert "conformance: jackfield-acme 1.2.3 passed" in done.said


def _ended(**ends: str) -> dict[str, dict[str, str]]:
    told = {
        f"test_{name}": {"outcome": outcome} for name, outcome in {"bad": "passed", "good": "passed", **ends}.items()
    }
    values = {f"test_values[{value}]": {"outcome": "passed"} for value in "ab"}
    return {**told, **values, "test_left_out": {"outcome": "skipped", "reason": "no such thing here"}}


def test_a_failure_is_told_and_an_expected_one_with_its_reason(run: Callable[..., Run]) -> None:
    failed = run(fine=False)
    assert failed.code == 1
    assert failed.record["outcome"] == "failed"
    tests = failed.record["suites"][0]["tests"]
    assert tests["test_bad"] == {"outcome": "failed"}
    assert tests["test_new"]["outcome"] == "xfailed"
    assert tests["test_new"]["reason"].startswith("new in 0.2; your level is 0.1")
    expected = run(fine=False, xfail='{"test_bad": "it cannot"}')
    assert expected.code == 0, expected.said
    assert expected.record["outcome"] == "passed"
    assert expected.record["suites"][0]["tests"]["test_bad"] == {"outcome": "xfailed", "reason": "it cannot"}


@pytest.mark.parametrize("options", [("-k", "not good"), ("--deselect", "test_them.py::TestDist::test_values[a]")])
def test_a_part_of_the_tests_is_no_proof(run: Callable[..., Run], options: tuple[str, ...]) -> None:
    done = run(*options)
    assert done.record["outcome"] == "incomplete"


def test_a_run_that_stops_early_is_no_proof(run: Callable[..., Run]) -> None:
    done = run("-x", fine=False)
    assert done.record["outcome"] == "failed"
    assert done.record["suites"][0]["tests"]["test_left_out"] == {"outcome": "not run"}


def test_the_record_is_the_same_each_time_and_with_workers(run: Callable[..., Run]) -> None:
    written = []
    for options in ((), (), ("-p", "xdist", "-n2")):
        done = run(*options, fine=False)
        assert done.code == 1, done.said
        written.append(done.file.read_text())
    assert len(set(written)) == 1
    assert str(done.file.parent) not in written[0]


@pytest.mark.parametrize(
    ("tests", "found"),
    [
        (TESTS.replace('dist = "Jackfield_Acme"', ""), "none"),
        (
            TESTS.replace("class TestTool(ToolSuite):", 'class TestTool(ToolSuite):\n    dist = "b"'),
            "b, jackfield-acme",
        ),
    ],
)
def test_a_record_is_of_one_distribution(run: Callable[..., Run], tests: str, found: str) -> None:
    done = run(tests=tests)
    assert done.code != 0
    assert not done.file.exists()
    assert f"a PluginSuite must test exactly one package, got {found}" in done.said


def test_a_folder_that_is_not_there_is_told_before_the_tests_run(run: Callable[..., Run]) -> None:
    done = run("--conformance=no/where.json")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "no does not exist; create it, or correct the path" in done.said


def test_who_does_not_ask_gets_no_file(run: Callable[..., Run]) -> None:
    done = run("--conformance=")
    assert done.code == 0
    assert not done.file.exists()
