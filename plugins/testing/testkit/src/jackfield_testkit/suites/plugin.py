"""The tests of a distribution: its metadata, its light modules, its targets, its imports."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jackfield.config import Config
from jackfield.plugins.catalog import Row, scan
from jackfield.plugins.descriptors import KINDS, ComponentSpec, ToolSpec
from jackfield.plugins.host import PluginHost
from jackfield.settings import Settings
from jackfield_testkit.suites.base import Suite

IMPORT_BUDGET_MS = 50.0  # a light module needs 5; ten times that is a fault on any machine
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
EFFECTS = {"network", "files", "processes"}


class PluginSuite(Suite):
    """What every distribution with plugins must keep to. It must be installed, as a wheel or editable.

    Attributes:
        dist: The name of the distribution.
    """

    dist: ClassVar[str]

    # --- metadata ---

    def test_it_has_entry_points_that_can_be_read(self) -> None:
        catalog = scan()
        mine = canonicalize_name(self.dist)
        assert [problem.text for problem in catalog.problems if problem.distribution == mine] == []
        assert _rows(self.dist), f"{self.dist} has no entry point in the group jackfield.v1; is it installed?"

    def test_its_components_are_of_known_kinds_and_have_legal_names(self) -> None:
        rows = _rows(self.dist)
        assert [row.id for row in rows if row.kind not in KINDS] == []
        assert [row.id for row in rows if not NAME.fullmatch(row.name)] == []

    def test_it_asks_for_a_core_with_a_floor_and_without_a_cap_below_the_next_major(self) -> None:
        core = [one for one in _requirements(self.dist) if canonicalize_name(one.name) == "jackfield"]
        assert core, f"{self.dist} does not require jackfield"
        floors = [specifier for specifier in core[0].specifier if specifier.operator in (">=", ">", "~=", "==")]
        assert floors, f"{core[0]} has no lower bound"
        assert core[0].specifier.contains("1.999"), f"{core[0]} shuts out cores that keep the same plugin API"

    def test_it_has_a_readme_and_a_summary(self) -> None:
        about = _metadata(self.dist)
        assert about["Summary"], "the metadata has no summary (`description` in pyproject.toml)"
        body = about.get_payload() if not about["Description"] else about["Description"]
        assert len(str(body).strip()) > 50, "the metadata has no long description (`readme` in pyproject.toml)"

    def test_its_packages_are_typed(self) -> None:
        assert [str(folder) for folder in _folders(self.dist) if not (folder / "py.typed").is_file()] == []

    def test_it_installs_its_own_packages_and_nothing_else(self) -> None:
        distribution = metadata.distribution(self.dist)
        if json.loads(distribution.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"):
            pytest.skip("it is installed as editable: what its wheel would have is not known")
        own = {folder.name for folder in _folders(self.dist)}
        tops = {path.parts[0] for path in distribution.files or ()}
        others = {top for top in tops if not top.endswith(".dist-info") and top not in ("..", "__pycache__")}
        assert others <= own

    def test_its_code_imports_what_it_requires_and_nothing_else(self) -> None:
        required = {canonicalize_name(one.name) for one in _requirements(self.dist)}
        own = {folder.name for folder in _folders(self.dist)}
        providers = metadata.packages_distributions()
        undeclared = {}
        for path, name in _imports(self.dist):
            candidates = {canonicalize_name(one) for one in (*providers.get(name, ()), name)}
            if name not in own and name not in sys.stdlib_module_names and candidates.isdisjoint(required):
                undeclared[name] = path.name
        assert undeclared == {}, f"imported, but not among the requirements of {self.dist}"

    # --- light modules ---

    def test_it_offers_what_it_declares_and_declares_what_it_offers(self) -> None:
        declared = {row.id for row in _rows(self.dist)}
        assert _report(self.dist)["errors"] == []
        assert set(_report(self.dist)["offered"]) == declared

    def test_describing_it_imports_nothing_but_the_standard_library_and_the_plugin_api(self) -> None:
        own = {folder.name for folder in _folders(self.dist)}
        foreign = {
            name
            for name in _report(self.dist)["imported"]
            if not (name.partition(".")[0] in own | sys.stdlib_module_names or name.startswith("jackfield.plugins"))
        }
        assert foreign == set(), "import these in the functions that need them, not in the light module"

    def test_describing_it_does_nothing_else(self) -> None:
        assert _report(self.dist)["effects"] == []

    def test_describing_it_is_fast(self) -> None:
        # The best of a few: a busy machine makes each slower, and none faster.
        cpu_ms = IMPORT_BUDGET_MS
        for attempt in range(4):
            if cpu_ms >= IMPORT_BUDGET_MS:
                cpu_ms = _report(self.dist, attempt=attempt)["cpu_ms"]
        assert cpu_ms < IMPORT_BUDGET_MS, "importing the light modules and calling their hooks should take 5 ms of CPU"

    # --- descriptors and targets ---

    def test_its_descriptors_say_only_what_is_known(self) -> None:
        for row, spec in _specs(self.dist):
            assert [name for name in spec.secrets if not VARIABLE.fullmatch(name)] == [], row.id
            assert spec.effects <= EFFECTS, row.id
            assert re.fullmatch(r"[\w.]+:\w+", spec.target), f"{row.id}: {spec.target!r} is not module:Class"
            if isinstance(spec, ToolSpec):
                _check_tool(row, spec)

    def test_its_targets_can_be_imported_and_are_of_their_kind(self) -> None:
        host = _host()
        for row, _ in _specs(self.dist):
            made = host.load_row(row)
            base = _base_class(row.kind)
            if base is None:
                assert callable(made), f"{row.id}: its target is not callable"
            else:
                assert isinstance(made, type), f"{row.id}: its target is no class"
                assert issubclass(made, base), f"{row.id}: its target is no {base.__name__}"

    def test_its_configurations_are_configurations(self) -> None:
        host = _host()
        for row, spec in _specs(self.dist):
            if spec.config:
                made = host.load_target(row, spec.config)
                assert issubclass(made, Config), f"{row.id}: {spec.config} is no jackfield.config.Config"


# --- what is installed ---


def _host() -> PluginHost:
    # Without anybody's settings: a plugin that the developer has blocked is tested all the same.
    return PluginHost(Settings())


def _rows(dist: str) -> list[Row]:
    return [row for row in scan().rows if row.distribution == canonicalize_name(dist)]


def _specs(dist: str) -> list[tuple[Row, ComponentSpec]]:
    host = _host()
    return [(row, host.spec_of(row, ComponentSpec)) for row in _rows(dist) if row.kind in KINDS]


def _metadata(dist: str) -> Any:
    return metadata.metadata(dist)


def _requirements(dist: str) -> list[Requirement]:
    return [Requirement(text) for text in metadata.requires(dist) or ()]


def _folders(dist: str) -> list[Path]:
    """Where the top-level packages are that the entry points name."""
    folders = []
    for name in sorted({row.module.partition(".")[0] for row in _rows(dist)}):
        found = importlib.util.find_spec(name)
        assert found is not None, f"the package {name!r}, which the entry points name, cannot be found"
        assert found.submodule_search_locations, f"{name!r} is no package"
        folders.append(Path(next(iter(found.submodule_search_locations))))
    return folders


def _check_tool(row: Row, spec: ToolSpec) -> None:
    from jackfield.tools.schema import check_tool_name, check_tool_schema

    check_tool_name(spec.name)
    check_tool_schema(spec.name, spec.parameters)
    texts = [spec.description] if isinstance(spec.description, str) else list(spec.description.values())
    assert texts, f"{row.id}: nothing tells a model what the tool does"
    assert all(text.strip() for text in texts), f"{row.id}: a description is empty"


def _base_class(kind: str) -> type | None:
    from jackfield.agents.base import Agent
    from jackfield.models import BaseChatModel
    from jackfield.processors import CallFormat, Processor
    from jackfield.retrieval.base import Parser, Searcher
    from jackfield.tools import BaseTool

    bases: Mapping[str, type] = {
        "llm": BaseChatModel,
        "tool": BaseTool,
        "processor": Processor,
        "call_format": CallFormat,
        "agent": Agent,
        "searcher": Searcher,
        "parser": Parser,
    }
    return bases.get(kind)


# --- its source ---


def _imports(dist: str) -> Iterator[tuple[Path, str]]:
    """The top-level names that each module imports when it runs, with the module."""
    for folder in _folders(dist):
        for path in sorted(folder.rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
            for name in _imported_names(tree):
                yield path, name


def _imported_names(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            if child.level == 0 and child.module:
                yield child.module.partition(".")[0]
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            for branch in child.orelse:
                yield from _imported_names(branch)
        else:
            yield from _imported_names(child)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


# --- its light modules, in a process of their own ---


@cache
def _report(dist: str, attempt: int = 0) -> dict[str, Any]:  # noqa: ARG001 - a new attempt is a new measurement
    modules = sorted({row.module for row in _rows(dist)})
    done = subprocess.run(  # noqa: S603 - our own module, in our own interpreter
        [sys.executable, "-B", "-m", "jackfield_testkit.probe", json.dumps([dist, modules])],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"importing {modules} ends the process:\n{done.stderr}"
    report: dict[str, Any] = json.loads(done.stdout)
    return report
