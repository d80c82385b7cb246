"""Contract tests for a distribution: its metadata, light modules, targets and imports."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence, Set
from functools import cache
from importlib import import_module, metadata
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from jackfield.errors import ConfigError, JackfieldError, MissingSecretError
from jackfield.plugins import ComponentSpec, Config, Row, hook
from jackfield_testkit.api_index import floor_of, index_for, indexes, next_series, unknown_names
from jackfield_testkit.forks import shared_forks
from jackfield_testkit.installed import forbid_default_host, plain_host
from jackfield_testkit.network import NetworkBlockedError, blocked
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.lookups import lookups_of, required_in_turn
from jackfield_testkit.suites.plugin_descriptors import NAME, faults_of
from jackfield_testkit.suites.plugin_readme import readme_of, stated_defaults
from jackfield_testkit.suites.plugin_source import Source, imported_packages, secrets_read, sources

IMPORT_GOAL_MS = 5.0
IMPORT_BUDGET_MS = 50.0  # ten times the target is a fault on any machine
LIMIT_S = 200.0  # in a separate process


_NO_SETTING = "no_such_setting"
_NO_NAME = "NoSuchName"


class PluginSuite(Suite):
    """Contract of distributions with plugins. The distribution must be installed, as a wheel or editable.

    Attributes:
        dist: The name of the distribution.
    """

    dist: ClassVar[str]

    # --- metadata ---

    def test_it_has_entry_points_that_can_be_read(self) -> None:
        mine = canonicalize_name(self.dist)
        problems = plain_host().catalog.problems
        assert [problem.text for problem in problems if problem.distribution == mine] == []
        assert _rows(self.dist), (
            f"{self.dist} has no entry point in the group jackfield.v1: check that {self.dist} is installed"
        )

    def test_its_components_are_of_known_kinds_and_have_legal_names(self) -> None:
        rows = _rows(self.dist)
        assert [row.id for row in rows if row.kind not in hook.KINDS] == []
        assert [row.id for row in rows if not (NAME.fullmatch(row.name) or row.is_source)] == []

    def test_it_asks_for_a_core_with_a_floor_and_without_a_cap_below_the_next_major(self) -> None:
        core = _core(self.dist)
        assert floor_of(core), f"{core} has no lower bound"
        assert core.specifier.contains("1.999"), f"{core} excludes core versions with the same plugin API"

    def test_it_shuts_out_versions_of_libraries_that_may_break_it(self) -> None:
        imported = {name for one in _sources(self.dist) for name in imported_packages(one)}
        advice = {}
        for one in _requirements(self.dist):
            if one.name.startswith("jackfield-") and one.name.replace("-", "_") in imported:
                floor = floor_of(one) or Version(metadata.version(one.name))
                if one.specifier.contains(next_series(floor)):
                    advice[str(one)] = f"{one.name}>={floor},<{next_series(floor)}"
        assert advice == {}, (
            "before 1.0, a library stays compatible only within a minor version: use these requirements instead"
        )

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
            pytest.skip("the package is installed in editable mode, so the contents of its wheel are unknown")
        tops = {path.parts[0] for path in distribution.files or ()}
        packages = {top for top in tops if not top.endswith(".dist-info")} - {"..", "__pycache__"}
        assert packages <= _own_packages(self.dist)

    def test_its_lowest_core_has_all_the_names_it_uses(self) -> None:
        floor = floor_of(_core(self.dist))
        assert floor is not None, f"{_core(self.dist)} has no lower bound"
        index = index_for(floor, indexes())
        if index is None:
            pytest.skip(
                f"this testkit does not know the public names of jackfield {floor}; run: pip install -U "
                "jackfield-testkit"
            )
        missing = {name: one.path.name for one in _sources(self.dist) for name in unknown_names(one.nodes, index)}
        assert missing == {}, f"{_core(self.dist)} allows a core version without these names: raise the lower bound"

    def test_its_packages_have_all_the_names_they_list_and_no_others(self) -> None:
        for name in sorted(_own_packages(self.dist)):
            package = import_module(name)
            missing = [listed for listed in getattr(package, "__all__", ()) if not hasattr(package, listed)]
            assert missing == [], f"{name}.__all__ lists names that the package does not define"
            assert not hasattr(package, _NO_NAME), f"{name}.__getattr__ must raise AttributeError for unknown names"

    def test_its_code_imports_what_it_requires_and_nothing_else(self) -> None:
        imported = {name: one.path.name for one in _sources(self.dist) for name in imported_packages(one)}
        foreign = imported.keys() - _own_packages(self.dist) - sys.stdlib_module_names
        undeclared = {name: imported[name] for name in foreign if not _is_required(name, _requirements(self.dist))}
        assert undeclared == {}, f"imported, but not listed in the requirements of {self.dist}"

    # --- light modules ---

    def test_it_offers_what_it_declares_and_declares_what_it_offers(self) -> None:
        assert _report(self.dist)["errors"] == []
        assert set(_report(self.dist)["offered"]) == _declared(self.dist)

    def test_describing_it_imports_nothing_but_the_standard_library_and_the_plugin_api(self) -> None:
        known = _own_packages(self.dist) | sys.stdlib_module_names
        imported = {name for name in _report(self.dist)["imported"] if not name.startswith("jackfield.plugins")}
        foreign = {name.partition(".")[0] for name in imported} - known
        assert foreign == set(), "import these packages in the functions that need them, not in the light module"

    def test_describing_it_does_nothing_else(self) -> None:
        assert _report(self.dist)["effects"] == []

    def test_describing_it_needs_nothing_that_it_requires(self) -> None:
        # Listing plugins loads the light module, even if a package it requires is missing or broken.
        alone = _report(self.dist, alone=True)
        assert alone["errors"] == []
        assert set(alone["offered"]) == _declared(self.dist)

    def test_taking_it_away_leaves_nothing_of_it(self) -> None:
        assert _report(self.dist)["left"] == []

    def test_its_hooks_answer_the_same_each_time(self) -> None:
        assert _report(self.dist)["changing"] == []

    def test_describing_it_is_fast(self) -> None:
        # The best of a few runs, because a busy machine only makes runs slower.
        again = (_probed(self.dist) for _ in range(3))
        measured = (report["cpu_ms"] for report in chain([_report(self.dist)], again))
        cpu_ms = next((ms for ms in measured if ms < IMPORT_BUDGET_MS), IMPORT_BUDGET_MS)
        assert cpu_ms < IMPORT_BUDGET_MS, "importing the light modules and calling their hooks should take 5 ms of CPU"
        if cpu_ms > IMPORT_GOAL_MS:
            told = f"describing {self.dist} took {cpu_ms:.1f} ms of CPU; the goal is {IMPORT_GOAL_MS:g} ms"
            warnings.warn(told, stacklevel=1)

    # --- descriptors and targets ---

    def test_its_descriptors_say_only_what_is_known(self) -> None:
        faults = {row.id: faults_of(spec) for row, spec in _specs(self.dist)}
        assert {name: found for name, found in faults.items() if found} == {}

    def test_its_targets_can_be_imported_and_are_of_their_kind(self) -> None:
        # A set of other tools has no target.
        faults = {row.id: _fault_of_target(row, spec) for row, spec in _specs(self.dist) if spec.target}
        assert {name: fault for name, fault in faults.items() if fault} == {}

    def test_its_configurations_are_configurations(self) -> None:
        host = plain_host()
        for row, spec in _specs(self.dist):
            if spec.config:
                made = host.load_target(row, spec.config)
                assert issubclass(made, Config), f"{row.id}: {spec.config} is not a jackfield.config.Config"

    def test_its_descriptors_name_the_configurations_of_its_classes(self) -> None:
        host = plain_host()
        for row, spec in _specs(self.dist):
            wanted = getattr(host.load_target(row, spec.target), "config_class", None) if spec.target else None
            if wanted is None or wanted.__module__.partition(".")[0] == "jackfield":  # settings of all such components
                continue
            assert spec.config, (
                f"{row.id}: set config= in the descriptor, so that the settings are known before the class is loaded"
            )
            assert host.load_target(row, spec.config) is wanted, (
                f"{row.id}: config= does not match `config_class` of the class"
            )

    def test_a_setting_that_its_classes_do_not_know_is_refused(self) -> None:
        host = plain_host()
        for row, spec in _specs(self.dist):
            target: Any = host.load_target(row, spec.target) if spec.target else None
            config = getattr(target, "config_class", None)
            if config is None or config.model_config.get("extra") != "forbid":
                continue
            with pytest.raises(ConfigError, match=_NO_SETTING):
                target({_NO_SETTING: 1})
            if row.kind != "llm":  # backends accept their settings only as a dict
                with pytest.raises(ConfigError, match=_NO_SETTING):
                    target(**{_NO_SETTING: 1})
                with pytest.raises(ConfigError) as caught:  # keywords are settings in addition to those of the dict
                    target({f"{_NO_SETTING}_1": 1}, **{f"{_NO_SETTING}_2": 1})
                for name in (f"{_NO_SETTING}_1", f"{_NO_SETTING}_2"):
                    assert name in str(caught.value), (
                        f"{row.id}: settings from a dict and from keywords must both take effect"
                    )

    def test_its_readme_states_the_true_defaults_of_settings(self) -> None:
        defaults: dict[str, list[object]] = {}
        # Defaults of a backend depend on the server.
        for row, spec in ((row, spec) for row, spec in _specs(self.dist) if spec.config and row.kind != "llm"):
            for name, field in plain_host().load_target(row, spec.config).model_fields.items():
                default = None if field.is_required() else field.get_default(call_default_factory=True)
                defaults.setdefault(name, []).append(list(default) if isinstance(default, tuple) else default)
        wrong = {
            name: f"expected {defaults[name][0]!r}, found {stated!r}"
            for name, stated in stated_defaults(readme_of(self.dist))
            # A setting without its own default may have one that depends on another setting, which tables may
            # state.
            if name in defaults and None not in defaults[name]
            if stated not in defaults[name]
        }
        assert wrong == {}, "a table in the README states different defaults than the code"

    def test_its_agents_require_the_components_that_they_look_up(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        missing = {
            row.id: sorted(lookups_of(row, tmp_path) - required_in_turn(spec.requires))
            for row, spec in _specs(self.dist)
            if row.kind == "agent"
        }
        assert {name: found for name, found in missing.items() if found} == {}, "list these components in `requires=`"

    def test_its_checks_of_the_machine_give_lists_of_texts(self) -> None:
        host = plain_host()
        for row, spec in _specs(self.dist):
            if spec.check:
                found = host.load_target(row, spec.check)()
                assert isinstance(found, list), f"{row.id}: {spec.check} does not return a list"
                assert all(isinstance(text, str) and text.strip() for text in found), f"{row.id}: {found!r}"

    # --- threads, processes, secrets ---

    def test_threads_at_the_same_time_get_the_same_components(self) -> None:
        assert _settled(self.dist)["threads"] == []

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_its_components_can_be_loaded_in_another_process(self, method: str) -> None:
        if method not in _settled(self.dist):
            pytest.skip(f"this system does not support {method}")
        assert _settled(self.dist)[method] == []

    def test_it_reads_only_the_secrets_that_it_declares(self) -> None:
        declared = {name for _, spec in _specs(self.dist) for name in spec.secrets}
        read = {name for one in _sources(self.dist) for name in secrets_read(one)}
        assert read <= declared, "list these secrets in `secrets=` of the descriptor, so that users know what is needed"

    def test_a_model_without_its_key_says_which_is_missing_and_asks_nobody(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        keyed = [(row, spec) for row, spec in _specs(self.dist) if row.kind == "llm" and spec.secrets]
        if not keyed:
            pytest.skip("the package has no backend that uses a key")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for name in chain.from_iterable(spec.secrets for _, spec in keyed):
            monkeypatch.delenv(name, raising=False)
        forbid_default_host(monkeypatch)
        for row, spec in keyed:
            _check_missing_key(row, spec)


# --- what is installed ---


def _rows(dist: str) -> list[Row]:
    return [row for row in plain_host().catalog.rows if row.distribution == canonicalize_name(dist)]


def _declared(dist: str) -> set[str]:
    """Return the components that are known without calling any hook."""
    unasked = {row.kind for row in _rows(dist) if row.is_source}
    return {row.id for row in _rows(dist) if row.kind not in unasked}


def _specs(dist: str) -> list[tuple[Row, ComponentSpec]]:
    host, declared = plain_host(), _declared(dist)
    return [
        (row, host.spec_of(row, ComponentSpec)) for row in _rows(dist) if row.id in declared and row.kind in hook.KINDS
    ]


def _is_required(package: str, requirements: Sequence[Requirement]) -> bool:
    """Return True if a top-level package belongs to one of the required distributions."""
    names = {canonicalize_name(one.name) for one in requirements}
    return canonicalize_name(package) in names or any(package in _packages_of(name) for name in names)


@cache
def _packages_of(dist: str) -> Set[str]:
    """Return a distribution's top-level names without suffixes, or an empty set if it is not installed."""
    try:
        files = metadata.distribution(dist).files or ()
    except metadata.PackageNotFoundError:
        return set()
    return {path.parts[0].partition(".")[0] for path in files}


