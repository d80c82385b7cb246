"""Fixtures for the tests across distributions: the repository, wheels, and environments."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.forks import Forks, shared_forks
from tests.support.distributions import ROOT, Distribution, Wheels, all_distributions, build_wheels, unpack
from tests.support.environments import CORE, Environment, View, plain_environment, run
from tests.support.sharing import locked, shared_folder
from tests.support.site import site

__all__ = ["site"]


# What examples and commands have in common: most of what they would import first.
EXAMPLES = """
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads is not one to fork
import html, importlib_metadata, numpy, pickle, runpy, socketserver, sqlite3
import anyio._backends._asyncio, h2.connection, httpcore2, jsonschema, markdown_it, pydantic, pydantic.dataclasses
import rank_bm25, rjieba, snowballstemmer, yaml
import jackfield.agents, jackfield.cli.main, jackfield.models, jackfield.testing
import jackfield_http.transport, jackfield_index.command, jackfield_keyword_search.file, jackfield_manage.cli
import jackfield_offline.backend, jackfield_sqlite_store.store, jackfield_system_message.detection
import jackfield_terminal.options, jackfield_terminal.run
from jackfield.plugins import PluginHost
from jackfield.settings import Settings

host = PluginHost(Settings())
for kind, names in {
    "agent": ["assistant"],
    "llm": ["openai"],
    "parser": ["markdown", "text"],
    "processor": ["multimodal", "system_message", "truncation"],
    "searcher": ["keyword_search"],
    "tool": ["retrieval"],
}.items():
    for name in names:
        host.load(kind, name)

models = pydantic.BaseModel.__subclasses__()
for model in models:  # each is made ready when it is first needed, which takes as long as an import
    model.model_rebuild(raise_errors=False)
    models += model.__subclasses__()
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes a `distribution` once for each, a test that takes a `plugin` once for each plugin."""
    for argument, wanted in (("distribution", all_distributions()), ("plugin", all_distributions()[1:])):
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, wanted, ids=[one.name for one in wanted])


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def distributions() -> list[Distribution]:
    """The core first, then the plugins."""
    return all_distributions()


@pytest.fixture(scope="session")
def execute() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command to its end; see `run`."""
    return run


@pytest.fixture
def clean_env(tmp_path: Path) -> dict[str, str]:
    """An environment without keys, settings or a home of anybody's."""
    home = tmp_path / "home"
    home.mkdir()
    return plain_environment(home)


@pytest.fixture(scope="session")
def build() -> Callable[..., list[Path]]:
    """Builds wheels; see `build_wheels`."""
    return build_wheels


@pytest.fixture(scope="session")
def uv() -> str:
    """Where uv is: beside the interpreter, where the dev group puts it, or on the PATH."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    assert found, "no uv: run the tests with `make test`, or: pip install uv"
    return found


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """A wheel of every distribution, by name."""
    return Wheels(shared_folder(tmp_path_factory) / "wheels")


@pytest.fixture(scope="session")
def check_types() -> Callable[..., None]:
    """Runs the type checker as made plugins do; what it found of pydantic and the core is kept from run to run."""

    def check(*folders: Path, cwd: Path) -> None:
        kept = ROOT / ".mypy_cache/made-plugins"
        kept.mkdir(parents=True, exist_ok=True)
        # One at a time: it keeps all in databases, and waits five seconds at most for another that writes to them.
        with locked(kept / "lock"):
            run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", kept, *folders], cwd=cwd)

    return check


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[], Any]], Any]:
    """Makes a value (of JSON's types) once, however many workers ask for it by its name."""

    def made(name: str, make: Callable[[], Any]) -> Any:
        file = shared_folder(tmp_path_factory) / f"{name}.json"
        with locked(file.with_suffix(".lock")):
            if not file.exists():
                file.write_text(json.dumps(make()), encoding="utf-8")
        return json.loads(file.read_text(encoding="utf-8"))

    return made


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, once: Callable[..., Any]) -> Path:
    """The reference, as it is made from the code now, once for all workers."""

    def make() -> str:
        folder = tmp_path_factory.mktemp("reference")
        run([sys.executable, ROOT / "scripts/reference.py", folder], cwd=ROOT)
        return str(folder)

    return Path(once("reference", make))


