"""What the tests across distributions share: the repository, its distributions, and their built wheels."""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jackfield_testkit.forks import Forks, shared_forks
from tests.support.site import site

__all__ = ["site"]

ROOT = Path(__file__).resolve().parent.parent
GROUP = "jackfield.v1"


# What most programs that use the core import first, and nothing but what every environment with it has.
CORE = """
import asyncio, base64, email.message, html, http.server, importlib.metadata, json, sqlite3, threading, urllib.request
import jsonschema
import jackfield.agents, jackfield.cli.main, jackfield.models, jackfield.plugins, jackfield.testing
import jackfield.tools
"""
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
JACKFIELD = "import sys; from jackfield.cli.main import main; sys.exit(main())"


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

    @property
    def site(self) -> Path:
        return next(self.folder.glob("lib/python*/site-packages"))

    def script(self, name: str) -> Path:
        return self.folder / "bin" / name

    def install(self, *what: str | Path) -> None:
        """Install wheels, folders or requirements, at the versions of the repository's constraints."""
        self.install_any("--constraints", ROOT / "constraints.txt", *what)

    def install_any(self, *what: str | Path) -> None:
        """Install what the arguments for the installer say."""
        run([self.uv, "pip", "install", "--quiet", "--python", self.python, *what])

    def uninstall(self, *names: str) -> None:
        """Remove distributions."""
        run([self.uv, "pip", "uninstall", "--quiet", "--python", self.python, *names])

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
        """What is installed, by normalised names, with what each requires."""
        there = map(facts_of, metadata.distributions(path=[str(self.site)]))
        return {one.name: one.requires for one in there}

    def declared_by(self, name: str) -> set[str]:
        """What a distribution needs by its own metadata here, and by that of what it needs."""
        return closure([name], self.installed().__getitem__)


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
    """The environment without what would change Jackfield's behaviour: settings, keys, and the user's files.

    Bytecode is kept, which images often forbid: without it each of a thousand processes compiles all that it imports.
    """
    ours = ("JACKFIELD_", "PYTEST_", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours) and "API_KEY" not in name}
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
def build() -> Callable[..., list[Path]]:
    """`built`, for test modules."""
    return built


@pytest.fixture(scope="session")
def uv() -> str:
    """Where uv is: beside the interpreter, where the dev group puts it, or on the PATH."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    assert found, "no uv: run the tests with `make test`, or: pip install uv"
    return found


def built(*folders: Path, place: Path, editable: bool = False) -> list[Path]:
    """Build the wheels of folders into one, in this process: an interpreter for hatchling starts longer than it builds.

    Args:
        folders: Each with a `pyproject.toml` that names hatchling.
        place: Where the wheels are put.
        editable: Make wheels that refer to the folders, as `pip install -e` does.
    """
    wheels: list[str] = []
    for folder in folders:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        if editable:  # a folder on the path; otherwise hatchling asks one more library which files they are
            project.setdefault("tool", {}).setdefault("hatch", {}).setdefault("build", {})["dev-mode-dirs"] = ["src"]
        builder = WheelBuilder(str(folder), config=project)
        wheels += builder.build(directory=str(place), versions=["editable" if editable else "standard"])
    return list(map(Path, wheels))


class Wheels(Mapping[str, Path]):
    """A wheel of every distribution, by name: all built when one is first asked for, once for all workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sources = {one.name: one for one in all_distributions()}

    def __getitem__(self, name: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / "lock"):
            if not (self.folder / "built").exists():
                # By its build tool, without a new environment for it each time; releases are built in one.
                for each, one in self._sources.items():
                    built(one.folder, place=self.folder / "part" / each)
                (self.folder / "part").rename(self.folder / "built")
        (wheel,) = (self.folder / "built" / name).glob("*.whl")
        return wheel

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


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
                for former in (ROOT / ".cache").glob(f"{name}-*"):
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


