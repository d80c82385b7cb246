"""Run attacks in separate processes, with a watchdog that ends and counts those that hang."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from attacks.worker import kind_named

ROOT = Path(__file__).resolve().parent.parent
START_S = 60.0
_LOOK_S = 0.2


@dataclass(frozen=True)
class Broken:
    """An attempt that broke a law, and how to repeat it."""

    kind: str
    number: int
    name: str
    reasons: tuple[str, ...]
    seed: str

    def __str__(self) -> str:
        again = f"python -m attacks --only {self.kind} --seed {self.seed} --attempt {self.number}"
        shown = _plain(f"{self.name}: {self.reasons[0]}")
        more = f" (and {len(self.reasons) - 1} more)" if len(self.reasons) > 1 else ""
        return f"broke  {self.kind:12} {shown}{more}\n       {again}"


@dataclass
class Tally:
    """The outcome of all attempts of one kind."""

    kind: str
    tried: int = 0
    broke: int = 0
    seconds: float = 0.0
    broken: list[Broken] = field(default_factory=list)

    @property
    def held(self) -> int:
        """The number of tries that broke nothing."""
        return self.tried - self.broke


def attack(
    kind: str, *, seed: str, seconds: float, first: int = 0, last: int = sys.maxsize, tell: Callable[[Broken], None]
) -> Tally:
    """Make attempts of one kind until the time is up or there are no more.

    A process that hangs, dies or uses too much memory is killed, and another one continues with the next attempt.
    """
    tally = Tally(kind)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"attack-{kind}-") as folder:
        while first < last and (left := started + seconds - time.monotonic()) > 0:
            worker = _Worker(kind, [seed, str(first), str(last), str(left)], Path(folder))
            try:
                end = _follow(worker, tally, seed, tell)
            finally:
                worker.end()
            if end is None:
                break
            first = end + 1
    tally.seconds = time.monotonic() - started
    return tally


def _follow(worker: _Worker, tally: Tally, seed: str, tell: Callable[[Broken], None]) -> int | None:
    """Count the results that a worker reports.

    Returns:
        The number of the attempt during which the worker died, or None if it finished.
    """
    current: tuple[int, str, int] | None = None

    def judge(reasons: list[str]) -> None:
        if current is None:
            raise RuntimeError(f"the worker for {tally.kind} did not begin: {worker.last_words()}")
        number, name, counts = current
        tally.tried += counts
        if reasons:
            tally.broke += min(counts, len(reasons))
            tally.broken.append(Broken(tally.kind, number, name, tuple(reasons), seed))
            tell(tally.broken[-1])

    for message in worker.messages():
        match message:
            case ["start", int(number), str(name), int(counts), timeout_s]:
                current = (number, name, counts)
                worker.patience_s = float(timeout_s)
            case ["done", _, list(reasons)]:
                judge(reasons)
                worker.patience_s = START_S
                finished, current = current, None
                worker.last = finished[0] if finished else None
            case ["end"]:
                return None
            case ["fell", str(why)]:
                if current is None and worker.last is not None:
                    return worker.last  # between two attempts, so the last one failed late
                judge([why])
                return current[0] if current else None
    return None


class _Worker:
    """A process that makes attempts, along with all processes it starts."""

    def __init__(self, kind: str, arguments: list[str], folder: Path) -> None:
        self.patience_s = START_S
        self.last: int | None = None
        self._memory = kind_named(kind).memory_mb << 20
        self._log = folder / "log"
        home = Path(tempfile.mkdtemp(dir=folder))
        self._reading, writing = os.pipe()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "attacks.worker", kind, *arguments],
                cwd=home,
                env=environment(home, REPORT_TO=str(writing)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(writing,),
                start_new_session=True,
            )
        os.close(writing)

    def messages(self) -> Iterator[list[Any]]:
        """Yield the worker's reports, and `fell` with a reason if it does not finish on its own."""
        begun = looked = time.monotonic()
        rest = b""
        while True:
            ready, _, _ = select.select([self._reading], [], [], _LOOK_S)
            if ready:
                data = os.read(self._reading, 1 << 16)
                if not data:
                    yield ["fell", f"its process ended with {self._process.wait()}: {self.last_words()}"]
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    begun = time.monotonic()
                    yield json.loads(line)
            elif time.monotonic() - begun > self.patience_s:
                yield ["fell", f"it hung: no end after {self.patience_s:g} s"]
                return
            if time.monotonic() - looked < _LOOK_S:
                continue  # examining all processes takes longer than most attempts
            looked = time.monotonic()
            if (used := self._used()) > self._memory:
                yield ["fell", f"it took more than {self._memory >> 20} MB of memory ({used >> 20})"]
                return

    def last_words(self) -> str:
        """Return the end of the worker's output."""
        return " ".join(self._log.read_text(errors="replace").split())[-300:]

    def end(self) -> None:
        """Kill the worker and its remaining children."""
        for process in [*self._family()[1:], *self._family()[:1]]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._reading)

    def _family(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            own = psutil.Process(self._process.pid)
            return [own, *own.children(recursive=True)]
        return []

    def _used(self) -> int:
        used = 0
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                used += process.memory_info().rss
        return used


def environment(home: Path, **more: str) -> Mapping[str, str]:
    """Return an environment without anyone's settings and API keys, and with its own home directory."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JACKFIELD_", "OPENAI_", "AZURE_", "DASHSCOPE_")) and "PROXY" not in name.upper()
    }
    places = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "TMPDIR": str(home)}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**kept, **places, "PYTHONPATH": path, **more}


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in text)
