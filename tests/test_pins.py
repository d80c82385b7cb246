"""Dependencies among our distributions have the bounds that `docs/versions.md` promises."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

LIBRARIES = "libraries"


@pytest.fixture(scope="module")
def pins(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("pins", root / "scripts/pins.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_pin_of_a_distribution_the_template_and_the_guides_follows_the_rule(pins: ModuleType, root: Path) -> None:
    differing = [str(path) for path, text in pins.texts_with_pins(root) if path.read_text(encoding="utf-8") != text]
    assert differing == [], "run `make known`"


def test_no_dependency_on_ours_lets_in_a_version_that_may_break_it(distributions: list[Any]) -> None:
    kinds = {one.name: "" if one.is_core else one.folder.parent.name for one in distributions}
    checked = set()
    for one in distributions:
        for text in one.requirements:
            requirement = Requirement(text)
            if requirement.name not in kinds or (requirement.name == "jackfield" and requirement.extras):
                continue
            bounds = requirement.specifier
            assert list(bounds.filter(["0.1.0", "0.1.7"])) == ["0.1.0", "0.1.7"], f"{one.name}: {text}"
            is_open = {version: bounds.contains(version) for version in ("0.2.0", "1.0.0", "2.0.0")}
            if requirement.name == "jackfield":
                assert is_open == {"0.2.0": True, "1.0.0": True, "2.0.0": False}, f"{one.name}: {text}"
            elif kinds[requirement.name] == LIBRARIES:
                # An extra of the core installs a library for its users and imports nothing of it.
                assert not any(is_open.values()), f"{one.name}: {text}"
            checked.add(kinds[requirement.name])
    assert {"", LIBRARIES, "sandboxes"} <= checked


@pytest.mark.parametrize(
    ("name", "bounds", "version", "is_imported", "expected"),
    [
        ("jackfield", ">=0.1,<2", "0.1.0", True, ">=0.1,<2"),
        ("jackfield", ">=0.3", "1.4.0", True, ">=0.3,<2"),
        ("jackfield", ">=0.3,<2", "2.0.0", True, ">=0.3,<3"),
        ("jackfield-http", ">=0.1,<2", "0.1.3", True, ">=0.1,<0.2"),
        ("jackfield-http", ">=0.1.2,<2", "0.1.3", True, ">=0.1.2,<0.2"),
        ("jackfield-http", ">=0.1,<0.2", "0.2.0", True, ">=0.2,<0.3"),
        ("jackfield-http", ">=0.9,<0.10", "1.2.0", True, ">=1,<2"),
        ("jackfield-html", ">=0.1,<2", "0.2.0", False, ">=0.1"),
    ],
)
def test_bounds_follow_the_version_in_the_repository(
    pins: ModuleType, name: str, bounds: str, version: str, is_imported: bool, expected: str
) -> None:
    written = pins.bounds_for(name, bounds, version, is_imported=is_imported)
    assert written == expected
    assert SpecifierSet(written).contains(version)


def test_the_page_about_versions_shows_the_pins_that_are_written(root: Path, distributions: list[Any]) -> None:
    page = (root / "docs/versions.md").read_text(encoding="utf-8")
    shown = [
        line.split("|")[2].strip(" `") for line in page.splitlines() if line.startswith("| ") and "`jackfield" in line
    ]
    written = {text.partition(";")[0].strip() for one in distributions for text in one.requirements}
    template = (root / "plugin-template/template/pyproject.toml.jinja").read_text(encoding="utf-8")
    assert len(shown) == 4
    assert [text for text in shown if text not in written and f'"{text}"' not in template] == []
