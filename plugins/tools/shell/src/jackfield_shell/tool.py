"""The `shell` tool: run a command, return its output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jackfield import sync
from jackfield.errors import SandboxError, ToolArgumentError, ToolServiceError
from jackfield.plugins import default_host
from jackfield.sandboxes import NONE, Limits, Program, ProgramSandbox, choose_sandbox
from jackfield.tools import BaseTool, ToolContext, ToolResult, Workspace, says_if_not_awaited
from jackfield_confine.barriers import LANDLOCK, NAMESPACES
from jackfield_confine.guarding import guarded
from jackfield_shell.config import ShellConfig
from jackfield_shell.plugin import MOST_COMMAND, TIMEOUT_S, tools
from jackfield_shell.running import Ended, run, run_in_editor

_SPEC = tools()[0]
_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


class Shell(BaseTool):
    """Runs each command in its own shell, in a sandbox where only the run's workspace is writable.

    When the shell ends, everything it started ends as well. Programs see a small fixed environment plus the configured
    variables, and nothing else.
    """

    name = _SPEC.name
    description = _SPEC.description
    parameters = _SPEC.parameters
    effects = _SPEC.effects
    needs_approval = True
    concurrent = False
    timeout_s = TIMEOUT_S

    config_class = ShellConfig
    config: ShellConfig

    def __init__(self, cfg: ShellConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._chosen: tuple[ProgramSandbox | None, str] | None = None

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Run a command.

        Raises:
            ToolArgumentError: The command cannot be passed to a shell, or is too long.
            ToolServiceError: No sandbox can be used, in which case the message says what to install, or the command
                cannot be started.
        """
        arguments = self.parse_arguments(params)
        command = _checked(arguments["command"])
        timeout_s = min(arguments.get("timeout_s", self.config.timeout), self.config.max_timeout)
        folder = await sync.in_worker(_made, context.workspace if context else Workspace())
        sandbox, layer = await sync.in_worker(self._sandbox)
        program = self._program(command, folder)
        try:
            argv = await sync.in_worker(_command, sandbox, program)
            editor = context.resources.editor if context else None
            run_command = run
            if context and editor and editor.runs_commands:
                run_command = partial(run_in_editor, editor, context)
            ended = await run_command(
                argv,
                env=program.env,
                folder=folder,
                timeout_s=timeout_s,
                output_bytes=self.config.max_output_bytes,
            )
        except (OSError, SandboxError) as error:
            raise ToolServiceError(f"cannot run the command: {error}") from error
        return ToolResult(_described(ended, timeout_s), {"sandbox": layer, "exit_code": ended.exit_code})

    def _sandbox(self) -> tuple[ProgramSandbox | None, str]:
        """Return the configured sandbox and its description.

        The first call may block for a second.
        """
        if self._chosen is None:
            name = self.config.sandbox
            try:
                host, settings = self.host or default_host(), self.config.sandbox_cfg
                made = choose_sandbox(name, ProgramSandbox, host=host, settings=settings)
            except SandboxError as error:
                raise ToolServiceError(f"cannot run commands: {error}") from error
            self._chosen = (made, NONE if made is None else str(made.protection()))
        return self._chosen

    def _program(self, command: str, folder: str) -> Program:
        settings = self.config
        return Program(
            argv=(*_shell(), "-c", "--", command),
            work_dir=folder,
            readable=tuple(os.path.abspath(os.path.expanduser(path)) for path in settings.readable),  # noqa: PTH100, PTH111
            env=_environment(folder) | settings.env,
            limits=Limits(
                memory_bytes=_bytes(settings.memory_mb),
                cpu_s=settings.cpu_s,
                processes=settings.processes,
                file_bytes=_bytes(settings.file_mb),
            ),
            network=settings.network,
        )


def _checked(command: str) -> str:
    if "\0" in command:
        raise ToolArgumentError("the command cannot contain a null character")
    try:
        size = len(command.encode())
    except UnicodeEncodeError as error:
        raise ToolArgumentError("the command contains a lone surrogate: pass the complete character") from error
    if size > MOST_COMMAND:
        raise ToolArgumentError(
            f"the command must be at most {MOST_COMMAND:,} bytes long, got {size:,}: write a script and run it instead"
        )
    return command


def _made(workspace: Workspace) -> str:
    workspace.root.mkdir(parents=True, exist_ok=True)
    return str(workspace.root.resolve())


def _shell() -> tuple[str, ...]:
    # Skip the startup files of the user's own shell.
    return ("/bin/bash", "--noprofile", "--norc") if Path("/bin/bash").exists() else ("/bin/sh",)


def _environment(folder: str) -> dict[str, str]:
    return {
        "PATH": ":".join((str(Path(sys.prefix, "bin")), *_PATH)),
        "HOME": folder,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _bytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes << 20


def _command(sandbox: ProgramSandbox | None, program: Program) -> Sequence[str]:
    if sandbox is not None:
        return sandbox.command(program)
    return guarded(program.argv, limits=program.limits, barriers=(NAMESPACES, LANDLOCK))


def _described(ended: Ended, timeout_s: float) -> str:
    notes = []
    if ended.timed_out:
        notes.append(f"[terminated after {timeout_s:g} s, along with everything it started]")
    elif ended.exit_code:
        notes.append(f"[exit code {ended.exit_code}]")
    text = ended.output.text.rstrip("\n")
    return "\n".join([*([text] if text else []), *notes]) or "[no output]"
