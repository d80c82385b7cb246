"""Try a test that fails once more, and say so: `pytest -p scripts.second_try`, as `make test` does.

Of twelve thousand tests, one that waits for a process or a signal may fail on a machine that is busy enough. It is then
run again in the same process, where a change that broke it breaks it again. If it passes, the run is not red, and its
summary counts the test as unsteady, with its first failure: that is a defect to mend, of the test or of the code. A
worker tries two tests again and no more, because what many tests do is not chance; and none that took long to fail,
because it may have hung. `make nightly` tries nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from _pytest.runner import runtestprotocol  # what the runner itself calls; there is no public way to run one test

TRIES = 2
LONG_S = 60.0
UNSTEADY = "its first failure"  # the name of a report's section
_tried_again: list[str] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test, and if it fails once more; what is reported is the last run."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if _is_worth_another_try(reports):
        _tried_again.append(item.nodeid)
        first = "\n".join(report.longreprtext for report in reports if report.failed)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not any(report.failed for report in reports):
            reports[-1].sections.append((UNSTEADY, first))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _is_worth_another_try(reports: Sequence[pytest.TestReport]) -> bool:
    failed = any(report.failed for report in reports)
    return failed and len(_tried_again) < TRIES and sum(report.duration for report in reports) < LONG_S


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Count a test that passed at the second try by itself; its pass is counted as of any test."""
    is_unsteady = report.when == "teardown" and report.passed and _first_failure(report)
    return ("unsteady", "U", "UNSTEADY") if is_unsteady else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The tests that passed at the second try, each with its first failure."""
    for report in terminalreporter.getreports("unsteady"):
        terminalreporter.section(f"unsteady: {report.nodeid}", sep="_", yellow=True)
        terminalreporter.write_line(_first_failure(report))


def _first_failure(report: pytest.TestReport) -> str:
    return next((text for name, text in report.sections if name == UNSTEADY), "")
