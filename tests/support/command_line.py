"""The command line as people use it: `jackfield` in processes of its own, and on a terminal.

In a `conftest.py`, beside `site`:

```python
from tests.support.command_line import bare_python, command_line, open_terminal
from tests.support.site import site

__all__ = ["bare_python", "command_line", "open_terminal", "site"]
```

Then a test may take `command_line`, which sees the distributions of `site`:

```python
def test_a_plugin_is_listed(command_line: CommandLine, site: FakeSite) -> None:
    site.add_tools("acme-search", "search")
    assert "acme-search" in command_line("plugins", "list").stdout
```
"""

from __future__ import annotations

import importlib.metadata
import io
import os
import re
import select
import signal
import subprocess
import sysconfig
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from jackfield_testkit.forks import Forks, shared_forks
from tests.support.site import FakeSite

SEEN = ("jackfield", "jackfield-manage")
"""Our packages that the command line sees in tests."""
SEEN_IF_INSTALLED = ("jackfield-terminal",)
"""Those that it sees, too, where the tests' own environment has them: `jackfield run` and `chat`."""

_OURS = re.compile(r"jackfield(-[a-z0-9-]+)?")
LIMIT_S = 60.0
IMPORTED_BY_COMMANDS = """
import asyncio, importlib.util, json, sqlite3
import jsonschema, yaml
import jackfield.agents, jackfield.cli.main, jackfield.models, jackfield.plugins, jackfield.tools
if importlib.util.find_spec("jackfield_manage"):
    import packaging.markers, packaging.requirements, packaging.specifiers, tomllib
    import jackfield_manage.plugin, jackfield_manage.judging.why
    from jackfield_manage.cli import doctor, installing, judging, news, pipeline, plugins, policy, requirements, trust
if importlib.util.find_spec("jackfield_terminal"):
    import jackfield.agents, jackfield_terminal.plugin
    import jackfield_terminal.chat, jackfield_terminal.markdown, jackfield_terminal.run
    import prompt_toolkit.completion, prompt_toolkit.history, prompt_toolkit.output.vt100, prompt_toolkit.shortcuts
"""
# As `python -m` does it, which finds modules in the working directory.
_AS_A_MODULE = """
import os, runpy, sys
sys.path.insert(0, os.getcwd())
runpy.run_module("jackfield", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that sees the core, its commands, and what others have installed.

    A command that looks at all plugins would look at every one of this repository, in every test.
    """
    beside = [name for name in SEEN_IF_INSTALLED if _is_installed(name)]
    return bare_environment(tmp_path_factory.mktemp("bare"), [*SEEN, *beside])


def bare_environment(prefix: Path, names: Sequence[str]) -> str:
    """Make an environment that sees some distributions of ours and what others have installed; gives its Python."""
    venv.create(prefix, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(prefix)}))
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if "jackfield" not in installed.name and installed.suffix != ".pth":
            (packages / installed.name).symlink_to(installed)
    for name in _with_what_they_need(names):
        _link(importlib.metadata.distribution(name), packages)
    return str(prefix / "bin/python")


def _with_what_they_need(names: Sequence[str]) -> list[str]:
    """Distributions of ours, and those of ours that they require."""
    found = list(names)
    for name in found:  # it grows
        required = [text for text in importlib.metadata.requires(name) or () if "extra ==" not in text]
        needed = [match[0] for match in map(_OURS.match, required) if match]
        found += sorted({*needed} - {*found})
    return found


def _is_installed(name: str) -> bool:
    return bool(list(importlib.metadata.distributions(name=name)))


