"""The editor of a client, whose files and terminal tools use in place of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """The end of a command in an editor's terminal.

    Attributes:
        output: The command's output, standard output and errors together.
        exit_code: The command's exit code, as a shell reports it.
        timed_out: True if the command was ended because its time was over.
        is_cut: True if the beginning of the output is missing.
    """

    output: str
    exit_code: int
    timed_out: bool = False
    is_cut: bool = False


class Editor(Protocol):
    """The editor in which the user of a run works, on the same machine.

    A tool checks names against its workspace before it passes paths. It uses the abilities of the editor, and does the
    rest itself. The methods run in the event loop of the run.

    Attributes:
        reads, writes: True if it reads files, and if it writes files.
        runs_commands: True if it has a terminal.
    """

    reads: bool
    writes: bool
    runs_commands: bool

    async def read_text(self, path: Path) -> str:
        """Return the text of a file, including unsaved changes.

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
        """Run a program in a terminal that the user sees. Cancelling ends it.

        Args:
            argv: The program and its arguments.
            env: The program's environment variables, in addition to those of the editor.
            folder: The program's working directory.
            timeout_s: The time limit, in seconds.
            output_bytes: The number of bytes of output to return, from the end.
            run_id, call_id: The call that runs it, as in `ToolContext`.

        Raises:
            ToolServiceError: The editor cannot run the program.
        """
