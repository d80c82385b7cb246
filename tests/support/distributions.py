"""The distributions of this repository: their metadata, their wheels, and what they require."""

from __future__ import annotations

import compileall
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.sharing import locked

ROOT = Path(__file__).resolve().parents[2]


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
    """Return all distributions: the core first, then the plugins by path."""
    projects = [ROOT / "core/pyproject.toml", *sorted(ROOT.glob("plugins/*/*/pyproject.toml"))]
    return [Distribution(path.parent, tomllib.loads(path.read_text(encoding="utf-8"))) for path in projects]


def build_wheels(*folders: Path, place: Path, editable: bool = False) -> list[Path]:
    """Build the wheels of folders in this process, because starting an interpreter for hatchling takes longer.

    Args:
        folders: Each with a `pyproject.toml` that names hatchling.
        place: The folder for the wheels.
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
    """The wheel of every distribution, by name. The first access builds all of them, once for all workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sources = {one.name: one for one in all_distributions()}

    def __getitem__(self, name: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / "lock"):
            if not (self.folder / "built").exists():
                # Releases are built in new environments; here, that would only take time.
                for each, one in self._sources.items():
                    build_wheels(one.folder, place=self.folder / "part" / each)
                (self.folder / "part").rename(self.folder / "built")
        (wheel,) = (self.folder / "built" / name).glob("*.whl")
        return wheel

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


@dataclass(frozen=True)
class Facts:
    """The name, version and requirements in the metadata of a distribution."""

    name: str
    version: str
    requires: tuple[str, ...]


def facts_of(distribution: metadata.Distribution) -> Facts:
    """Return the facts in its metadata. Equal metadata is parsed once, because many environments contain it."""
    return _facts_in(distribution.read_text("METADATA") or "")


@cache
def _facts_in(text: str) -> Facts:
    headers = HeaderParser().parsestr(text)
    return Facts(canonicalize_name(headers["Name"]), headers["Version"], tuple(headers.get_all("Requires-Dist") or ()))


def required_by(names: Sequence[str]) -> set[str]:
    """Return distributions and everything they require here, with extras; fail if an installed version does not fit."""
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
    """Return the requirements whose markers apply here."""
    all_ = map(Requirement, texts)
    return [needed for needed in all_ if needed.marker is None or needed.marker.evaluate({"extra": extra})]


def closure(names: Iterable[str], requires: Callable[[str], Sequence[str]]) -> set[str]:
    """Return distributions and everything they require, with extras, according to `requires`."""
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
    """Unpack a wheel and compile it, once for all workers; return the folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            part = folder.with_name(f"{folder.name}.part")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(part)
            compileall.compile_dir(part, quiet=2)
            part.rename(folder)
    return folder