def _link(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    """Have an environment see a distribution that is installed in another, editable or not."""
    package = distribution.name.replace("-", "_")
    source = Path(str(import_module(package).__file__)).parent
    metadata = Path(str(distribution.locate_file("."))) / f"{package}-{distribution.version}.dist-info"
    (packages / metadata.name).symlink_to(metadata)
    (packages / f"{package}.pth").write_text(str(source.parent))


class Terminal:
    """A program on a pseudo-terminal, typed at as a person does.

    Attributes:
        seen: What it has written since what was waited for last.
        before: What it had written before that.
    """

    def __init__(self, python: str, arguments: list[str], cwd: Path, env: dict[str, str]) -> None:
        env = {**env, "TERM": env.get("TEST_TERM", "dumb")}
        forks = shared_forks(IMPORTED_BY_COMMANDS, python)
        self._fork = None
        if forks:
            self._file, terminal = os.openpty()
            _set_size(self._file, rows=24, columns=100)
            self._fork = forks.start_on(terminal, _AS_A_MODULE, *arguments, cwd=cwd, env=env)
            os.close(terminal)
            self.pid = self._fork.pid
        else:
            self.pid, self._file = _execute(python, arguments, cwd, env)
            _set_size(self._file, rows=24, columns=100)
        self.seen = self.before = ""

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def wait_for(self, text: str, within_s: float = 30) -> None:
        ends = time.monotonic() + within_s
        while text not in self.seen:
            left = ends - time.monotonic()
            assert left > 0, f"no {text!r} in {self.seen!r}"
            if select.select([self._file], [], [], left)[0]:
                try:
                    self.seen += os.read(self._file, 4096).decode(errors="replace")
                except OSError:
                    break
        assert text in self.seen, self.seen
        self.before, _, self.seen = self.seen.partition(text)

    def end(self) -> int:
        rest = bytearray()
        while True:  # what it still writes must be read, or it never ends
            try:
                piece = os.read(self._file, 4096)
            except OSError:
                break
            if not piece:
                break
            rest += piece
        self.seen += rest.decode(errors="replace")
        os.close(self._file)
        if self._fork:
            with self._fork:
                return self._fork.wait()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _execute(python: str, arguments: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, int]:
    import pty  # which only some systems have

    pid, file = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a run of tests in the background ignores it
        os.chdir(cwd)
        os.execve(python, [python, "-m", "jackfield", *arguments], env)
    return pid, file


def _set_size(file: int, *, rows: int, columns: int) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@pytest.fixture
def open_terminal(bare_python: str) -> Callable[..., Terminal]:
    """Runs `jackfield` on a pseudo-terminal: `open_terminal(arguments, folder, environment)`."""
    return partial(Terminal, bare_python)


class Tty(io.StringIO):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class CommandLine:
    """Runs `jackfield` in a process of its own, which sees the distributions of `site` and the core.

    Attributes:
        folder: The working directory; `pyproject.toml` there is the project's.
        env: The environment, without settings, keys and a home of anybody's.
    """

    def __init__(self, python: str, folder: Path, site_folder: Path, forks: Forks | None = None) -> None:
        self._python = python
        self._forks = forks
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith("JACKFIELD") and "KEY" not in key}
        homes = {
            name: str(folder / name.lower()) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
        }
        self.env = {**kept, **homes, "PYTHONPATH": str(site_folder)}

    @property
    def config(self) -> Path:
        """The folder of the user's files."""
        return Path(self.env["XDG_CONFIG_HOME"]) / "jackfield"

    def __call__(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        # As `python -m` does it, which finds modules in the working directory.
        program = "import os, runpy, sys\nsys.path.insert(0, os.getcwd())\n"
        return self._run(
            f"{program}runpy.run_module('jackfield', run_name='__main__', alter_sys=True)", arguments, more
        )

    def as_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """As the console script does it, which finds no module in the working directory."""
        return self._run("from jackfield.cli.main import main; raise SystemExit(main())", arguments, {})

    def _run(self, program: str, words: Sequence[str], more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        env = {**self.env, **more}
        if self._forks and not any(name.startswith("PYTHON") for name in more):
            return self._forks.run(program, *words, cwd=self.folder, env=env, timeout_s=LIMIT_S)
        return subprocess.run(
            [self._python, "-P", "-c", program, *words],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture
def command_line(bare_python: str, tmp_path: Path, site: FakeSite) -> CommandLine:
    """The command line, beside the fake distributions of `site`."""
    folder = tmp_path / "project"
    folder.mkdir()
    return CommandLine(bare_python, folder, site.folder, shared_forks(IMPORTED_BY_COMMANDS, bare_python))
