"""Run each test where no other test has run before it: `make alone`.

python scripts/alone.py [--backwards] [--seconds S] [--jobs N] [files, folders and options of pytest]

Each test runs in a process of its own, a fork of one that has imported its file and has run nothing. What passes only
because an earlier test has imported, started or made something fails here. With `--backwards`, all tests of a file run
in one process, from the last to the first, and what fails only because of an earlier test passes; that is faster.

A file has S seconds, 300 if not given. Tests that have not begun by then are skipped, and counted. Slow tests are left
out unless `-m` asks for them.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol  # what the runner itself calls; there is no public way to run one test

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("tests", "core/tests", "plugins")
# Exit codes of pytest: the second says that all tests of a file are slow.
FINE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the files, a few at a time; 1 if a test of one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--backwards", action="store_true", help="run the tests of a file in one process, the last first"
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="how long the tests of a file may go on")
    parser.add_argument("--jobs", type=int, default=2, help="how many files run at a time")
    parser.add_argument("--this", action="store_true", help=argparse.SUPPRESS)  # in this process: what it calls itself
    options, rest = parser.parse_known_args(arguments)
    if options.this:
        sys.path[0] = str(ROOT)  # as for `python -m pytest`; processes that a test starts may import its module
        plugins = [Until(options.seconds), Backwards() if options.backwards else InForks()]
        return pytest.main(["-q", "-p", "no:cacheprovider", *rest], plugins=plugins)
    places = [Path(word).resolve() for word in rest if Path(word).exists()] or [ROOT / place for place in PLACES]
    handed_on = [word for word in rest if not Path(word).exists()]
    how = ["--this", "--seconds", str(options.seconds), *(["--backwards"] if options.backwards else [])]

    def run(file: Path) -> bool:
        command = [sys.executable, __file__, *how, "-m", "not slow", *handed_on, str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        is_fine = done.returncode in FINE
        said = (done.stdout + done.stderr).strip()
        print(f"{os.path.relpath(file, ROOT)}: {said.splitlines()[-1] if is_fine else said}", flush=True)  # noqa: T201
        return is_fine

    with ThreadPoolExecutor(options.jobs) as pool:
        running = [(file, pool.submit(run, file)) for file in files_of(places)]
        failed = [file for file, is_fine in running if not is_fine.result()]
    told = [f"{os.path.relpath(file, ROOT)} fails alone" for file in failed] or ["Every file passes alone."]
    print(*told, sep="\n")  # noqa: T201
    return 1 if failed else 0


def files_of(places: Sequence[Path]) -> Iterator[Path]:
    """The files of tests there."""
    for place in places:
        yield from [place] if place.is_file() else sorted(place.rglob("test_*.py"))


class Until:
    """A plugin of pytest that skips the tests that have not begun after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if time.monotonic() > self._ends_at:
            pytest.skip("the time of this file is over")


class Backwards:
    """A plugin of pytest that begins with the last test."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.reverse()


class InForks:
    """A plugin of pytest that runs each test, with its fixtures, in a fork."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        # In a fork, who stops it waits for ever for a thread that is not there. The alarm of the time-out stays here.
        faulthandler.cancel_dump_traceback_later()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            self._run(item, write)
        os.close(write)
        how = ""
        try:
            with open(read, "rb") as file:  # noqa: PTH123 - no path
                sent = file.read()
        except pytest.fail.Exception as error:  # the alarm of its time-out
            os.kill(child, signal.SIGKILL)
            sent, how = b"", str(error)
        status = os.waitpid(child, 0)[1]
        if not sent:
            how = how or f"its process ended with the status {os.waitstatus_to_exitcode(status)}"
            return [pytest.TestReport(item.nodeid, item.location, {}, "failed", how, "call")]
        hook = item.config.hook
        return [hook.pytest_report_from_serializable(config=item.config, data=one) for one in pickle.loads(sent)]  # noqa: S301 - our own

    def _run(self, item: pytest.Item, write: int) -> None:
        try:
            reports = runtestprotocol(item, log=False, nextitem=None)
            hook = item.config.hook
            made = [hook.pytest_report_to_serializable(config=item.config, report=report) for report in reports]
            with open(write, "wb") as file:
                pickle.dump(made, file)
        finally:
            os._exit(0)  # and run none of the parent's exit functions


if __name__ == "__main__":
    raise SystemExit(main())
