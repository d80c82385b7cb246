"""Record which contract tests a distribution passes, in a file that ships with it.

`pytest -p jackfield_testkit.conformance --conformance=src/jackfield_acme/conformance.json` writes one JSON object. The
object contains no times or paths, so the file changes only when the distribution does. The README describes its fields.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from packaging.utils import canonicalize_name

import jackfield
from jackfield.plugins import scan
from jackfield_testkit.suites.base import Suite, suite_of

FORMAT = 1
Outcome: TypeAlias = Literal["passed", "failed", "xfailed", "skipped", "not run"]
_FACTS = "jackfield_suite"  # the report attribute with the suite's own data
_PARTIAL = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the `--conformance` option."""
    group = parser.getgroup("jackfield")
    group.addoption("--conformance", metavar="PATH", help="write the results of the contract suites to this JSON file")


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder if `--conformance` is set."""
    path = config.getoption("--conformance")
    if not path:
        return
    file = Path(config.invocation_params.dir, path)
    if not file.parent.is_dir():
        raise pytest.UsageError(
            f"--conformance={path}: the folder {file.parent} does not exist; create it, or correct the path"
        )
    # With xdist, tests run in workers, and only their reports arrive here.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(file), "jackfield-conformance")


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note that tests of a suite were deselected."""
    for item in items:
        if _suite_class(item) is not None:
            item.config.stash[_PARTIAL] = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach a test's suite to its report, because only reports reach the process that writes the file."""
    report = yield
    suite = _suite_class(item)
    if suite is not None:
        setattr(report, _FACTS, _facts_of(suite, item))
    return report


def _suite_class(item: pytest.Item) -> type[Suite] | None:
    found = getattr(item, "cls", None)
    return found if isinstance(found, type) and issubclass(found, Suite) else None


def _facts_of(suite: type[Suite], item: pytest.Item) -> dict[str, object]:
    return {
        "suite": suite_of(suite).__name__,
        "class": suite.__name__,
        "level": suite.level,
        "dist": getattr(suite, "dist", ""),
        "component": getattr(suite, "component", ""),
        "test": item.name,
        "partial": item.config.stash.get(_PARTIAL, False),
        "all": sorted(name for name in dir(suite) if name.startswith("test_")),
    }


class _Recorder:
    """Collects reports, and writes the file at the end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._partial = False
        self._suites: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._all: dict[tuple[str, str, str], list[str]] = {}
        self._results: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one phase of a test. The worst outcome of all phases counts."""
        facts: Mapping[str, Any] | None = getattr(report, _FACTS, None)
        if facts is None:
            return
        key = (facts["suite"], facts["component"], facts["class"])
        self._suites[key] = {name: facts[name] for name in ("suite", "class", "level", "dist", "component")}
        self._all[key] = facts["all"]
        self._partial = self._partial or facts["partial"]
        results = self._results.setdefault(key, {})
        result = _result_of(report)
        if result and results.get(facts["test"], {}).get("outcome") != "failed":
            results[facts["test"]] = result

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the file if exactly one distribution was tested."""
        if session.config.option.collectonly:
            return
        tested = {canonicalize_name(facts["dist"]) for facts in self._suites.values() if facts["dist"]}
        if len(tested) != 1:
            found = ", ".join(sorted(tested)) or "none"
            self._say(session, f"not written: a PluginSuite must test exactly one package, got {found}")
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR
            return
        record = self._record(tested.pop(), exitstatus)
        text = json.dumps(record, indent=2, ensure_ascii=False, sort_keys=True)
        self._file.write_text(text + "\n", encoding="utf-8")
        self._say(session, f"{record['distribution']} {record['version']} {record['outcome']}")

    def _say(self, session: pytest.Session, text: str) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"conformance: {text}")

    def _record(self, distribution: str, exitstatus: int) -> dict[str, object]:
        suites = [self._suite(key) for key in sorted(self._suites)]
        outcomes = {result["outcome"] for suite in suites for result in suite["tests"].values()}
        return {
            "format": FORMAT,
            "kit": metadata.version("jackfield-testkit"),
            "core": jackfield.__version__,
            "distribution": distribution,
            "version": metadata.version(distribution),
            "components": sorted(row.id for row in scan().rows if row.distribution == distribution),
            "outcome": _overall(outcomes | ({"not run"} if self._partial else set()), exitstatus),
            "suites": suites,
        }

    def _suite(self, key: tuple[str, str, str]) -> dict[str, Any]:
        results = self._results[key]
        ran = {name.partition("[")[0] for name in results}
        missing = {name: {"outcome": "not run"} for name in self._all[key] if name not in ran}
        facts = {name: value for name, value in self._suites[key].items() if value and name != "dist"}
        return {**facts, "tests": results | missing}


def _overall(outcomes: Iterable[str], exitstatus: int) -> str:
    """Return the outcome of the whole run. An incomplete run proves nothing."""
    if "failed" in outcomes:
        return "failed"
    complete = "not run" not in outcomes and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    return "passed" if complete else "incomplete"


def _result_of(report: pytest.TestReport) -> dict[str, str] | None:
    """Return the result that a phase contributes to its test, or None if it contributes none."""
    if report.failed:
        return {"outcome": "failed"}
    if report.skipped and hasattr(report, "wasxfail"):
        return {"outcome": "xfailed", "reason": str(report.wasxfail).removeprefix("reason: ")}
    if report.skipped:
        longrepr = report.longrepr
        told = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        return {"outcome": "skipped", "reason": told.removeprefix("Skipped: ")}
    return {"outcome": "passed"} if report.when == "call" else None
