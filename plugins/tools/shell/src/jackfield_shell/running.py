"""Run a command to completion, and bound its output."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from jackfield.tools import Editor, ToolContext

_PIECE_BYTES = 1 << 16
_END_S = 5.0  # for a sandbox to end its processes


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a command.

    Attributes:
        exit_code: The exit code as a shell reports it, 128 plus the signal number after a signal.
        output: The output, stdout and stderr combined.
        timed_out: True if the command was ended because it timed out.
    """

    exit_code: int
    output: Output
    timed_out: bool


class Output:
    """Collects output, keeping the beginning and the end up to half of the bytes each."""

    def __init__(self, most_bytes: int) -> None:
        self._half = most_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Add a chunk of output."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._half
        if surplus > 0:
            self._left_out += surplus
            del self._tail[:surplus]

    @property
    def text(self) -> str:
        """The output as text, with a note in place of omitted bytes."""
        if not self._left_out:
            return bytes(self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        return f"{head}\n[… {self._left_out:,} bytes omitted …]\n{tail}"


async def run(
    command: Sequence[str], *, env: Mapping[str, str], folder: str, timeout_s: float, output_bytes: int
) -> Ended:
    """Run a command. When the command ends, times out or is cancelled, everything it started ends as well.

    Raises:
        OSError: The command cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(env),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C in a terminal must not reach it
    )
    output = Output(output_bytes)
    reading = asyncio.create_task(_read(process.stdout, output))
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        await _end(process)
        await asyncio.wait([reading], timeout=_END_S)  # the last output of the command
        reading.cancel()
    code = process.returncode or 0
    return Ended(code if code >= 0 else 128 - code, output, timed_out)


async def run_in_editor(
    editor: Editor,
    context: ToolContext,
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: str,
    timeout_s: float,
    output_bytes: int,
) -> Ended:
    """Run a command in the terminal of the user's editor. Cancelling the call ends the command.

    Raises:
        ToolServiceError: The editor cannot run the command.
    """
    end = await editor.run_command(
        [sys.executable, "-I", "-S", "-c", _WITHOUT_OTHER_VARIABLES, json.dumps(sorted(env)), *command],
        env=env,
        folder=folder,
        timeout_s=timeout_s,
        output_bytes=output_bytes,
        run_id=context.run_id,
        call_id=context.call_id,
    )
    text = end.output.replace("\r\n", "\n")  # as in a terminal
    output = Output(output_bytes)
    output.add((f"[… beginning omitted …]\n{text}" if end.is_cut else text).encode(errors="replace"))
    return Ended(end.exit_code, output, end.timed_out)


# A terminal inherits variables from its editor, such as API keys. The command gets only its own.
_WITHOUT_OTHER_VARIABLES = (
    "import json, os, sys; names, command = json.loads(sys.argv[1]), sys.argv[2:]; "
    "os.execvpe(command[0], command, {name: os.environ[name] for name in names if name in os.environ})"
)


async def _read(stream: asyncio.StreamReader | None, output: Output) -> None:
    while stream is not None and (piece := await stream.read(_PIECE_BYTES)):
        output.add(piece)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process that is still running. It is first asked to terminate, so it can end its children, then killed."""
    try:
        for stop in (process.terminate, process.kill):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    stop()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_END_S):
                        await process.wait()
    finally:
        if process.returncode is None:  # this wait was cancelled as well
            with suppress(ProcessLookupError):
                process.kill()
