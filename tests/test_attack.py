"""The attack itself: a quick one holds, and a broken law is found, counted, and can be repeated."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attacks import kinds
from attacks.worker import kind_named

ROOT = Path(__file__).resolve().parent.parent
QUICK = ("faults", "cuts", "tools", "answers", "approval", "projects", "files", "mcp", "trees", "stops", "ownership")

BREAKING = """
import time
from attacks.kind import Attempt, Kind, law

def attempts(dice):
    yield Attempt("held", lambda: None)
    yield Attempt("broken", lambda: law(False, "it did not hold"))
    yield Attempt("foreign", lambda: [][1])
    yield Attempt("hanging", lambda: time.sleep(600), timeout_s=1)
    yield Attempt("dying", lambda: __import__("os").abort())
    yield Attempt("greedy", lambda: (bytearray(1 << 30), time.sleep(20)))
    yield Attempt("held again", lambda: None, counts=5)

KIND = Kind("A law.", attempts, memory_mb=600)
"""


def run(*words: str, timeout_s: float = 400, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "attacks", *words],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.mark.parametrize("name", kinds.NAMES)
def test_each_kind_begins_and_is_described_with_its_law(name: str) -> None:
    kind = kind_named(name)
    assert next(kind.attempts(random.Random(1))).name
    page = (ROOT / "docs/robustness.md").read_text()
    assert [page.count(f"\n| {name} | {text}") for text in (f"{kind.law} |", "")] == [1, 2]


def test_each_defence_on_the_page_has_the_test_that_notices_when_it_is_gone() -> None:
    page = (ROOT / "docs/robustness.md").read_text()
    rows = re.findall(r"^\| [^|]*\| `([\w-]+)/(\w+\.py)` \| `(test_\w+)` \|$", page, re.MULTILINE)
    assert len(rows) > 40
    missing = []
    for distribution, module, test in rows:
        (folder,) = [ROOT / "core"] if distribution == "core" else ROOT.glob(f"plugins/*/{distribution}")
        tests = "".join(path.read_text() for path in folder.glob("tests/*.py"))
        if not [*folder.glob(f"src/*/{module}")] or f"def {test}(" not in tests:
            missing.append((distribution, module, test))
    assert missing == []


@pytest.mark.slow
@pytest.mark.timeout(420)
def test_a_quick_attack_holds() -> None:
    done = run("--quick", "--only", ",".join(QUICK), "--jobs", "1", "--seconds", "360")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"in all +\d{3,} +\d{3,} +0\n", done.stdout), done.stdout


@pytest.fixture
def breaking(tmp_path: Path) -> str:
    """A search path with which there is one more kind, that breaks in each way."""
    (tmp_path / "breaking.py").write_text(BREAKING)
    kind = f"import attacks.kinds as k; k.__path__.append({str(tmp_path)!r}); k.NAMES = (*k.NAMES, 'breaking')\n"
    (tmp_path / "sitecustomize.py").write_text(kind)
    return os.pathsep.join([str(tmp_path), str(ROOT)])


@pytest.mark.slow
def test_what_breaks_hangs_dies_or_grows_is_counted_and_the_rest_goes_on(breaking: str) -> None:
    done = run("--only", "breaking", "--seconds", "150", PYTHONPATH=breaking)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"\nbreaking +11 +6 +5\n", done.stdout), done.stdout + done.stderr
    for told in ("broken: it did not hold", "foreign exception: IndexError", "it hung", "ended with -6", "600 MB"):
        assert told in done.stdout, done.stdout
    again = "python -m attacks --only breaking --seed 1 --attempt 1"
    assert again in done.stdout
    assert "1 broke" in run(*again.split()[3:], PYTHONPATH=breaking).stdout


def test_an_unknown_kind_is_refused_with_what_there_is() -> None:
    done = run("--only", "nonsense")
    assert done.returncode == 2
    assert "there are: faults, cuts" in done.stderr
