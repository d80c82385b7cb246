"""What the core's tests share: a folder for distributions, and a way to gather what is asynchronous."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import pty
import select
import signal
import subprocess
import sysconfig
import time
import venv
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import jackfield
from jackfield_testkit.site import FakeSite, site

__all__ = ["site"]


@pytest.fixture
def gather() -> Callable[[AsyncIterator[Any]], list[Any]]:
    """Everything that an async iterator gives, in an event loop of its own."""

    async def collect(events: AsyncIterator[Any]) -> list[Any]:
        return [event async for event in events]

    def gathered(events: AsyncIterator[Any]) -> list[Any]:
        return asyncio.run(collect(events))

    return gathered


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that sees the core and what is installed beside it, but none of our plugins.

    A command that looks at all plugins would look at every one of this repository, in every test.
    """
    prefix = tmp_path_factory.mktemp("bare")
    venv.create(prefix, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(prefix)}))
    core = importlib.metadata.distribution("jackfield")
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if "jackfield" not in installed.name and installed.suffix != ".pth":
            (packages / installed.name).symlink_to(installed)
    metadata = Path(str(core.locate_file("."))) / f"jackfield-{core.version}.dist-info"
    (packages / metadata.name).symlink_to(metadata)
    (packages / "core.pth").write_text(str(Path(jackfield.__path__[0]).parent))
    return str(prefix / "bin/python")


class Terminal:
    """A program on a pseudo-terminal, typed at as a person does."""

    def __init__(self, python: str, arguments: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a run of tests in the background ignores it
            os.chdir(cwd)
            os.execve(python, [python, "-m", "jackfield", *arguments], {**env, "TERM": env.get("TEST_TERM", "dumb")})
        self.seen = ""

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
        self.seen = self.seen.partition(text)[2]

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
        _, status = os.waitpid(self.pid, 0)
        os.close(self._file)
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def open_terminal(bare_python: str) -> Callable[..., Terminal]:
    """Runs `jackfield` on a pseudo-terminal: `open_terminal(arguments, folder, environment)`."""
    return partial(Terminal, bare_python)


class CommandLine:
    """Runs `jackfield` in a process of its own, which sees the distributions of `site` and the core.

    Attributes:
        folder: The working directory; `pyproject.toml` there is the project's.
        env: The environment, without settings, keys and a home of anybody's.
    """

    def __init__(self, python: str, folder: Path, site_folder: Path) -> None:
        self._python = python
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith("JACKFIELD") and "KEY" not in key}
        homes = {name: str(folder / name.lower()) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        self.env = {**kept, **homes, "PYTHONPATH": str(site_folder)}

    @property
    def config(self) -> Path:
        """The folder of the user's files."""
        return Path(self.env["XDG_CONFIG_HOME"]) / "jackfield"

    def __call__(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self._run(["-m", "jackfield", *arguments], more)

    def as_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """As the console script does it, which finds no module in the working directory."""
        return self._run(["-P", "-c", "from jackfield.cli.main import main; raise SystemExit(main())", *arguments], {})

    def _run(self, words: list[str], more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._python, *words],
            cwd=self.folder,
            env={**self.env, **more},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture
def command_line(bare_python: str, tmp_path: Path, site: FakeSite) -> CommandLine:
    """The command line, beside the fake distributions of `site`."""
    folder = tmp_path / "project"
    folder.mkdir()
    return CommandLine(bare_python, folder, site.folder)
