"""What the template makes is a complete plugin: it is built, installed, found, used and tested as it comes."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from copier import run_copy

KINDS = ("tool", "llm", "searcher", "parser", "processor", "call_format", "agent")
ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "plugin-template"

Render = Callable[..., Path]


@pytest.fixture
def render(tmp_path: Path) -> Render:
    """Makes a plugin; gives its folder."""

    def make(**answers: Any) -> Path:
        folder = tmp_path / "made" / str(len(list(tmp_path.glob("made/*"))))
        given = {"name": "tide-table", "author": "A. Uthor", "description": "Tides, for a test.", **answers}
        run_copy(str(TEMPLATE), folder, data=given, defaults=True, quiet=True, unsafe=False, vcs_ref=None)
        return folder

    return make


def test_the_template_offers_exactly_the_kinds_that_are_tested_here() -> None:
    questions = yaml.safe_load((TEMPLATE / "copier.yml").read_text(encoding="utf-8"))
    assert sorted(questions["kind"]["choices"]) == sorted(KINDS)


def test_the_template_runs_nothing_on_who_uses_it() -> None:
    questions = yaml.safe_load((TEMPLATE / "copier.yml").read_text(encoding="utf-8"))
    assert questions.keys().isdisjoint({"_tasks", "_migrations", "_jinja_extensions"})


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kinds", [KINDS[:1], KINDS[1:2], KINDS[2:]], ids=",".join)
def test_made_plugins_are_built_installed_tested_and_used(
    kinds: tuple[str, ...],
    render: Render,
    make_environment: Callable[[str], Any],
    wheels: Mapping[str, Path],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    tmp_path: Path,
    uv: str,
) -> None:
    folders = {kind: render(kind=kind, name=f"tide-{kind.replace('_', '-')}") for kind in kinds}
    made = tmp_path / "dist"
    for kind, folder in folders.items():
        execute([uv, "build", "--quiet", "--wheel", "--out-dir", made, folder])
        (wheel,) = made.glob(f"jackfield_tide_{kind}-*.whl")
        assert top_level(wheel) == {f"jackfield_tide_{kind}"}
    execute([sys.executable, "-m", "twine", "check", "--strict", *made.glob("*.whl")])

    environment = make_environment("fresh")
    environment.install(wheels["jackfield"], wheels["jackfield-testkit"], *made.glob("*.whl"))
    for folder in folders.values():
        # With the settings it has itself, as its maker would run it.
        execute([environment.script("pytest"), "-q", "--rootdir", folder, "-c", folder / "pyproject.toml"], cwd=folder)
        readme = (folder / "README.md").read_text(encoding="utf-8")
        (example,) = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        execute([environment.python, "-c", example], cwd=tmp_path, env=clean_env)

    jackfield = environment.script("jackfield")
    doctor = [jackfield, "plugins", "doctor", "--deep", "--json"]
    found = json.loads(execute(doctor, cwd=tmp_path, env=clean_env).stdout)
    # `slow` is the doctor's word for a busy machine, too; that describing is cheap is what PluginSuite has tested.
    assert [one for one in found if one["status"] not in ("ok", "slow")] == []
    assert sorted(one["ids"] for one in found) == sorted([f"{kind}.tide_{kind}"] for kind in kinds)
    described = execute([jackfield, "plugins", "list", "--long"], cwd=tmp_path, env=clean_env).stdout
    assert described.count("Tides, for a test.") == len(kinds)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_made_plugin_passes_its_own_linters_and_type_checker(
    render: Render,
    make_environment: Callable[[str], Any],
    wheels: Mapping[str, Path],
    execute: Callable[..., Any],
    tmp_path: Path,
) -> None:
    # All kinds at once: a type checker that starts seven times reads the core seven times.
    folders = [render(kind=kind, name=f"tide-{kind.replace('_', '-')}") for kind in KINDS]
    environment = make_environment("typed")
    environment.install(wheels["jackfield"], *folders)
    for folder in folders:
        execute([sys.executable, "-m", "ruff", "check", "--no-cache", "."], cwd=folder)
        execute([sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "."], cwd=folder)
    sources = [folder / "src" for folder in folders]
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "mypy"]
    execute([*mypy, "--python-executable", environment.python, *sources], cwd=folders[0])


def test_inside_of_this_repository_a_made_plugin_has_no_settings_of_its_own(render: Render) -> None:
    folder = render(kind="tool", standalone=False)
    assert not (folder / ".github").exists()
    assert not (folder / ".gitignore").exists()
    assert set(re.findall(r"^\[tool\.(\w+)", (folder / "pyproject.toml").read_text(), re.MULTILINE)) == {"hatch"}


def test_every_text_that_is_asked_for_lands_where_it_can_be_read(render: Render) -> None:
    folder = render(kind="tool", author="Zoë O'Neil", description="Tides & winds: it's 'real' – 潮汐.")
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    assert 'authors = [{ name = "Zoë O\'Neil" }]' in text
    assert "description = \"Tides & winds: it's 'real' – 潮汐.\"" in text
    compile((folder / "src/jackfield_tide_table/plugin.py").read_text(encoding="utf-8"), "plugin.py", "exec")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Tide"},
        {"name": "tide_table"},
        {"name": "tide-"},
        {"name": "../tide"},
        {"name": "jackfield-tide"},
        {"name": ""},
        {"name": "base"},
        {"author": 'A "quoted" author'},
        {"author": " "},
        {"description": "short"},
        {"description": 'It says """ and ends the docstring.'},
        {"description": "It ends with a backslash \\"},
        {"description": "It has a template: {{ 7 * 7 }}"},
        {"kind": "teleporter"},
    ],
    ids=str,
)
def test_an_answer_that_would_break_the_plugin_is_refused_and_nothing_is_written(
    render: Render, tmp_path: Path, wrong: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        render(**{"kind": "tool", **wrong})
    assert not list(tmp_path.rglob("*.toml"))


def top_level(wheel: Path) -> set[str]:
    """What a wheel puts into site-packages, besides its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name.split("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
