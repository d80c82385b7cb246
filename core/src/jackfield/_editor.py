"""The client's editor, whose files and terminal replace those that tools would use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """The outcome of a command in an editor's terminal.

    Attributes:
        output: Combined standard output and standard error.
        exit_code: The exit code, as a shell reports it.
        timed_out: True if the command was stopped by its timeout.
        is_cut: True if the start of the output is missing.
    """

    output: str
    exit_code: int
    timed_out: bool = False
    is_cut: bool = False


class Editor(Protocol):
    """The editor in which a run's user works, on the same machine.

    Tools check names against their workspace before they pass paths. Tools use the features that the editor supports
    and do everything else themselves. The methods run in the run's event loop.

    Attributes:
        reads, writes: True if the editor can read files (`reads`) or write files (`writes`).
        runs_commands: True if the editor has a terminal.
    """

    reads: bool
    writes: bool
    runs_commands: bool

    async def read_text(self, path: Path) -> str:
        """Return a file's text, including unsaved changes.

        Raises:
            ToolServiceError: The editor cannot read the file.
        """

    async def write_text(self, path: Path, text: str) -> None:
        """Write and save a file.

        Raises:
            ToolServiceError: The editor cannot write the file.
        """

    async def run_command(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        folder: str,
        timeout_s: float,
        output_bytes: int,
        run_id: str,
        call_id: str,
    ) -> CommandEnd:
        """Run a program in a terminal that the user can see. Cancellation stops the program.

        Args:
            argv: The program and its arguments.
            env: Environment variables to add to the editor's environment.
            folder: The working directory.
            timeout_s: Timeout in seconds.
            output_bytes: The maximum size of the returned output, counted from its end.
            run_id, call_id: The call that runs the program, as in `ToolContext`.

        Raises:
            ToolServiceError: The editor cannot run the program.
        """