def _core(dist: str) -> Requirement:
    """Return the distribution's requirement on the core."""
    core = [one for one in _requirements(dist) if canonicalize_name(one.name) == "jackfield"]
    assert core, f"{dist} does not require jackfield"
    return core[0]


def _metadata(dist: str) -> Any:
    return metadata.metadata(dist)


def _requirements(dist: str) -> list[Requirement]:
    return [Requirement(text) for text in metadata.requires(dist) or ()]


def _folders(dist: str) -> list[Path]:
    """Return the directories of the top-level packages named in the entry points."""
    folders = []
    for name in sorted({row.module.partition(".")[0] for row in _rows(dist)}):
        found = importlib.util.find_spec(name)
        assert found is not None, f"cannot find package {name!r}, which the entry points refer to"
        assert found.submodule_search_locations, f"{name!r} is not a package"
        folders.append(Path(next(iter(found.submodule_search_locations))))
    return folders


def _own_packages(dist: str) -> Set[str]:
    return {folder.name for folder in _folders(dist)}


@cache
def _sources(dist: str) -> Sequence[Source]:
    """Return the modules of the distribution. They are cached because several tests read them."""
    return list(sources(_folders(dist)))


def _check_missing_key(row: Row, spec: ComponentSpec) -> None:
    """Call a backend without an API key or a network."""
    with blocked(row.id) as watch:
        try:
            host = plain_host()
            model = host.load_row(row)({"model": "test-model", "model_type": row.address}, host=host)
            asyncio.run(model.acomplete([{"role": "user", "content": "hi"}]))
        except MissingSecretError as error:
            if error.variable not in spec.secrets:
                pytest.fail(f"{row.id}: {error.variable} is required but not declared")
        except (JackfieldError, NetworkBlockedError) as error:
            # Without a key, the backend may first need an address, or use a local server that needs no key.
            if watch.refused and not isinstance(error, ConfigError):
                pytest.fail(
                    f"{row.id}: contacts {watch.refused[0].where} although {' and '.join(spec.secrets)} is missing"
                )


