"""`make test-changed` runs what a change can touch, and leaves the rest."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from jackfield_testkit.forks import run_program

FILES = {
    "core/pyproject.toml": '[project]\nname = "jackfield"\n',
    "core/src/jackfield/__init__.py": "",
    "core/src/jackfield/words.py": "",
    "core/src/jackfield/agent.py": "from jackfield import words\n",
    "core/tests/test_words.py": "import jackfield.words\n",
    "core/tests/test_texts.py": "SAID = 'pip install jackfield-tide'\nNAME = 'jackfield-tide'\n",
    "core/tests/test_agent.py": "def test(): from jackfield.agent import run\n",
    "plugins/tools/tide/pyproject.toml": '[project]\nname = "jackfield-tide"\n',
    "plugins/tools/tide/README.md": "# Tide\n",
    "plugins/tools/tide/src/jackfield_tide/__init__.py": "",
    "plugins/tools/tide/src/jackfield_tide/plugin.py": "TARGET = 'jackfield_tide.table:Table'\n",
    "plugins/tools/tide/src/jackfield_tide/table.py": "from . import sums\n",
    "plugins/tools/tide/src/jackfield_tide/sums.py": "",
    "plugins/tools/tide/src/jackfield_tide/table.json": "{}",
    "plugins/tools/tide/tests/conftest.py": "",
    "plugins/tools/tide/tests/test_tide.py": "",
    "plugins/tools/wind/pyproject.toml": '[project]\nname = "jackfield-wind"\n',
    "plugins/tools/wind/src/jackfield_wind/__init__.py": "",
    "plugins/tools/wind/tests/test_wind.py": "",
    "plugins/tools/wind/tests/deep/conftest.py": "import jackfield_tide.plugin\n",
    "plugins/tools/wind/tests/deep/test_beside_tide.py": "",
    "tests/test_installs.py": "def test_it(distribution): ...\n",
    "tests/test_pages.py": "PAGES = ['docs/**/*.md']\n",
    "tests/test_template.py": "PLACE = 'plugin-template'\n",
    "tests/test_names.py": "NAME = 'jackfield-wind'\n",
    "docs/index.md": "",
    "plugin-template/copier.yml": "",
    "pytest.ini": "[pytest]\n",
    "conftest.py": """
def pytest_generate_tests(metafunc):
    if "distribution" in metafunc.fixturenames:
        metafunc.parametrize("distribution", ["jackfield-tide", "jackfield-wind"])
