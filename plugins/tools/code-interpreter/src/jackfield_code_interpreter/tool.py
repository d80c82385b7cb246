"""The tool: code in, text and images out."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from jackfield.errors import ToolArgumentError
from jackfield.tools import BaseTool, ToolContext, ToolResult, says_if_not_awaited
from jackfield_code_interpreter.code_text import code_of, is_utf8, without_fence
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_code_interpreter.launch import IS_ISOLATED, isolation, stated_limits
from jackfield_code_interpreter.plugin import DESCRIPTION, EFFECTS, NAME, PARAMETERS, TIMEOUT_S

if TYPE_CHECKING:
    from jackfield_code_interpreter.session import KernelSession

_log = logging.getLogger(__name__)

WORK_DIR_VARIABLE = "M6_CODE_INTERPRETER_WORK_DIR"
"""Where code runs if the settings do not say; the name that people who come from Qwen-Agent have set."""


class CodeInterpreter(BaseTool):
    """Runs Python in a Jupyter kernel.

    Inside a run the kernel is the run's, and is closed with it. Outside of one it is the tool's, until `aclose`. While
    nothing isolates the code, an agent asks before each call, unless the tool's settings say `approval: never`.
    """

    name = NAME
    description = DESCRIPTION
    parameters = PARAMETERS
    concurrent = False
    timeout_s = TIMEOUT_S
    effects = EFFECTS
    needs_approval = not IS_ISOLATED
    file_access = True
    raw_argument = "code"

    config_class = CodeInterpreterConfig
    config: CodeInterpreterConfig

    def __init__(self, cfg: CodeInterpreterConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        if self.config.work_dir is None and os.environ.get(WORK_DIR_VARIABLE):
            self.config = self.config.model_copy(update={"work_dir": os.environ[WORK_DIR_VARIABLE]})
        self._key = f"{NAME}:{uuid4().hex}"  # two tools in one run have two kernels
        self._own: KernelSession | None = None

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult | str:
        """Run code; '' for none.

        Args:
            params: `{"code": …}`, the same as JSON text, or the code itself, in a Markdown fence or not.
            context: Whose kernel is used; the tool's own without one.

        Raises:
            ToolArgumentError: The code is not a text.
            ToolServiceError: The kernel does not start; the message says what to do.
        """
        code = self._code(params)
        if not code.strip():
            return ""
        _warn_of_no_isolation()
        session = await self._session(context)
        done = await session.run(code, files=context.files if context else ())
        missing = _how_to_install(done.output.missing)
        metadata = {
            "isolation": isolation(done.barrier),
            "limits": stated_limits(self.config),
            "state": done.state,
            "files": done.made,
            "files_are_temporary": self.config.work_dir is None,
            **({"note": missing} if missing else {}),
        }
        return ToolResult(done.output.content(*done.notes, *([missing] if missing else [])), metadata)

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """As every tool's, but bare code is taken as well: models leave the JSON away."""
        if isinstance(params, str):
            return {"code": code_of(params)}
        return super().parse_arguments(params)

    async def aclose(self) -> None:
        """End the tool's own kernel; the next call starts another. Kernels of runs are closed by their runs."""
        session, self._own = self._own, None
        if session is not None:
            await session.aclose()

    def _code(self, params: str | Mapping[str, object]) -> str:
        code = self.parse_arguments(params)["code"]
        if not isinstance(code, str):
            raise ToolArgumentError(f"{NAME}: 'code' must be a text")
        if not is_utf8(code):
            raise ToolArgumentError(f"{NAME}: 'code' has half a character (a lone surrogate): write the whole one")
        return without_fence(code)

    async def _session(self, context: ToolContext | None) -> KernelSession:
        if context is not None:
            return await context.resources.get(self._key, self._open)
        if self._own is None:
            self._own = await self._open()
        return self._own

    async def _open(self) -> KernelSession:
        # Here, because it brings jupyter_client with it.
        from jackfield_code_interpreter.session import KernelSession

        return KernelSession(self.config)


def _how_to_install(module: str) -> str:
    """What to say to a model and to people where the code lacks a module of the extra `plots`; '' for none."""
    if not module:
        return ""
    return f'{module} is not installed where the code runs. To have it: pip install "jackfield-code-interpreter[plots]"'


@cache  # once in a process is enough
def _warn_of_no_isolation() -> None:
    _log.warning(
        "code_interpreter runs code that a model wrote, with your own rights. It limits memory, CPU time, file size "
        "and the time of each call, and hides your environment variables; it does not isolate: the code can read and "
        "change your files and use your network. Where results do not say 'processes only', it can also see and end "
        "your processes."
    )
