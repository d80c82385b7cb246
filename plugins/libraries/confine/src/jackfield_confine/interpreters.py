"""Find the Python interpreter for running a program from any working directory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from shutil import which

from jackfield.errors import SandboxError

_ANSWERS_S = 30
_MOST_LINKS = 40  # as many as the system follows
# Without `site`, which would run the packages' .pth files here, `sys.prefix` is not the virtual environment's.
_ASKED = """
import os, sys
environment = os.path.dirname(os.path.dirname(sys.executable))
has_own = os.path.exists(os.path.join(environment, "pyvenv.cfg"))
print(sys.executable, environment if has_own else sys.prefix, sys.base_prefix, sep="\\n")
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter.

    Attributes:
        path: The absolute path. A final symlink is not resolved, because the path identifies a virtual environment.
        readable: Absolute paths the interpreter needs: its environment, its installation, and the links leading to
            them.
    """

    path: str
    readable: tuple[str, ...]


def this_python() -> str:
    """Return the absolute path of the interpreter that runs this process.

    Raises:
        SandboxError: The interpreter is embedded in another program, and no Python executable was found on disk.
    """
    # An embedding program may leave it empty.
    if sys.executable:
        return os.path.abspath(sys.executable)  # noqa: PTH100 - `Path.resolve` follows the link of an environment
    names = ("python3", "python")
    inside = (os.path.join(prefix, "bin", name) for prefix in (sys.prefix, sys.base_prefix) for name in names)  # noqa: PTH118
    path = next(filter(os.path.exists, inside), None)
    if path is None:
        raise SandboxError("this program has no Python interpreter of its own: set 'python' to the path of one")
    return path


def find_python(named: str | None = None) -> Interpreter:
    """Find an interpreter and the paths it needs. Blocks: a named interpreter is started once to query it.

    Args:
        named: A path (relative to the working directory, or with `~`), or a name on the PATH. None for this
            interpreter.

    Raises:
        SandboxError: The interpreter does not exist, or does not behave like Python.
    """
    if named is None:
        path = this_python()
        return Interpreter(path, _needs(path, sys.prefix, sys.base_prefix))
    return _ask(_absolute(named))


def _absolute(named: str) -> str:
    expanded = os.path.expanduser(named)  # noqa: PTH111 - as text
    if os.path.dirname(expanded):  # noqa: PTH120
        return os.path.abspath(expanded)  # noqa: PTH100
    path = which(expanded)
    if path is None:
        raise SandboxError(f"interpreter {named!r} is not on the PATH: set 'python' to its path")
    return os.path.abspath(path)  # noqa: PTH100


@cache
def _ask(path: str) -> Interpreter:
    # The answer may be another path: pyenv's `python` is a script that starts one of several.
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter of the settings
            [path, "-I", "-S", "-c", _ASKED], capture_output=True, text=True, timeout=_ANSWERS_S, check=False
        )
    except OSError as error:
        problem = f"{path} cannot be started: {error.strerror}"
        raise SandboxError(f"the interpreter {problem}; check the setting 'python'") from error
    except subprocess.TimeoutExpired:
        raise SandboxError(f"the interpreter {path} did not respond within {_ANSWERS_S} s") from None
    answer = done.stdout.splitlines()
    if len(answer) != 3 or not os.path.isabs(answer[0]):  # noqa: PTH117
        raise SandboxError(f"{path} is not a Python interpreter: {done.stderr.strip() or done.stdout.strip():.200}")
    return Interpreter(answer[0], _needs(*answer))


def _needs(path: str, *prefixes: str) -> tuple[str, ...]:
    folders = [one for prefix in prefixes for one in (prefix, os.path.realpath(prefix)) if prefix != "/usr"]
    links = (link for link in _links(path) if not any(link.startswith(f"{folder}/") for folder in (*folders, "/usr")))
    return tuple(dict.fromkeys((*folders, *links)))


def _links(path: str) -> Iterator[str]:
    """Yield each absolute path on the symlink chain that leads to an executable."""
    for _ in range(_MOST_LINKS):
        yield path
        if not os.path.islink(path):  # noqa: PTH114
            return
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))  # noqa: PTH115, PTH118, PTH120
