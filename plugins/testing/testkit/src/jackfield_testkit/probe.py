"""Watch what a plugin does while it is described: run by `PluginSuite`, in a process of its own.

`python -B -m jackfield_testkit.probe '["distribution", ["module"]]'` writes one JSON object to standard output. It
stands outside of the suites, whose own imports would hide what a plugin imports.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

import jackfield.plugins
from jackfield.plugins.descriptors import KINDS, ComponentSpec
from jackfield.plugins.hookspecs import RegistrationManager, answers_of

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EFFECTS = (
    "socket.", "http.", "urllib.", "ftplib.", "smtplib.", "subprocess.", "pty.", "shutil.", "tempfile.", "sqlite3.",
    "_thread.start", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "os.mkdir",
    "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.chdir",
    "os.putenv", "os.unsetenv", "signal.",
)  # fmt: skip


def watch(distribution: str, modules: Sequence[str]) -> dict[str, Any]:
    """Import light modules and call their hooks.

    Returns:
        `offered`: the components, as `kind.name`; `errors`: a text for each module that fails; `imported`: the modules
        that came with it; `effects`: what it did besides; `cpu_ms`: what it cost, without the plugin API itself.
    """
    assert jackfield.plugins.hook is not None  # noqa: S101 - the import is what counts: it is not the plugin's
    effects: list[str] = []
    _note_threads(effects)
    watching = True

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and _is_effect(event, arguments):
            effects.append(f"{event} {arguments[:1]}")

    offered: list[str] = []
    errors: list[str] = []
    manager = RegistrationManager()
    paths, loaded = list(sys.path), set(sys.modules)
    sys.addaudithook(hear)
    started = time.process_time()
    for name in modules:
        try:
            offered += _describe(manager, f"{distribution}:{name}", name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is told to who asked
            errors.append(f"{name}: {type(error).__name__}: {error}")
    cpu_ms = (time.process_time() - started) * 1000
    watching = False
    if sys.path != paths:
        effects.append("it changes sys.path")
    imported = sorted(set(sys.modules) - loaded)
    return {"offered": offered, "errors": errors, "imported": imported, "effects": effects, "cpu_ms": cpu_ms}


def _describe(manager: RegistrationManager, plugin_name: str, module: str) -> list[str]:
    manager.register(importlib.import_module(module), plugin_name)
    offers: list[tuple[str, ComponentSpec]] = []
    for kind in KINDS:
        offers += [(kind, spec) for spec in answers_of(manager, plugin_name, kind)]
    return [f"{kind}.{spec.name}" for kind, spec in offers]


def _note_threads(effects: list[str]) -> None:
    # Python 3.11 raises no audit event for threads. This process exists for the watching alone.
    start = threading.Thread.start

    def noted(self: threading.Thread) -> None:
        effects.append(f"it starts the thread {self.name}")
        start(self)

    threading.Thread.start = noted  # type: ignore[method-assign]


def _is_effect(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        _, mode, flags = arguments
        return bool(set(mode or "") & set("wax+")) or bool((flags or 0) & _WRITES)
    return event.startswith(_EFFECTS)


def main(arguments: Sequence[str]) -> None:
    """Watch the distribution and the modules that the first argument names."""
    distribution, modules = json.loads(arguments[0])
    answer_to = os.dup(1)
    with tempfile.TemporaryFile() as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
        report = watch(distribution, modules)
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
