"""The `python_executor` tool: run a short, self-contained program and discard its state."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import Field

from jackfield import sync
from jackfield.config import Config
from jackfield.errors import PluginError, SandboxError, ToolArgumentError, ToolServiceError
from jackfield.plugins import Plugins, default_host
from jackfield.sandboxes import (
    AUTO,
    NONE,
    CodeResult,
    CodeSandbox,
    Finished,
    Limits,
    Program,
    ProgramSandbox,
    Protection,
    Sandbox,
    choose_sandbox,
    needs_approval,
)
from jackfield.tools import BaseTool, ToolContext, ToolResult, says_if_not_awaited
from jackfield_code_interpreter.code_text import code_of, is_utf8, without_fence
from jackfield_code_interpreter.plugin import EFFECTS, EXECUTOR, EXECUTOR_DESCRIPTION, PARAMETERS, TIMEOUT_S
from jackfield_confine.barriers import LANDLOCK, NAMESPACES
from jackfield_confine.guarding import guarded
from jackfield_confine.interpreters import this_python

S = TypeVar("S", ProgramSandbox, CodeSandbox)

_DONE = "Done"
_READ_BYTES = 1 << 20  # of a program's output, of which `max_output_chars` are shown

# Reads a program from stdin, which leaves the program no input, and runs it like a Python prompt.
_RUNNER = """
import ast, sys, traceback
code, sys.stdin = sys.stdin.buffer.read().decode(), None
names = {"__name__": "__main__"}
try:
    tree = ast.parse(code, "<code>")
    last = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<code>", "exec"), names)
    value = None if last is None else eval(compile(ast.Expression(last), "<code>", "eval"), names)
    if value is not None:
        print(repr(value))
except Exception as error:
    own = None if isinstance(error, SyntaxError) else error.__traceback__.tb_next
    sys.stderr.writelines(traceback.format_exception(type(error), error, own))
    sys.exit(1)
