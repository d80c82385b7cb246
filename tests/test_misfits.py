"""A library that lost a function is named, with its version and the command that helps: in errors and by the doctor."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.distributions import build_wheels
from tests.support.environments import View

pytestmark = pytest.mark.slow

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "jackfield-quill"
version = "1.0.0"
dependencies = ["jackfield>=0.1,<2", "{pin}"]
[project.entry-points."jackfield.v1"]
"llm.quill" = "jackfield_quill.plugin"
"""
PLUGIN = """
from jackfield.plugins import LLMSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="quill", target="jackfield_quill.backend:QuillChat")]
"""
BACKEND = """
{eager}
from jackfield.events import ModelFinished, TextDelta
from jackfield.models import BaseChatModel
import jackfield_http.failures

class QuillChat(BaseChatModel):
    backend = "quill"

    async def stream(self, request):
        {lazy}
        yield TextDelta("hello")
        yield ModelFinished("stop")
"""
# How the plugin uses the function that jackfield-http 0.2 calls otherwise.
USES = {
    "on import": ("from jackfield_http import class_of_status", "class_of_status(429)"),
    "in a function": ("", "from jackfield_http import class_of_status"),
    "as an attribute": ("import jackfield_http as http", "http.class_of_status(429)"),
    "from a module that went": ("", "from jackfield_http.statuses import class_of_status"),
}
ASK = "from jackfield import get_chat_model\nprint(get_chat_model('quill:x').quick_chat('hi'))"


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory, view_in: Callable[..., View]) -> View:
    return view_in(
        tmp_path_factory.mktemp("misfits") / "view",
        "jackfield",
        "jackfield-manage",
        "jackfield-terminal",
        "jackfield-http",
    )


@pytest.fixture(scope="module")
def newer_http(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build jackfield-http 0.2, in which `class_of_status` has another name."""
    folder = tmp_path_factory.mktemp("http") / "source"
    shutil.copytree(root / "plugins/libraries/http", folder, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    for path in [folder / "pyproject.toml", *folder.rglob("*.py")]:
        text = path.read_text(encoding="utf-8").replace("class_of_status", "error_class_of")
        path.write_text(text.replace('version = "0.1.0"', 'version = "0.2.0"'), encoding="utf-8")
    (wheel,) = build_wheels(folder, place=folder.parent)
    return wheel


@pytest.fixture
def install_quill(view: View, tmp_path: Path) -> Iterator[Callable[..., None]]:
    def install(use: str, pin: str) -> None:
        eager, lazy = USES[use]
        package = tmp_path / "quill/src/jackfield_quill"
        package.mkdir(parents=True)
        (tmp_path / "quill/pyproject.toml").write_text(PROJECT.format(pin=pin), encoding="utf-8")
        (package / "__init__.py").touch()
        (package / "plugin.py").write_text(PLUGIN, encoding="utf-8")
        (package / "backend.py").write_text(BACKEND.format(eager=eager, lazy=lazy), encoding="utf-8")
        view.install_any("--no-deps", "--reinstall", *build_wheels(tmp_path / "quill", place=tmp_path / "wheels"))

    yield install
    view.uninstall("jackfield-quill")


@pytest.mark.parametrize("use", USES)
def test_a_function_that_a_library_lost_is_named_with_the_command_that_brings_it_back(
    view: View,
    newer_http: Path,
    wheels: Any,
    install_quill: Callable[..., None],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
    use: str,
) -> None:
    install_quill(use, "jackfield-http>=0.1,<2")
    view.install_any("--no-deps", "--reinstall", newer_http)
    module = "jackfield_http.statuses" if use == "from a module that went" else "jackfield_http.class_of_status"
    misfit = f"jackfield-quill 1.0.0 uses {module}, which jackfield-http 0.2.0 does not provide"
    command = "pip install 'jackfield-http>=0.1,<0.2'"

    told = execute([view.python, "-c", ASK], env=clean_env, check=False).stderr
    assert misfit in told
    assert command in told
    light = execute([view.script("jackfield"), "plugins", "doctor", "jackfield-quill"], env=clean_env, check=False)
    assert light.returncode == 0  # only the deep mode imports what a component needs
    deep = execute(
        [view.script("jackfield"), "plugins", "doctor", "--deep", "jackfield-quill"], env=clean_env, check=False
    )
    assert deep.returncode != 0
    said = " ".join(deep.stdout.split())
    assert misfit in said
    assert command in said

    assert shlex.split(command)[-1] == "jackfield-http>=0.1,<0.2"
    if use != "from a module that went":
        view.install_any("--no-deps", "--reinstall", wheels["jackfield-http"])
        assert execute([view.python, "-c", ASK], env=clean_env).stdout == "hello\n"


def test_a_pin_that_is_not_met_is_the_command(
    view: View,
    newer_http: Path,
    install_quill: Callable[..., None],
    execute: Callable[..., Any],
    clean_env: dict[str, str],
) -> None:
    install_quill("on import", "jackfield-http>=0.1,<0.2")
    view.install_any("--no-deps", "--reinstall", newer_http)
    told = execute([view.python, "-c", ASK], env=clean_env, check=False).stderr
    assert "pip install 'jackfield-http<0.2,>=0.1'" in told