@pytest.fixture(scope="session")
def shared_environment(
    tmp_path_factory: pytest.TempPathFactory, uv: str
) -> Callable[[str, Callable[[Environment], None]], Environment]:
    """Makes an environment once for all workers, by its name; for tests that change nothing in it."""

    def make(name: str, install: Callable[[Environment], None]) -> Environment:
        environment = Environment(shared_folder(tmp_path_factory) / name, uv)
        ready = environment.folder / "ready"
        with locked(environment.folder.with_suffix(".lock")):
            if not ready.exists():
                run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment.folder])
                install(environment)
                ready.touch()
        return environment

    return make


@pytest.fixture(scope="session")
def kept_environment(uv: str) -> Callable[[str, Sequence[str], Callable[[Environment], None]], Environment]:
    """Makes an environment once for all runs, by its name, and again when what it is made from changes, and at night.

    Only for reading.
    """

    def make(name: str, made_from: Sequence[str], install: Callable[[Environment], None]) -> Environment:
        mark = hashlib.sha256(json.dumps([sys.version, *made_from]).encode()).hexdigest()
        (ROOT / ".cache").mkdir(exist_ok=True)
        environment = Environment(ROOT / f".cache/{name}-{mark[:12]}", uv)
        with locked(ROOT / f".cache/{name}.lock"):
            if not (environment.folder / "complete").exists() or os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
                for former in (ROOT / ".cache").glob(f"{name}-{'[0-9a-f]' * 12}"):
                    shutil.rmtree(former)
                run([uv, "venv", "--quiet", "--python", sys.executable, environment.folder])
                install(environment)
                (environment.folder / "complete").touch()
        return environment

    return make


@pytest.fixture(scope="session")
def unpacked(wheels: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives a folder with what the wheel of one of ours holds."""
    folder = shared_folder(tmp_path_factory) / "unpacked"
    return lambda name: unpack(wheels[name], folder / name)


@pytest.fixture(scope="session")
def lean(view_in: Callable[..., View], tmp_path_factory: pytest.TempPathFactory) -> View:
    """An environment with the core and its commands (`jackfield[cli]`), for tests that change nothing in it."""
    shared = shared_folder(tmp_path_factory)
    with locked(shared / "lean.lock"):
        return view_in(shared / "lean", "jackfield", "jackfield-manage", "jackfield-terminal")


@pytest.fixture
def make_environment(tmp_path: Path, uv: str) -> Callable[[str], Environment]:
    """Makes empty virtual environments, by name."""

    def make(name: str) -> Environment:
        run([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / name])
        return Environment(tmp_path / name, uv)

    return make


@pytest.fixture(scope="session")
def view_in(uv: str, wheels: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., View]:
    """Makes an environment of links in a folder, with some distributions and what they require, unless it is there."""
    shared = shared_folder(tmp_path_factory)

    def make(folder: Path, *names: str, is_for_reading: bool = False) -> View:
        with locked(shared / "empty.lock"):
            if not (shared / "empty").exists():
                run([uv, "venv", "--quiet", "--python", sys.executable, shared / "part-of-empty"])
                (shared / "part-of-empty").rename(shared / "empty")
        view = View(folder, uv, shared / "unpacked", wheels, is_for_reading)
        if not folder.exists():
            shutil.copytree(shared / "empty", folder, symlinks=True)
            view.link(*names)
        return view

    return make


@pytest.fixture
def make_view(tmp_path: Path, view_in: Callable[..., View]) -> Callable[..., View]:
    """Makes an environment of links with some distributions, and with what they require."""
    return lambda *names: view_in(tmp_path / "view", *names)


@pytest.fixture(scope="session")
def forks() -> Forks:
    """Runs examples and commands in processes of their own that need not import the core each time."""
    made = shared_forks(EXAMPLES)
    assert made, "only Linux has what these tests need"
    return made


@pytest.fixture(scope="session")
def forks_in() -> Callable[..., Forks]:
    """Starts a process that forks, in an environment that has the core; it imports that before, and what is given."""
    return lambda environment, more="": Forks(CORE + more, python=environment.python)


@pytest.fixture(scope="session")
def forks_of_views(
    view_in: Callable[..., View],
    forks_in: Callable[..., Forks],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Forks]:
    """Runs programs in views that have the core, each as a fork of one process."""
    with forks_in(view_in(tmp_path_factory.mktemp("core") / "view", "jackfield")) as made:
        yield made
