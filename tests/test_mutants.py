"""The small changes of `make mutants`: that they are made, one at a time, and that a test can notice them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = '''
"""A module."""

REASONS = ("length", "content_filter")


def allowed(spent: int, limit: int) -> bool:
    """Say whether there is more."""
    if spent > limit and REASONS:
        raise ValueError("passed")
    return spent + 1 <= limit or False


class Account:
    async def finish(self, held, given):
        self.effects = held | given
        try:
            await self.spend(held, given, at_most=3)
        finally:
            await self.link.aclose()
        self.rest.clear()
'''


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts/mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def every(script: ModuleType, tmp_path: Path) -> Any:
    (tmp_path / "jackfield_x.py").write_text(SOURCE)
    return script.mutants(script.Area("x", tmp_path, ("",), ()))


def test_every_kind_of_change_is_made_and_each_alone(every: Any) -> None:
    assert {mutant.change for mutant in every} >= {
        "Gt becomes GtE",
        "LtE becomes Lt",
        "And becomes Or",
        "Add becomes Sub",
        "1 becomes 2",
        "1 becomes 0",
        "False becomes True",
        "without the element 'content_filter'",
        "without the element 'length'",
        "not: if spent > limit and REASONS",
        "always: if spent > limit and REASONS",
        "never: if spent > limit and REASONS",
        "only spent > limit",
        "only REASONS",
        "without raise ValueError('passed')",
        "without self.effects = held | given",
        "without given of a union",
        "without held of a union",
        "without the argument at_most=3",
        "arguments swapped: self.spend(held, given, at_most=3)",
        "without finally: await self.link.aclose()",
        "without self.rest.clear()",
    }
    assert {mutant.kind for mutant in every if ".clear()" in mutant.change or "aclose" in mutant.change} == {"clean-up"}
    assert len({mutant.text for mutant in every}) == len({mutant.name for mutant in every}) == len(every)
    assert {mutant.place for mutant in every} == {"", "allowed", "Account.finish"}
    for mutant in every:
        compile(mutant.text, str(mutant.file), "exec")


def test_a_sample_is_the_same_each_time_and_has_all_kinds_alike(script: ModuleType, every: Any) -> None:
    chosen = script.sample(every, count=12, seed=1)
    assert chosen == script.sample(every, count=12, seed=1)
    assert chosen != script.sample(every, count=12, seed=2)
    kinds = Counter(mutant.kind for mutant in chosen)
    assert set(kinds) == {mutant.kind for mutant in every}
    assert len(script.sample(every, count=1000, seed=1)) == len(every)


def test_code_that_is_added_leaves_the_choice_as_it_is(script: ModuleType, every: Any, tmp_path: Path) -> None:
    before = {mutant.name for mutant in script.sample(every, count=10, seed=1)}
    (tmp_path / "jackfield_x.py").write_text(f"LATER = 1\n\n\ndef more(x):\n    return x > 1\n{SOURCE}")
    after = script.sample(script.mutants(script.Area("x", tmp_path, ("",), ())), count=10, seed=1)
    assert len(before & {mutant.name for mutant in after}) >= 7


def test_a_share_has_dropped_when_chance_alone_rarely_gives_so_few(script: ModuleType) -> None:
    recorded = script.Score(7, 8)
    assert [script.Score(noticed, 8).is_below(recorded) for noticed in range(9)] == [True] * 4 + [False] * 5
    assert not script.Score(0, 0).is_below(recorded), "nothing was tried"
    always = script.Score(8, 8)
    assert [script.Score(noticed, 8).is_below(always) for noticed in (5, 6, 7, 8)] == [True, False, False, False]


CHANGED_IN_MEMORY = """
import gc
from typing import overload

LIMIT = 3

def double(x):
    return 2 * x

def logged(function):
    def wrapper(*arguments):
        return function(*arguments) + 10
    return wrapper

@logged
def triple(x):
    return 3 * x

@overload
def read(x: int) -> int: ...
@overload
def read(x: str) -> str: ...
def read(x):
    return x or None

def spin():
    while True:
        return "stopped"

def never_called():
    return 1

class Box:
    size = 4

    @property
    def half(self):
        return self.size // 2

gc.freeze()  # as programs do before they fork
"""
TESTS_OF_CHANGES = """
import os
import pytest

def test_double():
    import changed_in_memory
    assert changed_in_memory.double(4) == 8

def test_the_rest():
    from changed_in_memory import Box, read, spin, triple
    assert triple(2) == 16
    assert read(5) == 5
    assert Box().half == 2
    assert spin()

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("folder")

def test_a_fixture(folder):
    assert folder.is_dir()

def test_that_fails():
    assert False

