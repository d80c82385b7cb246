"""What the tests of composition share: wheels made on the spot, and environments in which the commands really run."""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from jackfield.settings import normalise
from jackfield_manage.distributions import installed, requirements_of
from jackfield_testkit.forks import shared_forks
from tests.support.command_line import bare_environment, command_line, open_terminal
from tests.support.site import site

__all__ = ["command_line", "open_terminal", "site"]

IMPORTED = """
import sqlite3, tomllib
import importlib_metadata, packaging.requirements, packaging.specifiers
import jackfield.cli.main, jackfield.plugins
from jackfield_manage.cli import installing, judging, news, plugins, policy
from jackfield_manage.installing import lock, lockfile, packages, sync
from jackfield_manage.judging import bisect, processes, why
"""
# Run without metadata: these commands are about what is installed beside them.
COMMAND = (
    "import sys; from jackfield.cli.main import run_command; from jackfield_manage.cli.plugins import main; "
    "sys.exit(run_command(lambda: main(sys.argv[1:])))"
)


class Wheelhouse:
    """A folder of wheels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def add(
        self,
        name: str,
        version: str = "1.0",
        *,
        offers: Sequence[str] = (),
        requires: Sequence[str] = (),
        source: str = "raise SystemExit('a plugin was loaded')\n",
        script: bool = False,
        more: Mapping[str, str] | None = None,
    ) -> Path:
        """Make a wheel with one module, of the distribution's name, that ends whoever imports it."""
        module = name.replace("-", "_")
        folder = f"{module}-{version}.dist-info"
        headers = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >=3.11\n"]
        headers += [f"Requires-Dist: {requirement}\n" for requirement in requires]
        entries = "[jackfield.v1]\n" + "".join(f"{entry} = {module}\n" for entry in offers) if offers else ""
        entries += f"[console_scripts]\n{name}-script = {module}:main\n" if script else ""
        files = {
            f"{module}.py": source,
            f"{folder}/METADATA": "".join(headers),
            f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            **({f"{folder}/entry_points.txt": entries} if entries else {}),
            **(more or {}),
        }
        record = "".join(f"{path},{digest(text)},{len(text.encode())}\n" for path, text in files.items())
        path = self.folder / f"{module}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for inside, text in {**files, f"{folder}/RECORD": f"{record}{folder}/RECORD,,\n"}.items():
                wheel.writestr(inside, text)
        return path


def digest(text: str) -> str:
    """A hash as RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@dataclass(frozen=True)
class Place:
    """An environment with the core and nothing else, in which the commands are run as a person would."""

    prefix: Path
    env: Mapping[str, str]
    wheelhouse: Wheelhouse

    @property
    def python(self) -> Path:
        return self.prefix / "bin/python"

    @property
    def site(self) -> Path:
        return next((self.prefix / "lib").glob("python*/site-packages"))

    @property
    def offline(self) -> list[str]:
        """The options with which an installer looks at the wheels only."""
        return ["--no-index", f"--find-links={self.wheelhouse.folder}"]

    def run(self, *arguments: str | Path, cwd: Path | None = None, **more_env: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `jackfield plugins`."""
        env, folder = {**self.env, **more_env}, cwd or self.prefix
        forks = shared_forks(IMPORTED)
        if forks:
            return forks.run(COMMAND, *arguments, cwd=folder, env=env, site=self.site, executable=self.python)
        command = [str(self.python), "-c", COMMAND, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=300, check=False)

    def done(self, *arguments: str | Path, **more_env: str) -> str:
        """The same, for a command that must succeed."""
        ran = self.run(*arguments, **more_env)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def metadata(self, name: str) -> Path | None:
        """Where the metadata of an installed distribution is."""
        return next(iter(self.site.glob(f"{name.replace('-', '_')}-*.dist-info")), None)


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that sees the core, these commands and the terminal, with metadata of what they need only.

    The commands read the metadata of all that is installed, which would be two hundred distributions in each test.
    """
    found = installed()
    names = ["jackfield", "jackfield-manage", "jackfield-terminal"]
    python = bare_environment(tmp_path_factory.mktemp("manage"), names)
    for name in names:  # it grows
        needed = [normalise(wanted.name) for wanted in requirements_of(found[name])]
        names += [one for one in needed if one in found and one not in names]
    kept = {Path(found[name].location).name for name in names}
    for metadata in Path(python).parents[1].glob("lib/python*/site-packages/*.dist-info"):
        if metadata.name not in kept:
            metadata.unlink()
    return python


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Wheelhouse:
    """An empty folder for wheels."""
    return Wheelhouse(tmp_path / "wheels")


@pytest.fixture(scope="session")
def core_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the core, and of what these commands need of others, without any metadata."""
    folder = tmp_path_factory.mktemp("core")
    needed = requirements_of(installed()["importlib-metadata"])
    others = ("packaging", "importlib_metadata", *(wanted.name.replace("-", "_") for wanted in needed))
    for name in ("jackfield", "jackfield_manage", *others):
        source = Path(str(import_module(name).__file__)).parent
        (folder / source.name).symlink_to(source)
    return folder


@pytest.fixture(scope="session")
def bundled_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pip that comes with Python: one for all environments, so that it is compiled once."""
    folder = tmp_path_factory.mktemp("pip")
    with zipfile.ZipFile(next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder


@pytest.fixture(scope="session")
def uv() -> str:
    """Where uv is."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    assert found, "no uv: run the tests with `make test`, or: pip install uv"
    return found


@pytest.fixture
def make_place(
    tmp_path: Path, wheelhouse: Wheelhouse, core_folder: Path, bundled_pip: Path, uv: str
) -> Callable[..., Place]:
    """Makes places by name, with uv or with pip."""

    def make(name: str, *, installer: str = "uv") -> Place:
        prefix = tmp_path / name
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("JACKFIELD_", "UV_", "PIP_", "PYTHON", "VIRTUAL_ENV", "PYTEST_"))
        }
        env = {
            **kept,
            "XDG_CONFIG_HOME": str(tmp_path / f"{name}-config"),
            "XDG_STATE_HOME": str(tmp_path / f"{name}-state"),
            "UV_CACHE_DIR": str(tmp_path / f"{name}-uv-cache"),
            "PIP_CONFIG_FILE": os.devnull,
            "UV_NO_CONFIG": "1",
        }
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, prefix], check=True, env=env)
        env["PATH"] = os.pathsep.join([str(Path(uv).parent), env.get("PATH", "")])
        place = Place(prefix, env, wheelhouse)
        (place.site / "the_core.pth").write_text(f"{core_folder}\n")
        if installer == "pip":
            env["PATH"] = str(prefix / "bin")  # where no uv is
            for entry in bundled_pip.iterdir():
                (place.site / entry.name).symlink_to(entry)
        return place

    return make


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """One made with uv."""
    return make_place("here")
