"""Record the side effects of code: the files it writes, the connections it opens, the processes it starts.

An audit hook sees everything that the interpreter does, whichever library requests it, but not what another process or
a C library does on its own.

```python
with watching(workspace=folder) as effects:
    tool.call({"text": "a"})
assert effects.kinds <= {"files"}
```
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

Kind = Literal["files", "network", "processes"]
"""The same kinds as in `ComponentSpec.effects`."""

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Which arguments of an event are paths that change.
_FIRST, _BOTH, _SECOND = slice(1), slice(2), slice(1, 2)
_PATHS_OF = {
    "os.mkdir": _FIRST,
    "os.remove": _FIRST,
    "os.rmdir": _FIRST,
    "os.truncate": _FIRST,
    "os.chmod": _FIRST,
    "os.chown": _FIRST,
    "os.utime": _FIRST,
    "os.setxattr": _FIRST,
    "os.rename": _BOTH,
    "os.link": _BOTH,
    "os.symlink": _SECOND,
    "sqlite3.connect": _FIRST,
}
_PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.spawn")
# The program of a `jackfield_documents` process that parses files.
_PARSING = "jackfield_documents.parsing_process"
_LOOK_UPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo")
_CONNECTIONS = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect, with its kind and a human-readable target."""

    kind: Kind
    what: str


@dataclass(eq=False)  # equal recordings are still two, of which each ends alone
class Effects:
    """Effects recorded by `watching`.

    Attributes:
        workspace: The real path of the directory in which writing is allowed, or None for nowhere.
        outside: The distinct effects outside the workspace, in order.
        inside: The files written in the workspace.
        read: The files that were read, except those of Python and the system.
        opened: The files that were read, except those of Python.
    """

    workspace: str | None = None
    outside: list[Effect] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> set[Kind]:
        """The kinds of effects seen outside the workspace."""
        return {effect.kind for effect in self.outside}

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Handle one audit event."""
        if event == "open":
            self._hear_open(*arguments)
        elif event in _PATHS_OF:
            for path in arguments[_PATHS_OF[event]]:
                self._note_write(path, event)
        elif event.startswith(_PROCESSES):
            self._hear_process(event, *arguments)
        elif event.startswith(_LOOK_UPS):
            self._note("network", f"looks up {_short(arguments[0])}")
        elif event in _CONNECTIONS:
            self._hear_connection(event, *arguments)

    def _hear_open(self, path: object, mode: str | None, flags: int | None) -> None:
        if set(mode or "") & set("wax+") or (flags or 0) & _WRITE_FLAGS:
            self._note_write(path, "writes")
        else:
            self._note_read(path)

    def _hear_process(self, event: str, program: object = "", command: object = (), *_: object) -> None:
        if not _is_of_parsing(command):
            self._note("processes", f"{event} {_short(program)}".rstrip())

    def _note_read(self, path: object) -> None:
        name = _absolute(path)
        if name and not _is_of_python(name) and name not in self.opened:
            self.opened.append(name)
            if not name.startswith(_SYSTEM):
                self.read.append(name)

    def _note_write(self, path: object, how: str) -> None:
        name = _absolute(path)
        if not name or name.startswith(("/dev/", "/proc/self/")) or "__pycache__" in name:
            return
        if self.workspace is not None and f"{name}{os.sep}".startswith(f"{self.workspace}{os.sep}"):
            self.inside.append(name)
        else:
            self._note("files", f"{how.removeprefix('os.')} {_short(name)}")

    def _hear_connection(self, event: str, _: object, address: object = None) -> None:
        if not isinstance(address, tuple):  # a Unix socket stays on this machine
            return
        # Many libraries probe the machine at import by binding to a free port.
        if event == "socket.bind" and address[0] in _LOOPBACK and address[1] == 0:
            return
        verb = event.removeprefix("socket.")
        self._note("network", f"{verb} {_short(':'.join(map(str, address[:2])))}")

    def _note(self, kind: Kind, what: str) -> None:
        effect = Effect(kind, what)
        if effect not in self.outside:
            self.outside.append(effect)


class Hearer(Protocol):
    """Receives audit events."""

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Handle an audit event on the thread that raised it."""


class _Listener:
    """The process's only audit hook. Hooks cannot be removed, so this one does nothing outside `hearing`."""

    def __init__(self) -> None:
        self.watchers: list[Hearer] = []
        self.busy = threading.local()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        # The recording itself is not an effect of the watched code.
        if not self.watchers or getattr(self.busy, "noting", False):
            return
        self.busy.noting = True
        try:
            for watcher in self.watchers:
                watcher.hear(event, arguments)
        finally:
            self.busy.noting = False


