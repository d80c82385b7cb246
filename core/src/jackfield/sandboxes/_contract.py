"""The contract for sandboxes: the programs and code that they run, and the protection that they provide."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

from jackfield.config import Configured

Risk = Literal["files", "network", "processes", "memory", "total_memory", "cpu", "process_count", "file_size"]
"""A way in which code could harm the machine or its owner."""

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
_END_S = 5.0  # time for a program to end before it is killed
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for a program. None means unlimited.

    Attributes:
        memory_bytes: The maximum address space of each process. If the sandbox covers `total_memory`, `memory_bytes`
            also limits the total memory of all processes, including in-memory files and kernel buffers.
        cpu_s: The maximum CPU time of each process, in seconds.
        processes: The maximum total number of processes and threads at any time.
        file_bytes: The maximum size of each file that the program writes.
        wall_s: The number of seconds after which the program is stopped. Only `run` and `run_code` enforce this limit.
    """

    memory_bytes: int | None = None
    cpu_s: int | None = None
    processes: int | None = None
    file_bytes: int | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run, and its permissions. All paths are absolute.

    Attributes:
        argv: The command.
        work_dir: The working directory, which must exist and is writable.
        writable: Additional existing directories that the program may write to, such as a directory for sockets.
        readable: Additional files and directories that the program may read, including any secrets in them. The files
            of the system and this Python installation are always readable.
        env: The program's complete environment.
        limits: The program's limits.
        network: True if the program may use the network.
        leftovers: A directory to delete at the end if the parent process has exited, or '' for none. Not all sandboxes
            support deletion.
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
    """A sandbox's protection on this machine.

    Attributes:
        layer: The mechanism in one word, such as `bubblewrap`.
        covers: The risks that the sandbox covers. A limit is covered if it is enforced whenever it is set.
    """

    layer: str
    covers: frozenset[Risk]

    @property
    def open_risks(self) -> tuple[Risk, ...]:
        """The risks that remain."""
        return tuple(risk for risk in RISKS if risk not in self.covers)

    def __str__(self) -> str:
        """Describe the protection in one sentence."""
        facts = [
            ("the code cannot {}", PREVENTED, True, "or"),
            ("it can {}", PREVENTED, False, "and"),
            ("limited: {}", _LIMITED, True, "and"),
            ("not limited: {}", _LIMITED, False, "and"),
        ]
        sentences = []
        for text, labels, covered, conjunction in facts:
            risks = [label for risk, label in labels.items() if (risk in self.covers) is covered]
            if risks:
                sentences.append(text.format(_enumerate(risks, conjunction)))
        return f"{self.layer}: {'; '.join(sentences)}"


def _enumerate(words: list[str], conjunction: str) -> str:
    """Join words into a phrase: `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last


@dataclass(frozen=True, slots=True)
class Finished:
    """The outcome of a program.

    Attributes:
        exit_code: The exit code as in a shell: 128 plus the signal number if a signal terminated the program.
        stdout, stderr: The start of each stream. `is_cut` is True if output is missing.
        timed_out: True if the program was stopped after `wall_s`.
    """

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    is_cut: bool = False
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class CodeResult:
    """The result of running code.

    Attributes:
        value: The value of the last expression as plain data, or None.
        stdout: The text that the code printed.
        error: The error that the code raised, written for the model, or '' if there is none.
    """

    value: object = None
    stdout: str = ""
    error: str = ""


class Sandbox(Configured, ABC):
    """Base class for sandboxes, which run code in isolation from the machine.

    A sandbox extends `ProgramSandbox`, `CodeSandbox` or both. One instance serves many tasks and threads concurrently.
    """

    @abstractmethod
    def protection(self) -> Protection:
        """Return the sandbox's protection on this machine. The first call tests the sandbox and may block for a second.

        Raises:
            SandboxError: The sandbox does not work on this machine. The message says what is missing.
        """


class ProgramSandbox(Sandbox):
    """A sandbox that runs programs."""

    @abstractmethod
    def command(self, program: Program) -> list[str]:
        """Return a command that runs a program in the sandbox.

        Start the command in `program.work_dir` with `program.env` as its environment. The command has the same input,
        output and exit code as the program. All of the program's processes are terminated when the command ends, even
        if it is killed by SIGKILL, or when the command's parent process ends.

        Raises:
            SandboxError: The sandbox does not work on this machine, or cannot run this program.
        """

    async def run(self, program: Program, *, stdin: bytes = b"", output_bytes: int = 1 << 20) -> Finished:
        """Run a program to completion. Cancellation stops it.

        Args:
            program: The program.
            stdin: The program's input.
            output_bytes: The maximum number of bytes to keep from stdout and from stderr.
        """
        process = await asyncio.create_subprocess_exec(
            *self.command(program),
            env=dict(program.env),
            cwd=program.work_dir,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal reaches only the caller
        )
        stdout, stderr = _Output(output_bytes), _Output(output_bytes)
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
            await _end_process(process)
        code = process.returncode or 0
        return Finished(
            code if code >= 0 else 128 - code,
            bytes(stdout.kept),
            bytes(stderr.kept),
            stdout.is_cut or stderr.is_cut,
            timed_out,
        )


class CodeSandbox(Sandbox):
    """A sandbox that interprets Python code itself. The code has no access to programs, packages or files."""

    @abstractmethod
    async def run_code(
        self, code: str, *, values: Mapping[str, object] | None = None, limits: Limits = Limits()
    ) -> CodeResult:
        """Run code to completion. No state is kept between runs.

        Args:
            code: The code.
            values: Variables for the code, as plain data.
            limits: Limits for the code.

        Raises:
            SandboxError: The sandbox does not work on this machine. Errors raised by the code are part of the result.
        """


class _Output:
    """Buffer for the start of a stream. The rest is read and discarded to keep the program from blocking."""

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
    with suppress(BrokenPipeError, ConnectionResetError):  # the program may not read all its input
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _end_process(process: asyncio.subprocess.Process) -> None:
    """Stop a running process: ask it to clean up first, then kill it."""
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
