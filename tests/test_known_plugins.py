"""The core knows which of our distributions offers which name, so that an error can say what to install."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import PluginNotFoundError
from jackfield.plugins import PluginHost, known_components
from jackfield.settings import Settings


def test_the_core_knows_exactly_the_entry_points_of_the_repository(distributions: list[Any]) -> None:
    declared = {component: one.name for one in distributions for component in one.entry_points}
    known = {component: one.distribution for component, one in known_components().items()}
    assert declared == known, "run `make known`"


def test_no_two_distributions_of_ours_claim_one_name(distributions: list[Any]) -> None:
    claims = Counter(component for one in distributions for component in one.entry_points)
    assert [component for component, count in claims.items() if count > 1] == []


def test_the_script_agrees_that_the_list_is_up_to_date(execute: Callable[..., Any], root: Path) -> None:
    execute([sys.executable, root / "scripts/known_plugins.py", "--check"])


def test_a_known_component_that_is_not_installed_is_told_with_its_pip_line(plugin: Any, tmp_path: Path) -> None:
    nothing_installed = PluginHost(Settings(), paths=[str(tmp_path)])
    for component in plugin.entry_points:
        kind, _, name = component.partition(".")
        with pytest.raises(PluginNotFoundError, match=f"pip install {plugin.name}$"):
            nothing_installed.find(kind, name)
