"""Load a distribution's plugins in a separate process, and report the result.

`python -B -m jackfield_manage.judging.probe DISTRIBUTION [--deep] [--configs]` reads a pickled `PluginHost` from
standard input and writes one JSON object to standard output. Plugins' own output is redirected, so it cannot corrupt
the result, and threads they leave behind cannot keep the process alive.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from jackfield.errors import PluginError
from jackfield.jsonschemas import fault_of_schema
from jackfield.plugins import (  # some are imported early, so that `Watch` does not attribute them to a plugin
    ComponentSpec,
    Misfit,
    PluginHost,
    RegistrationManager,  # noqa: F401
    Row,
    ToolsetSpec,
    ToolSpec,
    fault_of,  # noqa: F401
    hook,
    misfit_of,
)
from jackfield_manage.judging.misfits import misfits_of_package
from jackfield_manage.judging.results import failed, report_result
from jackfield_manage.judging.watch import Watch

BASES = {
    "agent": "jackfield.agents:Agent",
    "call_format": "jackfield.processors:CallFormat",
    "embedder": "jackfield.retrieval:Embedder",
    "llm": "jackfield.models:BaseChatModel",
    "observer": "jackfield.runs:Observer",
    "parser": "jackfield.retrieval:Parser",
    "processor": "jackfield.processors:Processor",
    "sandbox": "jackfield.sandboxes:Sandbox",
    "searcher": "jackfield.retrieval:Searcher",
    "server": "jackfield.servers:Server",
    "store": "jackfield.stores:Store",
    "tokenizer": "jackfield.tokenizers:Tokenizer",
    "tool": "jackfield.tools:BaseTool",
    "toolset": "jackfield.tools:Toolset",
}
"""Base class of each kind of component, and of toolsets."""

_SEARCH_PATH = [*sys.path]
LOAD_KEYS = ("errors", "missing", "misfits", "checks")
"""Keys of a result that come from `load_and_check`."""


def probe(host: PluginHost, distribution: str, *, deep: bool = False, configs: bool = False) -> dict[str, object]:
    """Describe all components of a distribution; if `deep`, also load and check them.

    Returns:
        A dict with these entries:

        - `specs`: The descriptors by `kind.name`, as JSON.
        - `offered`: Everything the modules offer, whether declared or not.
        - `errors`: A text for each component that fails.
        - `missing`: The modules that could not be imported.
        - `misfits`: Names that the installed version of another distribution lacks, each as a text and the command that
          helps.
        - `secrets`: The variables that the components read.
        - `imported`: The modules imported along the way.
        - `effects`: The side effects of importing.
        - `ms`, `waited_ms`: The CPU time, and the time spent waiting.
        - `checks`: Faults of the machine reported by the components.
        - `configs`: The JSON Schemas of the components' settings if `configs`, otherwise empty.
    """
    result = describe(host, distribution)
    if deep and not result["errors"]:
        loaded = load_and_check(host, distribution)
        result |= {key: loaded[key] for key in LOAD_KEYS}
    return {**result, "configs": _schemas(host, distribution)} if configs else result


def describe(host: PluginHost, distribution: str) -> dict[str, object]:
    """Return the result of `probe` for components that are only described, not loaded."""
    rows = _rows_of(host, distribution)
    watch = Watch({row.module.partition(".")[0] for row in rows})
    result = failed()
    local_rows = _rows_of_local_file(host, distribution, result)  # no light module, so its imports are not watched
    with watch:
        specs = dict(_specs_of(host, [*rows, *local_rows], result))
    result["waited_ms"] = round(watch.waited_ms, 1)
    result["ms"] = round(watch.cpu_ms, 1)
    result["effects"], result["imported"] = [*watch.changed, *watch.effects], watch.imported
    result["specs"] = {row.id: as_json(spec) for row, spec in specs.items()}
    result["secrets"] = sorted({variable for spec in specs.values() for variable in spec.secrets})
    result["offered"] = _offered(host, rows, distribution)
    return result


def load_and_check(host: PluginHost, distribution: str) -> dict[str, object]:
    """Return the entries of `probe`'s result that come from loading and checking the components."""
    result: dict[str, Any] = failed()
    rows = [*_rows_of(host, distribution), *_rows_of_local_file(host, distribution, result)]
    for row, spec in _specs_of(host, rows, result):
        try:
            _load(host, row, spec, result)
        except PluginError as error:
            _add_error(error, result)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - reported in the result
            result["errors"].append(
                f"{row.distribution}: the check of {row.id} failed: {type(error).__name__}: {error!s:.500}"
            )
    # A local file belongs to no distribution, so its names cannot misfit.
    for package in {row.module.partition(".")[0]: None for row in rows if row.is_installed}:
        for misfit in misfits_of_package(package):
            _add_misfit(misfit, result)
    return result


def _schemas(host: PluginHost, distribution: str) -> dict[str, object]:
    schemas: dict[str, object] = {}
    rows = [*_rows_of(host, distribution), *_rows_of_local_file(host, distribution, failed())]
    for row, spec in _specs_of(host, rows, failed()):
        if spec.config:
            try:
                schemas[row.id] = host.load_target(row, spec.config).model_json_schema()
            except Exception as error:  # noqa: BLE001 - the other schemas are still wanted
                schemas[row.id] = {"error": f"{type(error).__name__}: {error}"}
    return schemas


