"""Note what modules do while they are imported, besides being imported. Only for a process that exists for it.

It hears what the interpreter does by an audit hook, which cannot be taken away again, and sees what has changed of what
belongs to everybody. What C code does by itself, it does not hear.
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
from collections.abc import Callable, Collection, Mapping
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EFFECTS = (
    "socket.", "http.", "urllib.", "ftplib.", "smtplib.", "subprocess.", "pty.", "shutil.", "tempfile.", "sqlite3.",
    "_thread.start", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "os.mkdir",
    "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.chdir",
    "os.putenv", "os.unsetenv", "signal.",
)  # fmt: skip
# Functions and classes that everybody uses, and nobody may replace.
_SHARED: tuple[tuple[Any, str], ...] = (
    *((builtins, name) for name in ("open", "print", "__import__", "exec", "eval", "input")),
    *((socket, name) for name in ("socket", "create_connection", "getaddrinfo")),
    (os, "environ"),
)


class Watch:
    """Watches what happens inside of a `with` block.

    Args:
        own: The top-level packages of who is watched.

    Attributes:
        effects: What was done, a text each.
        changed: What is not as it was of what belongs to the whole process.
        imported: The modules that came.
        cpu_ms: What it cost, in milliseconds of CPU.
        waited_ms: How long it waited besides, for a disk, a server or a clock; not for its turn on a busy machine.
    """

    def __init__(self, own: Collection[str]) -> None:
        self.effects: list[str] = []
        self.changed: list[str] = []
        self.imported: list[str] = []
        self.cpu_ms = self.waited_ms = 0.0
        self._own = frozenset(own)
        self._on = False

    def __enter__(self) -> Watch:
        self._modules, self._paths, self._state = set(sys.modules), list(sys.path), _state()
        self._shared = _shared()
        self._start_thread, self._register_exit = threading.Thread.start, atexit.register
        # Python 3.11 raises no audit event for threads, and none for exits.
        threading.Thread.start = self._noting_threads()  # type: ignore[method-assign,assignment]
        atexit.register = self._noting_exits()
        sys.addaudithook(self._hear)
        self._on = True
        self._began, self._stood = time.perf_counter(), _in_line_ms()
        self._started = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu_ms = (time.process_time() - self._started) * 1000
        passed = (time.perf_counter() - self._began) * 1000
        self.waited_ms = max(0.0, passed - self.cpu_ms - (_in_line_ms() - self._stood))
        self._on = False
        threading.Thread.start = self._start_thread  # type: ignore[method-assign]
        atexit.register = self._register_exit
        self.imported = sorted(set(sys.modules) - self._modules)
        if sys.path != self._paths:
            self.effects.append("it changes sys.path")
        self.changed += map("it replaces {}".format, _different(self._shared, _shared()))
        self.changed += map("it changes {}".format, _different(self._state, _state()))

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._on and _is_effect(event, arguments):
            self.effects.append(f"{event} {repr(arguments[0])[:200] if arguments else ''}")

    def _noting_threads(self) -> Callable[[threading.Thread], None]:
        start, effects = self._start_thread, self.effects

        def noted(thread: threading.Thread) -> None:
            effects.append(f"it starts the thread {thread.name}")
            start(thread)

        return noted

    def _noting_exits(self) -> Callable[..., Any]:
        register, changed, own = self._register_exit, self.changed, self._own

        def noted(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Callable[..., Any]:
            # Who registers is told by the caller: modules of the standard library have good reasons.
            if sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] in own:
                changed.append("it registers with atexit")
            return register(function, *arguments, **keywords)

        return noted


def _in_line_ms() -> float:
    """How long this process has stood in line for a processor, where the system tells it."""
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:  # noqa: PTH123 - opened twice for each plugin
            return int(file.read().split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


def _is_effect(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        _, mode, flags = arguments
        return bool(set(mode or "") & set("wax+")) or bool((flags or 0) & _WRITES)
    return event.startswith(_EFFECTS)


def _different(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [name for name, value in now.items() if value != before[name]]


def _shared() -> dict[str, int]:
    """Which object each of `_SHARED` is: others may be equal to it."""
    return {f"{owner.__name__}.{name}": id(getattr(owner, name)) for owner, name in _SHARED}


def _state() -> dict[str, object]:
    """What belongs to the whole process."""
    logging = sys.modules.get("logging")
    return {
        "sys.meta_path": list(sys.meta_path),
        "sys.path_hooks": list(sys.path_hooks),
        "sys.excepthook": sys.excepthook,
        "threading.excepthook": threading.excepthook,
        "the streams of sys": (sys.stdin, sys.stdout, sys.stderr),
        "the filters of warnings": list(warnings.filters),
        "the root logger": (list(logging.root.handlers), logging.root.level) if logging else ([], 30),
        "the working directory": os.getcwd(),  # noqa: PTH109 - the text is what is compared
        "the recursion limit": sys.getrecursionlimit(),
        "signal handlers": [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        "builtins": sorted(vars(builtins)),
    }
