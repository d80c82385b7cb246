"""Virtual environments for tests: empty ones to install into, and views whose packages are links."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from jackfield_testkit.forks import shared_forks
from tests.support.distributions import (
    ROOT,
    build_wheels,
    closure,
    facts_of,
    required_by,
    unpack,
)

# The imports of most programs that use the core; every environment with the core has them.
CORE = """
import asyncio, base64, email.message, html, http.server, importlib.metadata, json, sqlite3, threading, urllib.request
import jsonschema
import jackfield.agents, jackfield.cli.main, jackfield.models, jackfield.plugins, jackfield.testing
import jackfield.tools
"""


JACKFIELD = "import sys; from jackfield.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class Environment:
    """A virtual environment that contains only what was installed into it."""

    folder: Path
    uv: str

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    @property
    def site(self) -> Path:
        return next(self.folder.glob("lib/python*/site-packages"))

    def script(self, name: str) -> Path:
        return self.folder / "bin" / name

    def install(self, *what: str | Path) -> None:
        """Install wheels, folders or requirements, at the versions of the repository's constraints."""
        self.install_any("--constraints", ROOT / "constraints.txt", *what)

    def install_any(self, *what: str | Path) -> None:
        """Run `uv pip install` with these arguments."""
        run([self.uv, "pip", "install", "--quiet", "--python", self.python, *what])

    def uninstall(self, *names: str) -> None:
        """Remove distributions."""
        run([self.uv, "pip", "uninstall", "--quiet", "--python", self.python, *names])

    def jackfield(
        self, words: Sequence[str], *, cwd: Path, path: Path | None = None, timeout_s: float = 120, **env: str
    ) -> tuple[int, str, str]:
        """Run the command `jackfield`; return its exit code, its output and its error output.

        Args:
            words: Its arguments.
            cwd: The working directory, and the home directory, so that no user's settings matter.
            path: A folder to put on `sys.path`.
            timeout_s: How long it may take.
            env: More variables.
        """
        done = self.run(JACKFIELD, *words, cwd=cwd, path=path, timeout_s=timeout_s, **env)
        return done.returncode, done.stdout, done.stderr

    def run(
        self,
        program: str,
        *words: str | Path,
        cwd: Path,
        path: Path | None = None,
        timeout_s: float = 120,
        **env: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run the text of a program, by a fork of a process that has imported the core; see `jackfield`."""
        variables = {**plain_environment(cwd), **({"PYTHONPATH": str(path)} if path else {}), **env}
        forks = shared_forks(CORE, str(self.python))
        return forks.run(program, *words, cwd=cwd, env=variables, timeout_s=timeout_s)

    def installed(self) -> dict[str, tuple[str, ...]]:
        """Return the requirements of each installed distribution, by normalised names."""
        there = map(facts_of, metadata.distributions(path=[str(self.site)]))
        return {one.name: one.requires for one in there}

    def declared_by(self, name: str) -> set[str]:
        """Return a distribution and everything it requires, by the metadata installed here."""
        return closure([name], self.installed().__getitem__)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = True,
    timeout_s: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; fail the test with all output if the command fails."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if check and done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))} gave {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def plain_environment(home: Path) -> dict[str, str]:
    """Return the environment variables without those that change Jackfield's behaviour: settings, keys, the home.

    Python may write bytecode, which container images often forbid: else each of a thousand processes compiles anew.
    """
    ours = ("JACKFIELD_", "PYTEST_", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours) and "API_KEY" not in name}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}


@dataclass(frozen=True)
class View(Environment):
    """An environment whose packages are links: ours to what their wheels hold, others' to those of this interpreter.

    Nothing is resolved, downloaded or compiled for it, so it is made in a moment. Only linked packages can be imported.

    Attributes:
        is_for_reading: Nothing is installed into it or removed, so that whole folders may be links.
    """

    unpacked: Path
    wheels: Mapping[str, Path]
    is_for_reading: bool = False

    def install(self, *folders: str | Path, editable: bool = False) -> None:
        """Install folders that require nothing else than what is linked, or install them again."""
        with tempfile.TemporaryDirectory() as place:
            made = build_wheels(*map(Path, folders), place=Path(place), editable=editable)
            if editable:
                for folder, wheel in zip(folders, made, strict=True):
                    self._unpack_editable(Path(folder), wheel)
            else:
                # Without what they require, so that nothing is changed that is a link to this interpreter's packages.
                self.install_any("--no-deps", "--reinstall", *made)
        run([self.uv, "pip", "check", "--python", self.python])

    def _unpack_editable(self, folder: Path, wheel: Path) -> None:
        # It is a path and metadata: an installer takes longer to start than to write them.
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site)
        # As an installer says of a folder, where a wheel could be from anywhere.
        origin = {"url": folder.as_uri(), "dir_info": {"editable": True}}
        information = self.site / f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
        (information / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")

    def link(self, *names: str) -> None:
        """Add distributions with all that they require, as an installer would; wrong versions fail."""
        for name in sorted(required_by(names)):
            if name in self.wheels:
                self._link_of_ours(name)
            else:
                self._link_of_others(parts_of(name))

    def content_of(self, name: str) -> Path:
        """Return the folder with the contents of a wheel of ours."""
        return unpack(self.wheels[name], self.unpacked / name)

    def _link_of_ours(self, name: str) -> None:
        source = self.content_of(name)
        if (self.site / next(source.glob("*.dist-info")).name).exists():
            return
        if self.is_for_reading:
            for there in source.iterdir():
                (self.site / there.name).symlink_to(there)
        else:
            shutil.copytree(source, self.site, copy_function=os.link, dirs_exist_ok=True)
        self._write_scripts(metadata.Distribution.at(next(source.glob("*.dist-info"))))

    def _link_of_others(self, parts: Parts) -> None:
        for path, there in parts.links.items():
            place = self.site / path
            if path.endswith(".dist-info") and not self.is_for_reading:
                shutil.copytree(there, place, dirs_exist_ok=True)  # uv sees none that is a link
            elif not place.is_symlink():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(there)
        self._write_scripts(parts.distribution)
        for program in parts.programs:
            self.script(program.name).symlink_to(program)

    def _write_scripts(self, distribution: metadata.Distribution) -> None:
        for entry in distribution.entry_points:
            if entry.group == "console_scripts":
                script = self.script(entry.name)
                first = f"#!{self.python}\nimport sys\nfrom {entry.module} import {entry.attr}\n"
                script.write_text(f"{first}sys.exit({entry.attr}())\n", encoding="utf-8")
                script.chmod(0o755)


@dataclass(frozen=True)
class Parts:
    """The parts of an installed distribution that a view links: paths in site-packages, and programs."""

    distribution: metadata.Distribution
    links: Mapping[str, Path]
    programs: Sequence[Path]


@cache
def parts_of(name: str) -> Parts:
    """Return the parts of an installed distribution. Of its programs, only those in machine code are linked."""
    distribution = metadata.distribution(name)
    paths = distribution.files or ()
    inside = [str(path) for path in paths if ".." not in path.parts]
    tops = {path if is_shared(path) else path.partition("/")[0] for path in inside}
    bin_ = [Path(str(path.locate())) for path in paths if ".." in path.parts and path.parent.name == "bin"]
    links = {path: Path(str(distribution.locate_file(path))) for path in tops}
    return Parts(distribution, links, [one for one in bin_ if one.read_bytes()[:2] != b"#!"])


@cache
def owners() -> Mapping[str, int]:
    """Return the number of installed distributions that share each top-level folder or module."""
    tops = ({str(path).partition("/")[0] for path in one.files or ()} for one in metadata.distributions())
    return Counter(itertools.chain.from_iterable(tops))


def is_shared(path: str) -> bool:
    """Return True if several distributions have files in the top-level folder of a path."""
    return owners()[path.partition("/")[0]] > 1