def _rows_of(host: PluginHost, distribution: str) -> list[Row]:
    return host.policy.usable(row for row in host.catalog.of(distribution) if not row.is_source)


def _rows_of_local_file(host: PluginHost, name: str, result: dict[str, Any]) -> list[Row]:
    """Return the components in a local file of this name, if it exists."""
    rows: list[Row] = []
    try:
        for source in host.catalog.of(name):
            if not source.is_installed:
                rows += host.offers(source)
    except PluginError as error:
        _add_error(error, result)
        return []
    return rows


def _specs_of(host: PluginHost, rows: Iterable[Row], result: dict[str, Any]) -> Iterator[tuple[Row, ComponentSpec]]:
    """Yield the components' descriptors; for a component without a valid one, add an error to the result."""
    for row in rows:
        try:
            yield row, host.spec_of(row, ComponentSpec)
        except PluginError as error:
            _add_error(error, result)


def _offered(host: PluginHost, rows: Sequence[Row], distribution: str) -> list[str]:
    """Return everything the modules offer, whether declared or not, except kinds listed at run time (`tool.*`)."""
    dynamic = {row.kind for row in host.catalog.of(distribution) if row.is_source}
    offered: list[Row] = []
    for row in {row.module: row for row in rows}.values():
        source = row._replace(kind="*", name="*")
        if not dynamic:
            with suppress(PluginError):  # one hook failed, so the others are called one by one
                offered += host.offers(source)
                continue
        for kind in hook.KINDS:
            if kind not in dynamic:
                with suppress(PluginError):  # `_specs_of` reports it
                    offered += host.offers(source, kind)
    return [component.id for component in offered]


def _add_error(error: PluginError, result: dict[str, Any]) -> None:
    result["errors"].append(str(error))
    if isinstance(error.__cause__, ModuleNotFoundError) and error.__cause__.name:
        result["missing"].append(error.__cause__.name)
    if misfit := misfit_of(error.__cause__):
        _add_misfit(misfit, result)


def _add_misfit(misfit: Misfit, result: dict[str, Any]) -> None:
    entry = [str(misfit), misfit.command]
    if entry not in result["misfits"]:
        result["misfits"].append(entry)


def _fault_of_parameters(spec: ToolSpec) -> str:
    """Return why a tool's parameters are not a valid schema, even if its plugin has changed the search path."""
    changed, sys.path[:] = [*sys.path], _SEARCH_PATH
    try:
        return fault_of_schema(spec.parameters, ignore_patterns=True)
    finally:
        sys.path[:] = changed


def _load(host: PluginHost, row: Row, spec: ComponentSpec, result: dict[str, Any]) -> None:
    """Load everything a descriptor names, and run its check of the machine."""
    kind = "toolset" if isinstance(spec, ToolsetSpec) else row.kind
    if spec.target and (fault := _fault_of_class(kind, host.load_row(row))):
        result["errors"].append(f"{row.distribution}: {spec.target}, the target of {row.id}, {fault}")
    if spec.config:
        host.load_target(row, spec.config)
    if isinstance(spec, ToolSpec) and (fault := _fault_of_parameters(spec)):
        result["errors"].append(f"{row.distribution}: the parameters of {row.id} are not a valid JSON Schema: {fault}")
    if spec.check:
        check: Callable[[], Any] = host.load_target(row, spec.check)
        result["checks"] += [str(problem) for problem in check()]


def _fault_of_class(kind: str, target: object) -> str:
    """Return why a component's target cannot be of its kind, to append to the target; '' if it can."""
    if not callable(target):
        return f"must be a class, got {type(target).__name__}"
    if not isinstance(target, type) or kind not in BASES:
        return ""  # the result of a factory function is unknown until it is called
    module, _, name = BASES[kind].partition(":")
    try:
        is_subclass = issubclass(target, getattr(importlib.import_module(module), name))
    except ModuleNotFoundError:  # the library with the base class is not installed
        is_subclass = False
    if not is_subclass:
        return f"is not a subclass of {module}.{name}"
    abstract = sorted(getattr(target, "__abstractmethods__", ()))
    return f"does not implement {', '.join(abstract)}" if abstract else ""


def as_json(spec: ComponentSpec) -> dict[str, object]:
    """Convert a descriptor to JSON values. Values that JSON lacks, such as bytes, become their `repr`."""
    return {entry.name: _json_value(getattr(spec, entry.name)) for entry in dataclasses.fields(spec)}


def _json_value(value: object) -> object:
    match value:
        case Mapping():
            return {str(key): _json_value(entry) for key, entry in value.items()}
        case set() | frozenset():
            return sorted(str(entry) for entry in value)
        case tuple() | list():
            return [_json_value(entry) for entry in value]
        case str() | int() | float() | None:
            return value
    return repr(value)


def main(arguments: list[str]) -> None:
    """Probe the distribution named by the first argument."""
    host = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our parent
    work = partial(probe, host, arguments[0], deep="--deep" in arguments, configs="--configs" in arguments)
    with tempfile.TemporaryFile() as printed:
        report_result(os.dup(1), printed.fileno(), work)


if __name__ == "__main__":
    main(sys.argv[1:])