"""


class PythonExecutorConfig(Config):
    """Settings for running a program. A limit of None means unlimited."""

    sandbox: str = Field(
        default=AUTO, min_length=1, description="'auto' (the best sandbox installed), the name of a sandbox, or 'none'"
    )
    timeout: float = Field(default=20, gt=0, le=3600, description="Time limit for a program, in seconds")
    memory_mb: int | None = Field(default=1024, ge=64, description="Memory limit for a program")
    max_output_chars: int = Field(default=4000, ge=20, description="Longer output is truncated in the middle")


class PythonExecutor(BaseTool):
    """Runs a Python program in a sandbox, and returns its output and the value of its last line.

    No state carries over to the next program. A sandbox for programs runs the current Python interpreter with its
    packages. A sandbox for code, such as `monty`, starts faster but provides only its own modules.
    """

    name = EXECUTOR
    description = EXECUTOR_DESCRIPTION
    parameters = PARAMETERS
    effects = EFFECTS
    timeout_s = TIMEOUT_S
    raw_argument = "code"

    config_class = PythonExecutorConfig
    config: PythonExecutorConfig

    def __init__(self, cfg: PythonExecutorConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self.host = None
        self._chosen_sandbox: tuple[ProgramSandbox | CodeSandbox, str] | None = None

    @property
    def host(self) -> Plugins | None:
        """The plugin host that provides the sandboxes.

        Setting the host updates `needs_approval`: calls need approval if the selected sandbox leaves files accessible.
        """
        return self._host

    @host.setter
    def host(self, host: Plugins | None) -> None:
        self._host = host
        self.needs_approval = needs_approval(self.config.sandbox, Sandbox, host=host or default_host())

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:  # noqa: ARG002
        """Run a program.

        Args:
            params: `{"code": …}`, the same as JSON text, or the bare code, with or without a Markdown fence.
            context: Ignored; the program cannot access the run.

        Raises:
            ToolArgumentError: The code is not a string, or contains a lone surrogate.
            ToolServiceError: No sandbox can be used; the message says what to install.
        """
        code = self._code(params)
        megabytes = self.config.memory_mb
        memory_bytes = None if megabytes is None else megabytes << 20
        limits = Limits(memory_bytes=memory_bytes, wall_s=self.config.timeout)
        try:
            sandbox, layer = await sync.in_worker(self._sandbox)
            if isinstance(sandbox, CodeSandbox):
                done = await sandbox.run_code(code, limits=limits)
            else:
                done = await _run_program(sandbox, code, limits)
        except (SandboxError, PluginError) as error:
            raise ToolServiceError(f"cannot run the code: {error}") from error
        report = done.error.strip().rpartition("\n")[2] or _DONE
        return ToolResult(_text(done, self.config.max_output_chars), {"report": report, "sandbox": layer})

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """Validate the arguments. Bare code is accepted as well, because models often omit the JSON."""
        if isinstance(params, str):
            return {"code": code_of(params)}
        return super().parse_arguments(params)

    def _code(self, params: str | Mapping[str, object]) -> str:
        code = self.parse_arguments(params)["code"]
        if not isinstance(code, str):
            raise ToolArgumentError(f"{EXECUTOR}: 'code' must be a string")
        if not is_utf8(code):
            raise ToolArgumentError(f"{EXECUTOR}: 'code' contains a lone surrogate: pass the complete character")
        return without_fence(code)

    def _sandbox(self) -> tuple[ProgramSandbox | CodeSandbox, str]:
        if self._chosen_sandbox is None:
            sandbox = _choose_sandbox(self.config.sandbox, self.host or default_host())
            self._chosen_sandbox = (sandbox, str(sandbox.protection()))
        return self._chosen_sandbox


class _Unprotected(ProgramSandbox):
    """Runs programs without a sandbox: they have the rights of this process, within limits.

    When a program ends, everything it started ends as well.
    """

    def protection(self) -> Protection:
        # No memory limit, because a limit of address space does not count files in memory, which only a sandbox
        # refuses.
        return Protection(NONE, frozenset({"cpu", "file_size"}))

    def command(self, program: Program) -> list[str]:
        return guarded(
            program.argv,
            limits=program.limits,
            barriers=(NAMESPACES, LANDLOCK),
            leftovers=program.leftovers,
        )


def _choose_sandbox(name: str, host: Plugins) -> ProgramSandbox | CodeSandbox:
    """Return the configured sandbox. May block for a second.

    With `auto`, sandboxes that run programs take precedence over those that run code.
    """
    if name == AUTO:
        try:
            return _best(ProgramSandbox, host)
        except SandboxError as error:
            try:
                return _best(CodeSandbox, host)
            except SandboxError:
                raise error from None
    sandbox: Sandbox | None = choose_sandbox(name, Sandbox, host=host)
    return sandbox if isinstance(sandbox, ProgramSandbox | CodeSandbox) else _Unprotected()


def _best(ability: Callable[..., S], host: Plugins) -> S:
    sandbox = choose_sandbox(AUTO, ability, host=host)
    assert sandbox is not None  # noqa: S101 - only `none` gives None
    return sandbox


async def _run_program(sandbox: ProgramSandbox, code: str, limits: Limits) -> CodeResult:
    with tempfile.TemporaryDirectory(prefix="jackfield-") as folder:
        program = Program(
            argv=(this_python(), "-I", "-c", _RUNNER),
            work_dir=folder,
            env={"HOME": folder, "LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"},
            limits=limits,
            leftovers=folder,
        )
        return _result(await sandbox.run(program, stdin=code.encode(), output_bytes=_READ_BYTES), limits)


def _result(done: Finished, limits: Limits) -> CodeResult:
    error = ""
    if done.timed_out:
        error = f"TimeoutError: the code was terminated after {limits.wall_s:g} s"
    elif done.exit_code:
        error = done.stderr.decode(errors="replace").strip() or f"the program exited with code {done.exit_code}"
    return CodeResult(None, done.stdout.decode(errors="replace"), error)


def _text(done: CodeResult, most_chars: int) -> str:
    value = "" if done.value is None else repr(done.value)
    parts = (done.stdout.rstrip("\n"), value, done.error.strip())
    return "\n".join(_cut(part, most_chars) for part in parts if part)


def _cut(text: str, most_chars: int) -> str:
    half = most_chars // 2
    left_out = len(text) - most_chars
    return text if left_out <= 0 else f"{text[:half]}\n[… {left_out:,} characters omitted …]\n{text[-half:]}"