@dataclass(frozen=True)
class View(Environment):
    """An environment whose packages are links: ours to what their wheels hold, others' to those of this interpreter.

    Nothing is resolved, fetched or compiled for it, so it is there in a moment. What is not linked cannot be imported.

    Attributes:
        is_for_reading: Nothing is installed into it or removed, so that whole folders may be links.
    """

    unpacked: Path
    wheels: Mapping[str, Path]
    is_for_reading: bool = False

    def install(self, *folders: str | Path, editable: bool = False) -> None:
        """Install folders that require nothing else than what is linked, or install them again."""
        with tempfile.TemporaryDirectory() as place:
            made = built(*map(Path, folders), place=Path(place), editable=editable)
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
        """A folder with what the wheel of one of ours holds."""
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
class Facts:
    """What a distribution's metadata says."""

    name: str
    version: str
    requires: tuple[str, ...]


def facts_of(distribution: metadata.Distribution) -> Facts:
    """What its metadata says: an environment has those of fifty, and there is one for each of ours."""
    return _facts_in(distribution.read_text("METADATA") or "")


@cache
def _facts_in(text: str) -> Facts:
    headers = HeaderParser().parsestr(text)
    return Facts(canonicalize_name(headers["Name"]), headers["Version"], tuple(headers.get_all("Requires-Dist") or ()))


@dataclass(frozen=True)
class Parts:
    """What is to be linked of a distribution of this interpreter: by paths in site-packages, and programs."""

    distribution: metadata.Distribution
    links: Mapping[str, Path]
    programs: Sequence[Path]


@cache
def parts_of(name: str) -> Parts:
    """The parts of a distribution of this interpreter; a program in machine code has no first line to write anew."""
    distribution = metadata.distribution(name)
    paths = distribution.files or ()
    inside = [str(path) for path in paths if ".." not in path.parts]
    tops = {path if is_shared(path) else path.partition("/")[0] for path in inside}
    bin_ = [Path(str(path.locate())) for path in paths if ".." in path.parts and path.parent.name == "bin"]
    links = {path: Path(str(distribution.locate_file(path))) for path in tops}
    return Parts(distribution, links, [one for one in bin_ if one.read_bytes()[:2] != b"#!"])


@cache
def owners() -> Mapping[str, int]:
    """How many distributions of this interpreter have a part in each folder or module at the top."""
    tops = ({str(path).partition("/")[0] for path in one.files or ()} for one in metadata.distributions())
    return Counter(itertools.chain.from_iterable(tops))


def is_shared(path: str) -> bool:
    """Whether several distributions are in the folder at the top, so that none can have it as a whole."""
    return owners()[path.partition("/")[0]] > 1


def required_by(names: Sequence[str]) -> set[str]:
    """Distributions, and all that they require here, extras included; a version that does not fit fails."""

    return closure(names, _fitting)


@cache
def _fitting(name: str) -> tuple[str, ...]:
    requires = facts_of(metadata.distribution(name)).requires
    for needed in required_now(requires):
        there = facts_of(metadata.distribution(needed.name)).version
        assert needed.specifier.contains(there, prereleases=True), f"{name} wants {needed}, here is {there}"
    return requires


@cache
def required_now(texts: tuple[str, ...], extra: str = "") -> list[Requirement]:
    """The requirements that count here."""
    all_ = map(Requirement, texts)
    return [needed for needed in all_ if needed.marker is None or needed.marker.evaluate({"extra": extra})]


def closure(names: Iterable[str], requires: Callable[[str], Sequence[str]]) -> set[str]:
    """Distributions, and all that they require by what is said of each, extras included."""
    done: set[tuple[str, str]] = set()
    open_ = [(name, "") for name in names]
    while open_:
        name, extra = open_.pop()
        if (name, extra) not in done:
            done.add((name, extra))
            for needed in required_now(tuple(requires(name)), extra):
                open_.extend((canonicalize_name(needed.name), one) for one in ("", *needed.extras))
    return {name for name, _ in done}


def unpack(wheel: Path, folder: Path) -> Path:
    """What a wheel holds, with its bytecode; once for all workers."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            part = folder.with_name(f"{folder.name}.part")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(part)
            compileall.compile_dir(part, quiet=2)
            part.rename(folder)
    return folder


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
