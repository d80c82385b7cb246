"""A tool that a plugin offers: all a model sees comes from its descriptor; its module is imported at its first call."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Mapping
from typing import Any

from jackfield.errors import BrokenPluginError
from jackfield.plugins.catalog import Row
from jackfield.plugins.descriptors import ToolSpec
from jackfield.plugins.host import PluginHost
from jackfield.tools.base import BaseTool, ToolContext, ToolOutput


class PluginTool(BaseTool):
    """Stands for a tool until it is called."""

    def __init__(self, row: Row, spec: ToolSpec, cfg: Mapping[str, Any], host: PluginHost) -> None:
        super().__init__(cfg)
        self.name = spec.name
        self.description = spec.description
        self.parameters = spec.parameters
        self.read_only = spec.read_only
        self.concurrent = spec.concurrent
        self.timeout_s = spec.timeout_s
        self.file_access = spec.file_access
        self.raw_argument = spec.raw_argument
        self.needs_approval = bool(cfg.get("needs_approval", False))
        self.row = row
        self._host = host
        self._lock = threading.Lock()
        self._tool: BaseTool | None = None

    def load(self) -> BaseTool:
        """The tool itself, made at first use."""
        with self._lock:
            if self._tool is None:
                made = self._host.load_row(self.row)(
                    cfg={k: v for k, v in self.cfg.items() if k not in ("name", "needs_approval")}
                )
                if not isinstance(made, BaseTool):
                    raise BrokenPluginError(
                        f"{self.row.distribution}: tool {self.name!r} is no subclass of jackfield.BaseTool"
                    )
                made.host = self._host
                self._tool = made
            return self._tool

    def call(
        self, params: str | Mapping[str, Any], *, context: ToolContext | None = None
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Call the tool; loading it counts as part of the first call."""
        return self.load().call(params, context=context)

    @property
    def is_async(self) -> bool:
        """Whether `call` of the tool itself is async. It loads the tool."""
        return inspect.iscoroutinefunction(self.load().call)


def find_tool(entry: str | Mapping[str, Any], host: PluginHost) -> PluginTool:
    """The tool that a name, an address, or a dict with `name` and settings means.

    Raises:
        PluginError: It is not installed, or its descriptor cannot be loaded.
    """
    cfg = {} if isinstance(entry, str) else dict(entry)
    row = host.find("tool", entry if isinstance(entry, str) else str(cfg["name"]))
    return PluginTool(row, host.spec_of(row, ToolSpec), cfg, host)
