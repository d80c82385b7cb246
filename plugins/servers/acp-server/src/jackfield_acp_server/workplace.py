"""Give agents' tools access to the editor's files and terminals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from acp import RequestError
from acp.interfaces import Client
from acp.schema import ClientCapabilities, EnvVariable

from jackfield.errors import ToolServiceError
from jackfield.tools import CommandEnd

_KILLED = 137  # as a shell reports a program that was killed
_PATIENCE_S = 30.0
_END_S = 5.0


class Workplace:
    """The editor of one session, as tools see it.

    Args:
        client: The connection to the editor.
        session_id: The session id.
        abilities: The capabilities announced by the editor.
        show_terminal: Called with a pair of run and call ids, and the id of the terminal that the call uses.

    Attributes:
        reads, writes, runs_commands: See `jackfield.tools.Editor`.
    """

    def __init__(
        self,
        client: Client,
        session_id: str,
        abilities: ClientCapabilities | None,
        show_terminal: Callable[[tuple[str, str], str], Awaitable[None]],
    ) -> None:
        files = None if abilities is None else abilities.fs
        self.reads = files is not None and bool(files.read_text_file)
        self.writes = files is not None and bool(files.write_text_file)
        self.runs_commands = abilities is not None and bool(abilities.terminal)
        self._client, self._session_id, self._show_terminal = client, session_id, show_terminal

    async def read_text(self, path: Path) -> str:
        """Return a file's text, including unsaved changes."""
        with _explain(f"the editor cannot read {path.name}"):
            async with asyncio.timeout(_PATIENCE_S):
                return (await self._client.read_text_file(self._session_id, str(path))).content

    async def write_text(self, path: Path, text: str) -> None:
        """Write a file through the editor."""
        with _explain(f"the editor cannot write {path.name}"):
            async with asyncio.timeout(_PATIENCE_S):
                await self._client.write_text_file(self._session_id, str(path), text)

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
        """Run a program in a terminal of the editor, and show the terminal in the tool call."""
        with _explain("the editor cannot run the command"):
            terminal = await self._client.create_terminal(
                self._session_id,
                argv[0],
                args=list(argv[1:]),
                env=[EnvVariable(name=name, value=value) for name, value in env.items()],
                cwd=folder,
                output_byte_limit=output_bytes,
            )
            try:
                await self._show_terminal((run_id, call_id), terminal.terminal_id)
                return await self._wait(terminal.terminal_id, timeout_s)
            finally:
                # A release also ends a program that is still running.
                await asyncio.shield(self._release(terminal.terminal_id))

    async def _wait(self, terminal_id: str, timeout_s: float) -> CommandEnd:
        timed_out, code = False, _KILLED
        try:
            async with asyncio.timeout(timeout_s):
                end = await self._client.wait_for_terminal_exit(self._session_id, terminal_id)
            code = _KILLED if end.exit_code is None else end.exit_code
        except TimeoutError:
            timed_out = True
            await self._client.kill_terminal(self._session_id, terminal_id)
        shown = await self._client.terminal_output(self._session_id, terminal_id)
        return CommandEnd(output=shown.output, exit_code=code, timed_out=timed_out, is_cut=shown.truncated)

    async def _release(self, terminal_id: str) -> None:
        with suppress(RequestError, ConnectionError, TimeoutError):
            async with asyncio.timeout(_END_S):
                await self._client.release_terminal(self._session_id, terminal_id)


@contextmanager
def _explain(failure: str) -> Iterator[None]:
    """Translate the editor's errors to tool errors."""
    try:
        yield
    except RequestError as error:
        raise ToolServiceError(f"{failure}: {error}") from error
    except ConnectionError as error:
        raise ToolServiceError(f"{failure}: the connection was closed") from error
    except TimeoutError as error:
        raise ToolServiceError(f"{failure}: timed out waiting for a response") from error