@pytest.mark.skip
def test_that_is_skipped():
    assert False
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("is_loaded", [True, False], ids=["loaded before", "loaded by a test"])
def test_changes_in_memory_are_noticed_by_the_tests_that_reach_them(
    script: ModuleType, tmp_path: Path, is_loaded: bool
) -> None:
    module = tmp_path / "changed_in_memory.py"
    module.write_text(CHANGED_IN_MEMORY)
    test = tmp_path / "test_it.py"
    test.write_text(("import changed_in_memory\n" if is_loaded else "") + TESTS_OF_CHANGES)
    of_each = {
        "double": ("2 becomes 3", True),
        "triple": ("3 becomes 4", True),
        "logged.wrapper": ("10 becomes 11", True),
        "read": ("only None", True),
        "Box.half": ("2 becomes 3", True),
        "spin": ("True becomes False", True),
        "never_called": ("1 becomes 2", False),
        "Box": ("4 becomes 5", False),  # runs at import, in the first test or before
        "": ("3 becomes 4", False),
    }
    every = script.mutants(script.Area("x", tmp_path, (module.name,), ()))
    chosen = [mutant for mutant in every if of_each.get(mutant.place, ("",))[0] == mutant.change]
    assert {mutant.place for mutant in chosen} == set(of_each)

    changes = [
        {"file": str(module), "lines": mutant.lines, "plain": mutant.plain, "text": mutant.text} for mutant in chosen
    ]
    (tmp_path / "job.json").write_text(json.dumps({"folder": str(tmp_path), "changes": changes}))
    options = [f"--changes={tmp_path / 'job.json'}", f"--outcome={tmp_path / 'outcome.json'}", "--forks=2"]
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "tests.support.changes", *options, str(test)]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)

    assert (tmp_path / "outcome.json").exists(), ended.stdout + ended.stderr
    outcome = json.loads((tmp_path / "outcome.json").read_text())
    noticed = {mutant.place: seen for mutant, seen in zip(chosen, outcome["noticed"], strict=True)}
    assert noticed == {place: is_noticed for place, (_, is_noticed) in of_each.items()}
    assert [name.rpartition("::")[2] for name in outcome["failed"]] == ["test_that_fails"]
    assert module.read_text() == CHANGED_IN_MEMORY


@pytest.mark.slow
def test_a_change_is_noticed_by_a_test_that_looks_and_by_no_other(script: ModuleType, tmp_path: Path) -> None:
    area = script.areas()["multimodal"]
    looks, looks_away = tmp_path / "test_looks.py", tmp_path / "test_looks_away.py"
    looks.write_text("""
from jackfield_multimodal.processor import Multimodal
def test_it():
    assert Multimodal.__module__ and Multimodal.phase == "input"
""")
    looks_away.write_text("import jackfield_multimodal.processor\ndef test_it():\n    pass\n")
    copies = script.Copies(tmp_path / "copies", 1)
    file = ROOT / area.root / "jackfield_multimodal/processor.py"
    broken = file.read_text().replace('= "input"', '= "transport"')
    assert broken != file.read_text()
    mutant = script.Mutant(file, (1, 1), "Multimodal", "constant", "another phase", broken, file.read_text())
    for tests, noticed in ((looks, True), (looks_away, False)):
        looking = script.replace(area, tests=(str(tests),))
        assert not copies.is_noticed(looking, None)
        assert copies.is_noticed(looking, mutant) is noticed
    assert file.read_text() != broken, "the repository itself is never changed"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has code that looks for processes")
def test_the_tests_of_a_change_see_no_processes_but_their_own(script: ModuleType, tmp_path: Path) -> None:
    looks = tmp_path / "test_looks.py"
    looks.write_text("""
from pathlib import Path
def test_it():
    others = [path.read_text() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert len(others) <= 2 and all("test_looks.py" in one for one in others), others
""")
    assert script._run_tests(script.replace(script.areas()["multimodal"], tests=(str(looks),)), ROOT) == 0


def test_every_distribution_and_package_of_the_core_is_an_area(script: ModuleType) -> None:
    found = script.areas()
    assert {path.parent.name for path in ROOT.glob("plugins/*/*/pyproject.toml")} <= set(found)
    assert {f"core.{path.parent.name}" for path in (ROOT / "core/src/jackfield").glob("*/__init__.py")} <= set(found)
    for area in found.values():
        assert all((ROOT / area.root / source).exists() for source in area.sources), area
        assert area.tests, area
        assert all((ROOT / test).exists() for test in area.tests), area


def test_what_was_recorded_is_about_areas_that_there_are(script: ModuleType) -> None:
    assert set(script.recorded()) <= set(script.areas())
    assert all(reason.strip() for reason in script.equivalents().values())
