"""Watch a plugin while it is described. `PluginSuite` runs this module in a separate process.

`python -B -m jackfield_testkit.probe '["distribution", ["module"], false, []]'` writes one JSON object to standard
output. This module is not part of the suites, whose own imports would hide what a plugin imports.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from itertools import chain
from types import ModuleType
from typing import Any, cast

from jackfield.plugins import ComponentSpec, RegistrationManager, hook
from jackfield_manage.judging.watch import Watch


def watch(
    distribution: str, modules: Sequence[str], *, alone: bool = False, unasked: Sequence[str] = ()
) -> dict[str, Any]:
    """Import a distribution's entry point modules and call their hooks.

    Args:
        distribution: The distribution that contains the modules.
        modules: The names of the modules.
        alone: Allow imports only from the standard library, the core and the modules' own packages.
        unasked: Kinds whose hooks are not called, because their components are only known at run time (`tool.*`).

    Returns:
        `offered`: the components, as `kind.name`; `errors`: a message for each module that fails; `imported`: the
            modules imported along with them; `effects`: their side effects; `left`: the process-wide state they
            changed; `changing`: the modules whose hooks give different answers each time; `cpu_ms`: their CPU time,
            excluding the plugin API.
    """
    own = {name.partition(".")[0] for name in modules}
    if alone:
        sys.meta_path.insert(0, _Alone(own))
    manager = RegistrationManager()
    described: dict[str, list[tuple[str, ComponentSpec]]] = {}
    errors: list[str] = []
    with Watch(own) as watched:
        for name in modules:
            try:
                described[name] = _describe(manager, f"{distribution}:{name}", importlib.import_module(name), unasked)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - it is reported to the suite
                errors.append(f"{name}: {type(error).__name__}: {error}")
    return {
        "offered": [f"{kind}.{spec.name}" for kind, spec in chain.from_iterable(described.values())],
        "errors": errors,
        "imported": watched.imported,
        "effects": watched.effects,
        "cpu_ms": watched.cpu_ms,
        "left": watched.changed,
        "changing": [name for name in described if not _is_steady(manager, f"{distribution}:{name}", unasked)],
    }


def _describe(
    manager: RegistrationManager, plugin_name: str, module: ModuleType, unasked: Sequence[str]
) -> list[tuple[str, ComponentSpec]]:
    manager.register(module, plugin_name)
    offers: list[tuple[str, ComponentSpec]] = []
    for kind in [kind for kind in hook.KINDS if kind not in unasked]:
        offers += [(kind, spec) for spec in manager.offers(plugin_name, kind)]
    return offers


def _is_steady(manager: RegistrationManager, plugin_name: str, unasked: Sequence[str]) -> bool:
    """Return True if a plugin's hooks give the same answers after being unregistered and registered again."""
    answers = []
    for _ in range(2):
        module = cast(ModuleType, manager.unregister(name=plugin_name))
        try:
            answers.append(_describe(manager, plugin_name, module, unasked))
        except (Exception, SystemExit):  # noqa: BLE001 - the hook answered the first time
            return False
    manager.unregister(name=plugin_name)
    return answers[0] == answers[1]


class _Alone:
    """Finder that hides all modules except those of the standard library, the core and the plugin."""

    def __init__(self, own: set[str]) -> None:
        self._allowed = own | {"jackfield", *sys.stdlib_module_names, *sys.modules}

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return None to let other finders continue, or raise the error for a module that is not installed."""
        if name.partition(".")[0] not in self._allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def main(arguments: Sequence[str]) -> None:
    """Watch the distribution and modules named in the first argument."""
    distribution, modules, alone, unasked = json.loads(arguments[0])
    answer_to = os.dup(1)
    with tempfile.TemporaryFile() as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
        report = watch(distribution, modules, alone=alone, unasked=unasked)
        sys.stdout.flush()
        sys.stderr.flush()
        said.seek(0)
        printed = said.read(500).decode(errors="replace")
    if printed:
        report["effects"].append(f"it prints {printed!r}")
    with os.fdopen(answer_to, "w") as answer:
        json.dump(report, answer)


if __name__ == "__main__":
    main(sys.argv[1:])