""",
}
TIDE = {
    "plugins/tools/tide/tests/test_tide.py",
    "plugins/tools/wind/tests/deep/test_beside_tide.py",
    "tests/test_installs.py",
}


@pytest.fixture(scope="module")
def script(root: Path) -> ModuleType:
    """The script, which is no package."""
    spec = importlib.util.spec_from_file_location("changed_tests", root / "scripts/changed_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["changed_tests"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with the files, committed on `main`."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "More")


@pytest.fixture
def touched(script: ModuleType, place: Path) -> Callable[..., set[str]]:
    """The test files that a change of some files touches."""

    def files(*changed: str) -> set[str]:
        return set(script.touched_files(script.repository(place, changed), set(changed)))

    return files


@pytest.mark.parametrize("module", ["plugin.py", "table.py", "sums.py", "table.json"])
def test_a_change_of_a_plugin_touches_its_own_tests_and_who_reaches_it(
    touched: Callable[..., set[str]], module: str
) -> None:
    assert touched(f"plugins/tools/tide/src/jackfield_tide/{module}") == TIDE


def test_a_change_of_the_core_touches_its_own_tests(touched: Callable[..., set[str]]) -> None:
    assert touched("core/src/jackfield/words.py") == {
        "core/tests/test_words.py",
        "core/tests/test_agent.py",
        "core/tests/test_texts.py",
        "tests/test_installs.py",
    }


def test_metadata_and_a_readme_touch_the_tests_of_their_distribution(touched: Callable[..., set[str]]) -> None:
    wanted = {"plugins/tools/tide/tests/test_tide.py", "tests/test_installs.py"}
    assert touched("plugins/tools/tide/pyproject.toml") == wanted
    assert touched("plugins/tools/tide/README.md") == wanted


def test_a_file_is_touched_that_names_the_page_the_folder_or_the_distribution(
    touched: Callable[..., set[str]],
) -> None:
    assert touched("docs/index.md") == {"tests/test_pages.py"}
    assert touched("plugin-template/copier.yml") == {"tests/test_template.py"}
    assert "tests/test_names.py" in touched("plugins/tools/wind/pyproject.toml")


def test_a_conftest_touches_all_tests_below_it_and_that_of_the_repository_all(
    touched: Callable[..., set[str]],
) -> None:
    assert touched("plugins/tools/wind/tests/deep/conftest.py") >= {"plugins/tools/wind/tests/deep/test_beside_tide.py"}
    assert touched("conftest.py") == {path for path in FILES if "/test_" in path}


def test_a_module_that_is_gone_touches_who_still_imports_it(touched: Callable[..., set[str]], place: Path) -> None:
    (place / "plugins/tools/tide/src/jackfield_tide/sums.py").unlink()
    assert touched("plugins/tools/tide/src/jackfield_tide/sums.py") == TIDE


def test_what_changed_is_what_the_branch_committed_and_what_lies_there(script: ModuleType, place: Path) -> None:
    assert script.changed_files(place) == set()
    git(place, "checkout", "-q", "-b", "branch")
    (place / "docs/index.md").write_text("More.\n")
    commit(place)
    (place / "conftest.py").write_text("# Changed.\n")
    (place / "docs/new.md").write_text("New.\n")
    assert script.changed_files(place) == {"docs/index.md", "conftest.py", "docs/new.md"}
    assert script.changed_files(place, "HEAD") == {"conftest.py", "docs/new.md"}
    with pytest.raises(SystemExit, match="'nowhere' is not a commit"):
        script.changed_files(place, "nowhere")


@pytest.mark.parametrize(
    ("node_id", "is_slow", "wanted"),
    [
        ("tests/test_installs.py::test_it[jackfield-tide]", True, True),
        ("tests/test_installs.py::test_it[jackfield-wind]", False, False),
        ("tests/test_installs.py::test_it[jackfield]", False, False),
        ("tests/test_pages.py::test_it[plugins/tools/tide/README.md:7]", False, True),
        ("tests/test_pages.py::test_it[docs/index.md:7]", False, False),
        ("tests/test_pages.py::test_it[docs/index.md:7-3-jackfield run]", False, False),
        ("tests/test_pages.py::test_all_links", False, True),
        ("tests/test_pages.py::test_the_site", True, False),
    ],
)
def test_across_distributions_only_what_is_about_the_change_is_wanted(
    script: ModuleType, node_id: str, is_slow: bool, wanted: bool
) -> None:
    names = {"jackfield-tide", "plugins/tools/tide/README.md"}
    known = [*names, "jackfield", "jackfield-wind", "docs/index.md"]
    assert script.is_wanted(node_id, is_slow=is_slow, names=names, known=known) is wanted


@pytest.mark.parametrize("option", ["--list", "-vv"])
def test_of_a_changed_distribution_its_own_tests_run_and_those_across_that_are_about_it(
    place: Path, root: Path, option: str
) -> None:
    (place / "scripts").mkdir()
    shutil.copy(root / "scripts/changed_tests.py", place / "scripts")
    (place / "plugins/tools/tide/tests/test_tide.py").write_text("def test_of_it(): ...")
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    program = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = run_program(program, place / "scripts/changed_tests.py", option, env=env)
    assert done.returncode == 0, done.stdout
    tests = re.findall(r"^\S+::\S+", done.stdout, re.MULTILINE)
    assert len(tests) == 2
    assert set(tests) == {
        "plugins/tools/tide/tests/test_tide.py::test_of_it",
        "tests/test_installs.py::test_it[jackfield-tide]",
    }
    assert "1 deselected" in done.stdout
