"""The contract of sandboxes: what is run in one, what it protects from, and its two abilities."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

from jackfield.config import Configured

Risk = Literal["files", "network", "processes", "memory", "total_memory", "cpu", "process_count", "file_size"]
"""What code could do to the machine and its owner."""

RISKS: tuple[Risk, ...] = get_args(Risk)

PREVENTED: Mapping[Risk, str] = {
    "files": "reach files other than its own",
    "network": "use the network",
    "processes": "see or signal other processes",
}
_LIMITED: Mapping[Risk, str] = {
    "memory": "memory of each process",
    "total_memory": "memory of all processes together",
    "cpu": "CPU time",
    "process_count": "the number of processes",
    "file_size": "the size of files",
}
_END_S = 5.0  # for what a sandbox started to end
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a program may use; None means unlimited.

    Attributes:
        memory_bytes: Address space of each process. Where the sandbox covers `total_memory`, also what all processes
            of the program hold together, with files in memory and the kernel's buffers.
        cpu_s: CPU seconds of each process.
        processes: Processes and threads together, at one time.
        file_bytes: The size of each file that it writes.
        wall_s: Seconds until it is ended. Only for what runs to its end (`run`, `run_code`).
    """

    memory_bytes: int | None = None
    cpu_s: int | None = None
    processes: int | None = None
    file_bytes: int | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is to be run, and what it may reach. All paths are absolute.

    Attributes:
        argv: The command.
        work_dir: Where it starts, and where it may write. It must exist.
        writable: Further folders where it may write, such as one for sockets. They must exist.
        readable: Files and folders that it may read, beside those of the system and of this Python. Secrets inside of
            them can be read, too.
        env: Its whole environment.
        limits: What it may use.
        network: Whether it may use the network.
        leftovers: A folder that is removed at the end if the process that started it is gone, where the sandbox can;
            '' for none.
    """

    argv: tuple[str, ...]
    work_dir: str
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    network: bool = False
    leftovers: str = ""


@dataclass(frozen=True, slots=True)
class Protection:
    """What a sandbox protects from on this machine.

    Attributes:
        layer: What does it, in a word: `bubblewrap`.
        covers: The risks it covers. Limits count as covered if they hold where they are set.
    """

    layer: str
    covers: frozenset[Risk]

    @property
    def open_risks(self) -> tuple[Risk, ...]:
        """The risks that remain."""
        return tuple(risk for risk in RISKS if risk not in self.covers)

    def __str__(self) -> str:
        """One sentence for people."""
        facts = [
            ("the code cannot {}", PREVENTED, True, "or"),
            ("it can {}", PREVENTED, False, "and"),
            ("limited: {}", _LIMITED, True, "and"),
            ("not limited: {}", _LIMITED, False, "and"),
        ]
        said = [
            text.format(listed)
            for text, words, covered, last in facts
            if (listed := _listed([word for risk, word in words.items() if (risk in self.covers) is covered], last))
        ]
        return f"{self.layer}: {'; '.join(said)}"


def _listed(parts: list[str], last: str) -> str:
    return f" {last} ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended.

    Attributes:
        exit_code: As a shell has it: 128 and the number of the signal if one ended the program.
        stdout, stderr: Their beginnings; `is_cut` if there was more.
        timed_out: It was ended after `wall_s`.
    """

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    is_cut: bool = False
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class CodeResult:
    """What came of a piece of code.

    Attributes:
        value: That of its last expression, as plain data; None if there was none.
        stdout: What it printed.
        error: What went wrong in the code, for the model; '' if nothing did.
    """

    value: object = None
    stdout: str = ""
    error: str = ""


class Sandbox(Configured, ABC):
    """Runs code apart from the machine. What it can run is said by its subclasses; a sandbox may be both.

    One instance is used by many tasks and threads.
    """

    @abstractmethod
    def protection(self) -> Protection:
        """What it protects from on this machine, found out by trying; it may block for a second the first time.

        Raises:
            SandboxError: It cannot be used here; the message names what is missing.
        """


class ProgramSandbox(Sandbox):
    """A sandbox that runs programs."""

    @abstractmethod
    def command(self, program: Program) -> list[str]:
        """The command that runs a program in the sandbox.

        It is started with `program.env` as its environment and `program.work_dir` as its folder. Input, output and
        the exit code are the program's. When it ends, by SIGTERM and SIGKILL too, or when the process ends that has
        started it, everything the program has started ends with it.

        Raises:
            SandboxError: The sandbox cannot be used here, or not for this program.
        """

    async def run(self, program: Program, *, stdin: bytes = b"", output_bytes: int = 1 << 20) -> Finished:
        """Run a program to its end. Cancelling ends it.

        Args:
            output_bytes: How much of stdout is kept, and how much of stderr.
        """
        process = await asyncio.create_subprocess_exec(
            *self.command(program),
            env=dict(program.env),
            cwd=program.work_dir,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal is the caller's business
        )
        stdout, stderr = _Kept(output_bytes), _Kept(output_bytes)
        timed_out = False
        try:
            async with asyncio.timeout(program.limits.wall_s), asyncio.TaskGroup() as tasks:
                tasks.create_task(_write(process, stdin))
                tasks.create_task(stdout.read(process.stdout))
                tasks.create_task(stderr.read(process.stderr))
                tasks.create_task(process.wait())
        except TimeoutError:
            timed_out = True
        finally:
            await _end(process)
        code = process.returncode or 0
        return Finished(
            code if code >= 0 else 128 - code,
            bytes(stdout.kept),
            bytes(stderr.kept),
            stdout.is_cut or stderr.is_cut,
            timed_out,
        )


class CodeSandbox(Sandbox):
    """A sandbox that runs Python code by itself, without programs, packages and files."""

    @abstractmethod
    async def run_code(
        self, code: str, *, values: Mapping[str, object] | None = None, limits: Limits = Limits()
    ) -> CodeResult:
        """Run code to its end. Nothing is kept for the next run.

        Args:
            values: What the code finds under these names: plain data.

        Raises:
            SandboxError: The sandbox cannot be used here. What goes wrong in the code is in the result.
        """


class _Kept:
    """The beginning of a stream; the rest is read and forgotten, so that the program does not wait."""

    def __init__(self, most_bytes: int) -> None:
        self.kept = bytearray()
        self.is_cut = False
        self._most_bytes = most_bytes

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (piece := await stream.read(_PIECE_BYTES)):
            room = self._most_bytes - len(self.kept)
            self.kept += piece[:room]
            self.is_cut = self.is_cut or len(piece) > room


async def _write(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # the program need not read it
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process if it still runs: first so that it can clean up, then at once."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_END_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        raise
