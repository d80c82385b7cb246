"""The small changes of `make mutants`: that they are made, one at a time, and that a test can notice them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

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


def test_every_kind_of_change_is_made_and_each_alone(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "jackfield_x.py").write_text(SOURCE)
    area = script.Area("x", tmp_path, ("",), (), 0.0)
    made = script.mutants(area)
    assert {mutant.change for mutant in made} >= {
        "Gt becomes GtE",
        "LtE becomes Lt",
        "And becomes Or",
        "Add becomes Sub",
        "1 becomes 2",
        "False becomes True",
        "the last entry is missing",
        "the condition becomes its opposite",
        "the operands in the other order",
        "without \"raise ValueError('passed')\"",
    }
    assert len({mutant.text for mutant in made}) == len(made)
    for mutant in made:
        compile(mutant.text, str(mutant.file), "exec")


def test_a_change_is_noticed_by_a_test_that_looks_and_by_no_other(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/jackfield_x.py").write_text(SOURCE)
    looks, looks_away = tmp_path / "test_looks.py", tmp_path / "test_looks_away.py"
    imported = "from jackfield_x import allowed\n"
    looks.write_text(imported + "def test_it() -> None:\n    assert allowed(1, 2)\n    assert not allowed(2, 2)\n")
    looks_away.write_text(imported + "def test_it() -> None:\n    assert allowed\n")
    for tests, noticed in ((looks, True), (looks_away, False)):
        area = script.Area(tests.stem, tmp_path / "src", ("",), (str(tests),), 0.0)
        (mutant,) = [one for one in script.mutants(area) if one.change == "LtE becomes Lt"]
        copies = script.Copies(area, tmp_path / "copies", 1)
        assert not copies.is_noticed(None)
        assert copies.is_noticed(mutant) is noticed


def test_every_area_has_its_sources_and_tests(script: ModuleType) -> None:
    for area in script.areas().values():
        assert all((ROOT / area.root / source).is_dir() for source in area.sources), area
        assert all((ROOT / test).exists() for test in area.tests), area
        assert 0 <= area.share < 1, area
