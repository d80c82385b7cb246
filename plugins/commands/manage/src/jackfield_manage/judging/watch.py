"""Record the side effects of importing modules, in a process dedicated to this purpose.

An audit hook, which cannot be removed, reports what the interpreter does. Comparing process-wide state before and after
shows what has changed. Effects of C code that raises no audit events go unnoticed.
"""

from __future__ import annotations

import atexit
import builtins
import os
import signal
import socket
import sys
import threading
import time
import warnings

# The public function converts each handler to an enum, which took a third of a probe's time.
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Callable, Collection, Mapping
from typing import Any

_SIGNALS = sorted(signal.valid_signals())
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EFFECTS = (
    "socket.", "http.", "urllib.", "ftplib.", "smtplib.", "subprocess.", "pty.", "shutil.", "tempfile.", "sqlite3.",
    "_thread.start", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "os.mkdir",
    "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.chdir",
    "os.putenv", "os.unsetenv", "signal.",
)  # fmt: skip
# Process-wide functions and classes, which no plugin may replace.
_SHARED: tuple[tuple[Any, str], ...] = (
    *((builtins, name) for name in ("open", "print", "__import__", "exec", "eval", "input")),
    *((socket, name) for name in ("socket", "create_connection", "getaddrinfo")),
    (os, "environ"),
)


class Watch:
    """Records the side effects of a `with` block.

    Args:
        own: The plugin's top-level packages.

    Attributes:
        effects: A text for each effect.
        changed: A text for each change to process-wide state.
        imported: The modules that were imported.
        cpu_ms: The CPU time.
        waited_ms: The time spent waiting for a disk, server or clock, but not for a CPU on a busy machine.
    """

    def __init__(self, own: Collection[str]) -> None:
        self.effects: list[str] = []
        self.changed: list[str] = []
        self.imported: list[str] = []
        self.cpu_ms = self.waited_ms = 0.0
        self._own = frozenset(own)
        self._on = False

    def __enter__(self) -> Watch:
        self._last_module, self._paths, self._state = next(reversed(sys.modules)), list(sys.path), _state()
        self._shared = _shared()
        self._start_thread, self._register_exit = threading.Thread.start, atexit.register
        # Python 3.11 raises no audit event for threads, and none for exits.
        threading.Thread.start = self._recording_start()  # type: ignore[method-assign,assignment]
        atexit.register = self._recording_register()
        sys.addaudithook(self._audit)
        self._on = True
        self._wall_start, self._queued_start_ms = time.perf_counter(), _queued_ms()
        self._cpu_start = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu_ms = (time.process_time() - self._cpu_start) * 1000
        wall_ms = (time.perf_counter() - self._wall_start) * 1000
        self.waited_ms = max(0.0, wall_ms - self.cpu_ms - (_queued_ms() - self._queued_start_ms))
        self._on = False
        threading.Thread.start = self._start_thread  # type: ignore[method-assign]
        atexit.register = self._register_exit
        self.imported = sorted(_modules_after(self._last_module))
        if sys.path != self._paths:
            self.effects.append("it changes sys.path")
        self.changed += [f"it replaces {name}" for name in _changed_keys(self._shared, _shared())]
        self.changed += [f"it changes {name}" for name in _changed_keys(self._state, _state())]

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._on and _is_effect(event, arguments):
            self.effects.append(f"{event} {repr(arguments[0])[:200] if arguments else ''}")

    def _recording_start(self) -> Callable[[threading.Thread], None]:
        start, effects = self._start_thread, self.effects

        def start_and_record(thread: threading.Thread) -> None:
            effects.append(f"it starts the thread {thread.name}")
            start(thread)

        return start_and_record

    def _recording_register(self) -> Callable[..., Any]:
        register, changed, own = self._register_exit, self.changed, self._own

        def register_and_record(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Callable[..., Any]:
            # Only calls from the plugin's own modules count; those of the standard library are legitimate.
            if sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] in own:
                changed.append("it registers an atexit handler")
            return register(function, *arguments, **keywords)

        return register_and_record


def _modules_after(last: str) -> set[str]:
    """Return the modules imported after `last`.

    `sys.modules` preserves the import order. Comparing all names before and after would copy them into each fork's
    memory.
    """
    names: set[str] = set()
    for name in reversed(sys.modules):
        if name == last:
            break
        names.add(name)
    return names


def _queued_ms() -> float:
    """Return how long this process has waited for a CPU, or 0 if the system does not report it."""
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:  # noqa: PTH123 - faster, and opened twice per plugin
            return int(file.read().split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


def _is_effect(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        _, mode, flags = arguments
        return bool(set(mode or "") & set("wax+")) or bool((flags or 0) & _WRITES)
    return event.startswith(_EFFECTS)


def _changed_keys(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [name for name, value in now.items() if value != before[name]]


def _shared() -> dict[str, int]:
    """Return the identity of each object in `_SHARED`, since a replacement may compare equal."""
    return {f"{owner.__name__}.{name}": id(getattr(owner, name)) for owner, name in _SHARED}


def _state() -> dict[str, object]:
    """Return process-wide state."""
    logging = sys.modules.get("logging")
    return {
        "sys.meta_path": list(sys.meta_path),
        "sys.path_hooks": list(sys.path_hooks),
        "sys.excepthook": sys.excepthook,
        "threading.excepthook": threading.excepthook,
        "the streams in sys": (sys.stdin, sys.stdout, sys.stderr),
        "the warning filters": list(warnings.filters),
        "the root logger": (list(logging.root.handlers), logging.root.level) if logging else ([], 30),
        "the working directory": os.getcwd(),  # noqa: PTH109 - compared as text
        "the recursion limit": sys.getrecursionlimit(),
        "signal handlers": [getsignal(number) for number in _SIGNALS],
        # Not all names; see `_modules_after`.
        "builtins": (len(vars(builtins)), next(reversed(vars(builtins)))),
    }
