"""A plugin that may not load is never imported, whichever way it was forbidden, and whatever command is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.site import FakeSite

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Way:
    """One way to forbid a plugin: variables, files (in the home folder, which is the project, too) and flags."""

    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


PROJECT, USER = "pyproject.toml", ".config/jackfield/config.toml"
WAYS: Mapping[str, Way] = {
    "environment blocks the distribution": Way(env={"JACKFIELD_PLUGINS_BLOCK": "acme-writer"}),
    "environment blocks it in another spelling": Way(env={"JACKFIELD_PLUGINS_BLOCK": "x, Acme_Writer ,y"}),
    "environment blocks the component": Way(env={"JACKFIELD_PLUGINS_BLOCK": "tool.write"}),
    "environment blocks the address": Way(env={"JACKFIELD_PLUGINS_BLOCK": "acme-writer/write"}),
    "environment allows others": Way(env={"JACKFIELD_PLUGINS": "acme-sound"}),
    "environment allows none": Way(env={"JACKFIELD_PLUGINS": ""}),
    "environment is safe": Way(env={"JACKFIELD_SAFE": "1"}),
    "environment allows and blocks": Way(
        env={"JACKFIELD_PLUGINS": "acme-writer", "JACKFIELD_PLUGINS_BLOCK": "acme-writer"}
    ),
    "project blocks": Way(files={PROJECT: '[tool.jackfield]\nblock = ["acme-writer"]\n'}),
    "project allows others": Way(files={PROJECT: '[tool.jackfield]\nallow = ["acme-sound"]\n'}),
    "project is safe": Way(files={PROJECT: "[tool.jackfield]\nsafe = true\n"}),
    "project blocks and environment allows": Way(
        env={"JACKFIELD_PLUGINS": "acme-writer"}, files={PROJECT: '[tool.jackfield]\nblock = ["acme-writer"]\n'}
    ),
    "user blocks": Way(files={USER: 'block = ["acme-writer"]\n'}),
    "user allows others": Way(files={USER: 'allow = ["acme-sound"]\n'}),
    "user is safe": Way(files={USER: "safe = true\n"}),
    "user blocks and project allows": Way(
        files={USER: 'block = ["tool.write"]\n', PROJECT: '[tool.jackfield]\nallow = ["acme-writer"]\n'}
    ),
    "flag blocks": Way(flags=("--block", "acme-writer")),
    "flag blocks the component": Way(flags=("--block", "tool.write")),
    "flag allows others": Way(flags=("--plugins", "acme-sound")),
    "flag allows none": Way(flags=("--no-plugins",)),
    "flag allows and environment blocks": Way(
        env={"JACKFIELD_PLUGINS_BLOCK": "acme-writer"}, flags=("--plugins", "acme-writer")
    ),
}
DOCTOR = ["plugins", "doctor", "--deep", "--json"]
# It hands the settings to other processes: these have each of them, and what is handed over otherwise (a flag). From
# which place a setting is does not matter to it.
HANDED_OVER = (
    "environment blocks the distribution",
    "environment blocks the component",
    "environment allows others",
    "environment allows none",
    "environment is safe",
    "environment allows and blocks",
    "project blocks",
    "user blocks",
    "user blocks and project allows",
    "flag blocks",
    "flag allows none",
    "flag allows and environment blocks",
)
MORE_COMMANDS = (["plugins", "info", "acme-writer"], ["run", "-m", "write:model", "-t", "write", "hello"])
# The others reach these commands in the same way.
REPRESENTATIVE = ("environment blocks the distribution", "project blocks", "user blocks", "flag blocks")


@pytest.fixture
def guarded(site: FakeSite) -> FakeSite:
    """A site with a plugin that leaves a trace when it is imported, and a sound one."""
    site.add_tools("acme-writer", "write")
    site.add_tools("acme-sound", "search")
    return site


def test_the_trace_is_there_when_nothing_forbids_it(guarded: FakeSite, lean: Any, tmp_path: Path) -> None:
    lean.jackfield(["plugins", "doctor"], cwd=tmp_path, path=guarded.folder)
    assert guarded.times_imported("acme-writer") == 1


@pytest.mark.parametrize("name", WAYS)
def test_no_command_imports_what_is_forbidden(guarded: FakeSite, lean: Any, tmp_path: Path, name: str) -> None:
    way = WAYS[name]
    for file, content in way.files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    doctor = [DOCTOR] if name in HANDED_OVER else []
    for words in (["plugins", "list", "--long"], *doctor, *(MORE_COMMANDS if name in REPRESENTATIVE else ())):
        code, out, err = lean.jackfield([*way.flags, *words], cwd=tmp_path, path=guarded.folder, **way.env)
        assert code in (0, 1), err  # 2 is: not understood
        assert "Traceback" not in err
        assert guarded.times_imported("acme-writer") == 0, (words, out, err)


@pytest.mark.parametrize(
    "name", ["environment blocks the distribution", "project blocks", "user blocks", "flag blocks"]
)
def test_what_is_forbidden_is_listed_with_who_forbids_it(
    guarded: FakeSite, lean: Any, tmp_path: Path, name: str
) -> None:
    way = WAYS[name]
    for file, content in way.files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    _, out, _ = lean.jackfield([*way.flags, "plugins", "list"], cwd=tmp_path, path=guarded.folder, **way.env)
    row = next(line for line in out.splitlines() if "acme-writer" in line)
    assert "blocked" in row
    # A flag is handed on to the processes that look at plugins as the variable, and may be told as that.
    assert ([*way.files, *way.env] or ["JACKFIELD_PLUGINS_BLOCK"])[0] in row
