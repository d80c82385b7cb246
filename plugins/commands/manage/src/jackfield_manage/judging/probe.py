"""Load the plugins of one distribution and say what happened, in a process of its own.

`python -B -m jackfield_manage.judging.probe DISTRIBUTION [--deep] [--configs]` reads a pickled `PluginHost` from
standard input and writes one JSON object to standard output. Output of a plugin goes elsewhere, so that it cannot
spoil the answer; a thread that the plugin leaves behind cannot keep the process alive.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, filterfalse, product
from typing import Any

from jackfield.errors import PluginError
from jackfield.plugins import ComponentSpec, PluginHost, RegistrationManager, Row, ToolsetSpec, fault_of, hook  # noqa: F401 - paid once by all, so not counted for this one
from jackfield_manage.judging.results import answer_to, failed
from jackfield_manage.judging.watch import Watch


def probe(host: PluginHost, distribution: str, *, deep: bool = False, configs: bool = False) -> dict[str, object]:
    """Describe (and, if deep, load and check) all components of a distribution.

    Returns:
        `specs`: the descriptors by `kind.name`, as JSON; `offered`: all that its modules offer, declared or not;
        `errors`: a text for each component that fails; `missing`: the modules that were not there; `secrets`: the
        variables they read; `imported`: the modules that came with it; `effects`: what it did besides being imported;
        `ms`, `waited_ms`: the CPU it took, and how long it waited besides; `checks`: what is wrong with the machine, by
        its own account; `configs`: if asked for, the JSON Schemas of their settings.
    """
    answer = describe(host, distribution)
    if deep and not answer["errors"]:
        loaded = look_deep(host, distribution)
        answer |= {key: loaded[key] for key in ("errors", "missing", "checks")}
    return {**answer, "configs": _schemas(host, distribution)} if configs else answer


def describe(host: PluginHost, distribution: str) -> dict[str, object]:
    """What `probe` says of a distribution whose components are described, and not loaded."""
    rows = _rows_of(host, distribution)
    watch = Watch({row.module.partition(".")[0] for row in rows})
    answer = failed()
    local = _of_local_file(host, distribution, answer)  # it is no light module, so nobody watches what it imports
    with watch:
        specs = dict(_specs_of(host, [*rows, *local], answer))
    answer["waited_ms"] = round(watch.waited_ms, 1)
    answer["ms"] = round(watch.cpu_ms, 1)
    answer["effects"], answer["imported"] = [*watch.changed, *watch.effects], watch.imported
    answer["specs"] = {row.id: as_json(spec) for row, spec in specs.items()}
    answer["secrets"] = sorted({variable for spec in specs.values() for variable in spec.secrets})
    answer["offered"] = _offered(host, rows, distribution)
    return answer


def look_deep(host: PluginHost, distribution: str) -> dict[str, object]:
    """What `probe` says when the components of a distribution are loaded and checked, and nothing else."""
    answer = failed()
    rows = [*_rows_of(host, distribution), *_of_local_file(host, distribution, answer)]
    for row, spec in _specs_of(host, rows, answer):
        _load_and_check(host, row, spec, answer)
    return answer


def _schemas(host: PluginHost, distribution: str) -> dict[str, object]:
    schemas: dict[str, object] = {}
    rows = [*_rows_of(host, distribution), *_of_local_file(host, distribution, failed())]
    for row, spec in _specs_of(host, rows, failed()):
        if spec.config:
            try:
                schemas[row.id] = host.load_target(row, spec.config).model_json_schema()
            except Exception as error:  # noqa: BLE001 - the rest can be told all the same
                schemas[row.id] = {"error": f"{type(error).__name__}: {error}"}
    return schemas


def _rows_of(host: PluginHost, distribution: str) -> list[Row]:
    return [row for row in host.policy.rows() if row.distribution == distribution]


def _specs_of(host: PluginHost, rows: Iterable[Row], answer: dict[str, Any]) -> Iterable[tuple[Row, ComponentSpec]]:
    """The descriptors of those that have one; the errors of the others go into the answer."""
    for row in rows:
        try:
            yield row, host.spec_of(row, ComponentSpec)
        except PluginError as error:
            _note(error, answer)


def _of_local_file(host: PluginHost, name: str, answer: dict[str, Any]) -> list[Row]:
    """What a local file offers, if the name is that of one."""
    sources = [row for row in host.catalog.rows if (row.distribution, row.is_installed) == (name, False)]
    try:
        return list(chain.from_iterable(map(host.offers, sources)))
    except PluginError as error:
        _note(error, answer)
        return []


def _offered(host: PluginHost, rows: Sequence[Row], distribution: str) -> list[str]:
    """All that the modules of rows offer, declared or not; who is asked at run time (`tool.*`) is not asked."""
    sources = {row.kind for row in host.catalog.rows if (row.distribution, row.is_source) == (distribution, True)}
    one_of_each_module = {row.module: row for row in rows}.values()
    asked = product(one_of_each_module, filterfalse(sources.__contains__, hook.KINDS))
    return list(chain.from_iterable(_offered_by(host, row, kind) for row, kind in asked))


def _offered_by(host: PluginHost, row: Row, kind: str) -> list[str]:
    try:
        return [one.id for one in host.offers(dataclasses.replace(row, kind="*", name="*"), kind)]
    except PluginError:  # whoever asks for one of them is told
        return []


def _note(error: PluginError, answer: dict[str, Any]) -> None:
    answer["errors"].append(str(error))
    if isinstance(error.__cause__, ModuleNotFoundError) and error.__cause__.name:
        answer["missing"].append(error.__cause__.name)


BASES = {
    "agent": "jackfield.agents:Agent",
    "call_format": "jackfield.processors:CallFormat",
    "embedder": "jackfield.retrieval:Embedder",
    "llm": "jackfield.models:BaseChatModel",
    "observer": "jackfield.runs._observers:Observer",
    "parser": "jackfield.retrieval:Parser",
    "processor": "jackfield.processors:Processor",
    "sandbox": "jackfield.sandboxes:Sandbox",
    "searcher": "jackfield.retrieval:Searcher",
    "tool": "jackfield.tools:BaseTool",
    "toolset": "jackfield.tools:Toolset",
}
"""What a component of a kind, or a set of tools, must be a subclass of."""


def _fault_of_class(kind: str, loaded: object) -> str:
    """Why what a component's target names cannot be one of its kind, or ''; it goes on after the target."""
    if not callable(loaded):
        return f"has the type {type(loaded).__name__}, but must be a class"
    if not isinstance(loaded, type) or kind not in BASES:
        return ""  # a function that makes one: only calling it would tell
    if not issubclass(loaded, _bases(kind)):
        return f"is not a subclass of {BASES[kind].replace(':', '.')}"
    unwritten = sorted(getattr(loaded, "__abstractmethods__", ()))
    return f"does not implement {', '.join(unwritten)}" if unwritten else ""


