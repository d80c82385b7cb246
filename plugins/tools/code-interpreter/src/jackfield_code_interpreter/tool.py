"""The `code_interpreter` tool: run code, return text and images."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from jackfield import sync
from jackfield.errors import PluginError, SandboxError, ToolArgumentError, ToolServiceError
from jackfield.plugins import Plugins, default_host
from jackfield.sandboxes import NONE, ProgramSandbox, choose_sandbox, needs_approval
from jackfield.tools import BaseTool, ToolContext, ToolResult, says_if_not_awaited
from jackfield_code_interpreter.code_text import code_of, is_utf8, without_fence
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_code_interpreter.launch import isolation, stated_limits
from jackfield_code_interpreter.plugin import DESCRIPTION, EFFECTS, NAME, PARAMETERS, TIMEOUT_S

if TYPE_CHECKING:
    from jackfield_code_interpreter.session import KernelSession
    from jackfield_code_interpreter.warm import WarmSessions

WORK_DIR_VARIABLE = "M6_CODE_INTERPRETER_WORK_DIR"
"""The environment variable for the working directory, used if the settings name none. Known from Qwen-Agent."""


class CodeInterpreter(BaseTool):
    """Runs Python code in a Jupyter kernel.

    Within a run, the kernel belongs to the run and closes with it. Outside a run, the tool keeps its own kernel until
    `aclose`. Without a sandbox, or with one that leaves files accessible, an agent asks for approval before each call,
    unless the tool is configured with `approval: never`.

    Args:
        host: The plugin host that provides the sandboxes. Defaults to the installed plugins.
    """

    name = NAME
    description = DESCRIPTION
    parameters = PARAMETERS
    concurrent = False
    timeout_s = TIMEOUT_S
    effects = EFFECTS
    file_access = True
    raw_argument = "code"

    config_class = CodeInterpreterConfig
    config: CodeInterpreterConfig

    def __init__(
        self,
        cfg: CodeInterpreterConfig | Mapping[str, object] | None = None,
        *,
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self.host = host
        if self.config.work_dir is None and os.environ.get(WORK_DIR_VARIABLE):
            self.config = self.config.model_copy(update={"work_dir": os.environ[WORK_DIR_VARIABLE]})
        self._key = f"{NAME}:{uuid4().hex}"  # two tools in one run have two kernels
        self._own: KernelSession | None = None
        self._sandbox: ProgramSandbox | None = None
        self._warm: WarmSessions | None = None

    @property
    def host(self) -> Plugins | None:
        """The plugin host that provides the sandboxes.

        Setting the host updates `needs_approval`: calls need approval if the selected sandbox leaves files accessible.
        """
        return self._host

    @host.setter
    def host(self, host: Plugins | None) -> None:
        self._host = host
        self.needs_approval = needs_approval(self.config.sandbox, ProgramSandbox, host=host or default_host())

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult | str:
        """Run code and return its output, or '' if the code is blank.

        Args:
            params: `{"code": …}`, the same as JSON text, or the bare code, with or without a Markdown fence.
            context: The run whose kernel to use. If None, the tool's own kernel runs the code.

        Raises:
            ToolArgumentError: The code is not a string, or contains a lone surrogate.
            ToolServiceError: The kernel failed to start, or no sandbox works here; the message says what to do.
        """
        code = self._code(params)
        if not code.strip():
            return ""
        session = await self._session(context)
        if context is not None and not session.is_warm:
            context.report("starting a kernel")
        done = await session.run(code, files=context.files if context else ())
        missing = _how_to_install(done.output.missing)
        metadata = {
            "sandbox": NONE if self._sandbox is None else done.barrier,
            "isolation": isolation(done.barrier) if self._sandbox is None else str(self._sandbox.protection()),
            "limits": stated_limits(self.config, self._sandbox),
            "state": done.state,
            "files": done.changed_files,
            "files_are_temporary": self.config.work_dir is None,
            **({"note": missing} if missing else {}),
        }
        return ToolResult(done.output.content(*done.notes, *([missing] if missing else [])), metadata)

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """Validate the arguments. Bare code is accepted as well, because models often omit the JSON."""
        if isinstance(params, str):
            return {"code": code_of(params)}
        return super().parse_arguments(params)

    async def aclose(self) -> None:
        """End the tool's own kernel and the warm kernels. Later calls start new ones.

        Kernels that belong to a run are closed by the run.
        """
        (session, self._own), (warm, self._warm) = (self._own, None), (self._warm, None)
        if session is not None:
            await session.aclose()
        if warm is not None:
            await warm.aclose()

    async def warm_up(self) -> None:
        """Start `warm_kernels` kernels in advance, and wait for them for at most `start_timeout`.

        Raises:
            ToolServiceError: No sandbox works here.
        """
        warm = await self._warm_sessions()
        if warm is not None:
            warm.refill()
            await sync.in_worker(lambda: warm.wait_until_full(self.config.start_timeout))

    def _code(self, params: str | Mapping[str, object]) -> str:
        code = self.parse_arguments(params)["code"]
        if not isinstance(code, str):
            raise ToolArgumentError(f"{NAME}: 'code' must be a string")
        if not is_utf8(code):
            raise ToolArgumentError(f"{NAME}: 'code' contains a lone surrogate: pass the complete character")
        return without_fence(code)

    async def _session(self, context: ToolContext | None) -> KernelSession:
        if context is not None:
            return await context.resources.get(self._key, self._open)
        if self._own is None:
            self._own = await self._open()
        return self._own

    async def _open(self) -> KernelSession:
        # Imported here, because it loads jupyter_client.
        from jackfield_code_interpreter.session import KernelSession

        warm = await self._warm_sessions()
        return (warm and warm.take()) or KernelSession(self.config, await self._chosen_sandbox())

    async def _warm_sessions(self) -> WarmSessions | None:
        """Return the pool of warm kernels, or None if there is none or the code runs in a folder chosen by the user."""
        if not self.config.warm_kernels or self.config.work_dir is not None:
            return None
        sandbox = await self._chosen_sandbox()
        if self._warm is None:
            from jackfield_code_interpreter.session import KernelSession
            from jackfield_code_interpreter.warm import WarmSessions

            config = self.config  # not this tool, which the sessions would keep alive
            self._warm = WarmSessions(config.warm_kernels, lambda: KernelSession(config, sandbox))
        return self._warm

    async def _chosen_sandbox(self) -> ProgramSandbox | None:
        if self._sandbox is None:
            host, name = self._host or default_host(), self.config.sandbox
            try:
                self._sandbox = await sync.in_worker(lambda: choose_sandbox(name, ProgramSandbox, host=host))
            except (SandboxError, PluginError) as error:
                raise ToolServiceError(
                    f"No code was run, because no sandbox is available, and trying again will not help: {error}",
                    code="no_sandbox",
                ) from error
        return self._sandbox


def _how_to_install(module: str) -> str:
    """Return an installation hint for a missing module of the `plots` extra, or '' if `module` is empty."""
    if not module:
        return ""
    command = 'pip install "jackfield-code-interpreter[plots]"'
    return f"{module} is not installed where the code runs. To install it, run: {command}"
