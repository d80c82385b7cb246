"""What has left the core is found where it says, or the error says what to install."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import jackfield
from jackfield._lazy import method_of
from jackfield.errors import ConfigError


def moved_names() -> Iterator[tuple[str, str, str]]:
    """Each name that has moved: the module that had it, the name, the module that has it."""
    for found in pkgutil.walk_packages(jackfield.__path__, "jackfield."):
        if found.name.rpartition(".")[2].startswith("__main__"):
            continue
        fetch = vars(importlib.import_module(found.name)).get("__getattr__")
        moved = inspect.getclosurevars(fetch).nonlocals.get("moved", {}) if inspect.isfunction(fetch) else {}
        yield from ((found.name, name, home) for name, home in moved.items())


def test_every_name_that_has_moved_is_where_the_warning_says() -> None:
    names = list(moved_names())
    assert ("jackfield.models", "until_stop", "jackfield_backend.stops") in names
    for module, name, home in names:
        with pytest.warns(DeprecationWarning, match=f"{module}.{name} has moved to {home}.{name}"):
            value = getattr(importlib.import_module(module), name)
        assert value is getattr(importlib.import_module(home), name)


def test_a_method_whose_package_is_missing_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match="`ask_twice` needs jackfield-gone: pip install jackfield-gone"):
        method_of("jackfield_gone.asking", "ask_twice")(object())


def test_what_a_package_itself_lacks_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "jackfield_torn.py").write_text("import what_it_needs\n", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError, match="what_it_needs"):
        method_of("jackfield_torn", "ask")()