def _bases(kind: str) -> tuple[type, ...]:
    module, _, name = BASES[kind].partition(":")
    try:
        return (getattr(importlib.import_module(module), name),)
    except ModuleNotFoundError:  # nothing can be a subclass of what is not installed
        return ()


def _load(host: PluginHost, row: Row, spec: ComponentSpec, answer: dict[str, Any]) -> None:
    """Load all that a descriptor names, and let it check the machine."""
    wanted = "toolset" if isinstance(spec, ToolsetSpec) else row.kind
    if spec.target and (fault := _fault_of_class(wanted, host.load_row(row))):
        answer["errors"].append(f"{row.distribution}: {spec.target}, the target of {row.id}, {fault}")
    if spec.config:
        host.load_target(row, spec.config)
    if spec.check:
        check: Callable[[], Any] = host.load_target(row, spec.check)
        answer["checks"] += map(str, check())


def _load_and_check(host: PluginHost, row: Row, spec: ComponentSpec, answer: dict[str, Any]) -> None:
    try:
        _load(host, row, spec, answer)
    except PluginError as error:
        _note(error, answer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - it is told to who asked
        answer["errors"].append(
            f"{row.distribution}: its check of {row.id} failed: {type(error).__name__}: {error!s:.500}"
        )


def as_json(spec: ComponentSpec) -> dict[str, object]:
    """A descriptor as JSON values; bytes are shown as Python would."""
    return {entry.name: _json_value(getattr(spec, entry.name)) for entry in dataclasses.fields(spec)}


def _json_value(value: object) -> object:
    match value:
        case Mapping():
            return {str(key): _json_value(entry) for key, entry in value.items()}
        case set() | frozenset():
            return sorted(map(str, value))
        case tuple() | list():
            return list(map(_json_value, value))
        case str() | int() | float() | None:
            return value
    return repr(value)


def main(arguments: list[str]) -> None:
    """Probe the distribution that the first argument names."""
    host = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that has started this one
    work = partial(probe, host, arguments[0], deep="--deep" in arguments, configs="--configs" in arguments)
    with tempfile.TemporaryFile() as said:
        answer_to(os.dup(1), said.fileno(), work)


if __name__ == "__main__":
    main(sys.argv[1:])