@cache
def _listener() -> _Listener:
    return _Listener()


@contextmanager
def watching(*, workspace: str | os.PathLike[str] | None = None) -> Iterator[Effects]:
    """Record the effects of all threads in this process until the block exits.

    Args:
        workspace: A directory in which anything may be written.
    """
    effects = Effects(None if workspace is None else os.path.realpath(workspace))
    with hearing(effects):
        yield effects


@contextmanager
def hearing(hearer: Hearer) -> Iterator[None]:
    """Forward all audit events of this process to a hearer until the block exits."""
    watchers = _listener().watchers
    watchers.append(hearer)
    try:
        yield
    finally:
        watchers.remove(hearer)


def undeclared(effects: Effects, declared: frozenset[str] | set[str]) -> list[str]:
    """Describe the effects that were seen but not declared."""
    return [f"{effect.kind}: {effect.what}" for effect in effects.outside if effect.kind not in declared]


def unexpected_reads(effects: Effects, given: Iterable[str | os.PathLike[str]] = ()) -> list[str]:
    """List files that the code was not expected to read.

    Expected are the given files, files that the code wrote itself, the workspace, files of Python and its packages, and
    files in which libraries look up facts about the machine.
    """
    written = {effect.what.partition(" ")[2] for effect in effects.outside if effect.kind == "files"}
    folders = [os.path.realpath(path) for path in given] + ([effects.workspace] if effects.workspace else [])
    return [
        name
        for name in effects.opened
        if name not in written
        and (not name.startswith(_OF_THE_MACHINE) or (name.startswith("/proc/") and name.endswith(_PRIVATE)))
        and not any(f"{name}{os.sep}".startswith(f"{folder}{os.sep}") for folder in folders)
    ]


def unseen(effects: Effects, declared: frozenset[str] | set[str]) -> set[str]:
    """Return the declared effects that were not seen.

    If the code started a process, nothing is returned, because the process may have had the other effects.
    """
    seen: set[str] = set(effects.kinds)
    if effects.read or effects.inside:
        seen.add("files")
    return set() if "processes" in seen else set(declared) - seen


# --- cleaning up events ---


def _absolute(path: object) -> str:
    """Normalise a path for comparison. Return '' for a descriptor, which was noted when it was opened."""
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    text = os.fsdecode(path)
    if "\0" in text:  # the call itself rejects the path; an error here would hide that
        return text
    folder, name = os.path.split(text)
    # The last part is not resolved, because removing or creating a link changes the link itself.
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - faster for many paths


def _is_of_parsing(command: object) -> bool:
    """Return True if a process parses documents for `jackfield_documents`.

    Such a process has fewer privileges than the one that starts it, so using it counts only as reading a file.
    """
    return isinstance(command, list | tuple) and any(_PARSING in str(word) for word in command)


@cache
def _python_folders() -> tuple[str, ...]:
    roots = (sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(os.__file__).parent), *sys.path)
    folders = dict.fromkeys(os.path.realpath(folder) for folder in roots if folder)
    temporary = os.path.realpath(tempfile.gettempdir())
    return tuple(folder + os.sep for folder in folders if folder not in ("/", temporary))


# Facts about the machine that libraries look up: time zones, host names, certificates, file types, fonts.
_OF_THE_MACHINE = (
    *("/proc/", "/sys/", "/dev/", "/usr/share/", "/usr/lib/", "/usr/local/share/", "/lib/", "/var/cache/fontconfig/"),
    *("/etc/ssl/", "/etc/pki/", "/etc/ca-certificates", "/etc/localtime", "/etc/timezone", "/etc/mime.types"),
    *("/etc/httpd/", "/etc/apache2/", "/etc/apache/", "/etc/httpd.conf", "/etc/resolv.conf", "/etc/hosts"),
    *("/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/os-release"),
    *("/etc/fonts/", "/etc/ld.so", "/etc/locale"),
)
_PRIVATE = ("/environ", "/cmdline", "/mem", "/maps")  # of a process
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/share/", "/usr/lib/", "/lib/")


def _is_of_python(name: str) -> bool:
    return name.startswith(_python_folders()) or name.endswith((".py", ".pyc", ".so", ".pth"))


def _short(value: object) -> str:
    text = os.fsdecode(value) if isinstance(value, bytes | os.PathLike) else str(value)
    return text if len(text) <= 120 else text[:120] + "…"
