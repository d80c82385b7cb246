"""What the tests across distributions share: the repository, its distributions, and their built wheels."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.site import site

__all__ = ["site"]

ROOT = Path(__file__).resolve().parent.parent
GROUP = "jackfield.v1"


@dataclass(frozen=True)
class Distribution:
    """One distribution of the repository. `kind` is the name of its folder's parent, '' for the core."""

    folder: Path
    metadata: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.metadata["project"]["name"])

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")

    @property
    def version(self) -> str:
        return str(self.metadata["project"]["version"])

    @property
    def is_core(self) -> bool:
        return self.name == "jackfield"

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.package

    @property
    def entry_points(self) -> dict[str, str]:
        return dict(self.metadata["project"].get("entry-points", {}).get(GROUP, {}))

    @property
    def requirements(self) -> list[str]:
        project = self.metadata["project"]
        extras = [text for texts in project.get("optional-dependencies", {}).values() for text in texts]
        return [*project.get("dependencies", ()), *extras]


@cache
def all_distributions() -> list[Distribution]:
    """The core first, then the plugins by path."""
    projects = [ROOT / "core/pyproject.toml", *sorted(ROOT.glob("plugins/*/*/pyproject.toml"))]
    return [Distribution(path.parent, tomllib.loads(path.read_text(encoding="utf-8"))) for path in projects]


@dataclass(frozen=True)
class Environment:
    """A virtual environment of its own, in which nothing is but what was installed."""

    folder: Path
    uv: str

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    def script(self, name: str) -> Path:
        return self.folder / "bin" / name

    def install(self, *what: str | Path) -> None:
        """Install wheels, folders or requirements, at the versions of the repository's constraints."""
        constraints = ("--constraints", str(ROOT / "constraints.txt"))
        run([self.uv, "pip", "install", "--quiet", "--python", str(self.python), *constraints, *map(str, what)])

    def jackfield(
        self, words: Sequence[str], *, cwd: Path, path: Path | None = None, timeout_s: float = 120, **env: str
    ) -> tuple[int, str, str]:
        """Run the command; gives its exit code and what it said, bytes that are no text included.

        Args:
            words: Its arguments.
            cwd: Where; its home, too, so that nobody's settings matter.
            path: A folder to put on `sys.path`.
            timeout_s: How long it may take.
            env: More variables.
        """
        variables = {**plain_environment(cwd), **({"PYTHONPATH": str(path)} if path else {}), **env}
        done = subprocess.run(
            [self.script("jackfield"), *words],
            cwd=cwd,
            env=variables,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        return (
            done.returncode,
            done.stdout.decode(errors="surrogateescape"),
            done.stderr.decode(errors="surrogateescape"),
        )

    def installed(self) -> set[str]:
        """The names of what is installed, normalised."""
        frozen = run([self.uv, "pip", "list", "--format=freeze", "--python", str(self.python)]).stdout
        return {line.partition("==")[0].lower() for line in frozen.splitlines() if line}


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = True,
    timeout_s: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; one that fails shows all it said."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if check and done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))} gave {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def plain_environment(home: Path) -> dict[str, str]:
    """The environment without what would change Jackfield's behaviour: settings, keys, and the user's files."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JACKFIELD_", "PYTEST_", "VIRTUAL_ENV", "PYTHONPATH")) and "API_KEY" not in name
    }
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}


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
    """`run`, for test modules, which cannot import each other."""
    return run


@pytest.fixture
def clean_env(tmp_path: Path) -> dict[str, str]:
    """An environment without keys, settings or a home of anybody's."""
    home = tmp_path / "home"
    home.mkdir()
    return plain_environment(home)


@pytest.fixture(scope="session")
def uv() -> str:
    """Where uv is: beside the interpreter, where the dev group puts it, or on the PATH."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    assert found, "no uv: run the tests with `make test`, or: pip install uv"
    return found


class Wheels(Mapping[str, Path]):
    """A wheel of every distribution, by name: built when first asked for, once, however many workers there are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sources = {one.name: one for one in all_distributions()}

    def __getitem__(self, name: str) -> Path:
        source, folder = self._sources[name], self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock"):
            if not list(folder.glob("*.whl")):
                staging = folder / "part"
                # By its build tool, without a new environment for it each time; releases are built in one.
                run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", staging], cwd=source.folder)
                for built in staging.glob("*.whl"):
                    built.rename(folder / built.name)
        return next(folder.glob("*.whl"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """A wheel of every distribution, by name."""
    return Wheels(shared_folder(tmp_path_factory) / "wheels")


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
def lean(tmp_path_factory: pytest.TempPathFactory, uv: str, wheels: Mapping[str, Path]) -> Environment:
    """An environment with the core from its wheel, and no plugin; for all tests that change nothing in it."""
    environment = Environment(shared_folder(tmp_path_factory) / "lean", uv)
    with locked(environment.folder.with_suffix(".lock")):
        if not environment.folder.exists():
            run([uv, "venv", "--quiet", "--python", sys.executable, environment.folder])
            environment.install(wheels["jackfield"])
    return environment


@pytest.fixture
def make_environment(tmp_path: Path, uv: str) -> Callable[[str], Environment]:
    """Makes empty virtual environments, by name."""

    def make(name: str) -> Environment:
        run([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / name])
        return Environment(tmp_path / name, uv)

    return make


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of one test run have in common."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for other processes that hold the same lock."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
