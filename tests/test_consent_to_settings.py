"""Every setting of ours that is a path or a program is known to the reader that asks for consent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from jackfield.config import PathText, ProgramText
from jackfield.consent import ReachesOutside, StartsProcess
from jackfield.descriptors import ComponentSpec
from jackfield.errors import PluginError
from jackfield.plugins import default_host, known_components
from jackfield_agent_files.effects import request_for

_PATH = get_args(PathText)[1]
_PROGRAM = get_args(ProgramText)[-1]
_LOOKS_LIKE_A_PATH = re.compile(r"(^|_)(path|file|folder|folders|dir|root|python|soffice|program|command)$")


def settings() -> Iterator[tuple[str, str, object]]:
    """Every setting of every component of ours that is installed, with its type."""
    host = default_host()
    for component in known_components():
        kind, _, name = component.partition(".")
        try:
            row = host.find(kind, name)
        except PluginError:
            continue  # it is not installed here
        if config := host.spec_of(row, ComponentSpec).config:
            for key, type_ in get_type_hints(host.load_target(row, config), include_extras=True).items():
                yield component, key, type_


def marks(type_: object) -> set[object]:
    """What a type, or a part of it, is annotated with."""
    inner = [marks(one) for one in get_args(type_)]
    return {one for one in getattr(type_, "__metadata__", ()) if one in (_PATH, _PROGRAM)}.union(*inner)


def test_a_path_or_a_program_in_a_file_needs_consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A link has a name that looks like no path.
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "outside.json").write_text("{}")
    (folder / "link").symlink_to(tmp_path / "outside.json")
    monkeypatch.chdir(folder)
    marked = [(component, key, marks(type_)) for component, key, type_ in settings() if marks(type_)]
    assert len(marked) > 10
    missed = []
    for component, key, found in marked:
        agent = {"function_list": [{"name": component.partition(".")[2], key: "link"}]}
        effects = request_for(folder / "agent.json", "", agent, read_as="agent").effects
        expected = StartsProcess if _PROGRAM in found else ReachesOutside
        missed += [] if any(isinstance(one, expected) for one in effects) else [(component, key)]
    assert not missed


def test_a_setting_whose_name_means_a_path_has_its_type() -> None:
    named = [one for one in settings() if _LOOKS_LIKE_A_PATH.search(one[1])]
    assert not [(component, key) for component, key, type_ in named if not marks(type_)]