def _fault_of_target(row: Row, spec: ComponentSpec) -> str:
    made, base = plain_host().load_row(row), _base_class(row.kind, spec)
    if base is None:
        return "" if callable(made) else "the target is not callable"
    is_one = isinstance(made, base)  # such as a function that was turned into a tool
    is_one = is_one or (isinstance(made, type) and issubclass(made, base))
    return "" if is_one else f"the target is not a subclass of {base.__name__}"


def _base_class(kind: str, spec: ComponentSpec) -> type | None:
    offered_by = next(one for one in hook.hooks_of(kind) if isinstance(spec, one.spec_class))
    module, _, name = offered_by.base.partition(":")
    found: type | None = getattr(import_module(module), name) if module else None
    return found


# --- in separate processes ---


@cache
def _report(dist: str, *, alone: bool = False) -> dict[str, Any]:
    return _probed(dist, alone=alone)


def _probed(dist: str, *, alone: bool = False) -> dict[str, Any]:
    modules = sorted({row.module for row in _rows(dist)})
    unasked = sorted({row.kind for row in _rows(dist) if row.is_source})
    arguments = json.dumps([dist, modules, alone, unasked])
    return _answer("jackfield_testkit.probe", arguments, os.environ, str(modules))


@cache
def _settled(dist: str) -> dict[str, object]:
    # Without API keys, because importing must not need them.
    secrets = {name for _, spec in _specs(dist) for name in spec.secrets}
    environment = {name: value for name, value in os.environ.items() if name not in secrets}
    return _answer("jackfield_testkit.settle", canonicalize_name(dist), environment, f"the components of {dist}")


def _answer(module: str, argument: str, environment: Mapping[str, str], what: str) -> dict[str, object]:
    # The imports before any plugin are shared: the module, with the core that it imports.
    program = f"import sys; sys.dont_write_bytecode = True; from {module} import main; main(sys.argv[1:])"
    if forks := shared_forks(f"import {module}"):
        done = forks.run(program, argument, cwd=Path.cwd(), env=environment, timeout_s=LIMIT_S)
    else:
        done = subprocess.run(  # noqa: S603 - our own module, in our own interpreter
            [sys.executable, "-c", program, argument],
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    assert done.returncode == 0, f"importing {what} terminates the process:\n{done.stderr}"
    report: dict[str, object] = json.loads(done.stdout)
    return report
