"""Lazy proxy for a plugin's tool. The model sees the descriptor; the module is imported before the first call.

Before a tool is loaded, its class's attributes are unknown, so loading precedes the `safety` check for a call.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from jackfield.errors import BrokenPluginError, ConfigError, ToolServiceError
from jackfield.plugins._protocol import Plugins
from jackfield.tools._base import BaseTool, StandIn, ToolContext, ToolOutput
from jackfield.tools._function_tool import FunctionTool
from jackfield.tools._safety import Safety, claims_of

if TYPE_CHECKING:
    from jackfield.descriptors import ToolSpec
    from jackfield.plugins._catalog import Row

_SPEC_FIELDS = ("description", "parameters", "raw_argument", *Safety.__dataclass_fields__)


class PluginTool(StandIn):
    """Lazy proxy for a plugin's tool."""

    def __init__(self, row: Row, spec: ToolSpec, cfg: Mapping[str, object], host: Plugins) -> None:
        self.name = spec.name
        super().__init__({key: value for key, value in cfg.items() if key != "name"})
        vars(self).update({name: getattr(spec, name) for name in _SPEC_FIELDS})
        self.row = row
        self._host = host
        self._lock = threading.Lock()
        self._tool: BaseTool | None = None

    def load(self) -> BaseTool:
        """Return the tool, loading it on first use."""
        with self._lock:
            if self._tool is None:
                made = self._make(self._host.load_row(self.row))
                if not isinstance(made, BaseTool):
                    raise BrokenPluginError(
                        f"{self.row.distribution}: tool {self.name!r} is not a subclass of jackfield.BaseTool"
                    )
                made.host = self._host
                self._tool = made
            return self._tool

    def _make(self, loaded: Any) -> object:
        if not isinstance(loaded, FunctionTool):
            return loaded(cfg=dict(self.cfg))
        if self.cfg:
            raise ConfigError(
                f"tool {self.row.address!r} takes no settings; got {', '.join(repr(key) for key in self.cfg)}"
            )
        return copy.copy(loaded)  # each agent has its own host

    @property
    def is_loaded(self) -> bool:
        return self._tool is not None

    def claims(self) -> Safety:
        """Return the descriptor's attributes. Once the class is loaded, stricter values from the class apply."""
        claims = claims_of(self, name=self.name)
        return claims if self._tool is None else claims.stricter(claims_of(self._tool, name=self.name))

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """Validate the arguments against the descriptor's schema. The tool's function checks any patterns."""
        try:
            return super().parse_arguments(params)
        except ToolServiceError:
            # A function's schema contains pydantic's patterns, where `\\w` matches every alphabet.
            if "pattern" not in repr(self.parameters) or not isinstance(tool := self.load(), FunctionTool):
                raise
            return tool.parse_arguments(params)

    def call(
        self, params: str | Mapping[str, Any], *, context: ToolContext | None = None
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Call the tool, loading it first if necessary."""
        return self.load().call(params, context=context)


def find_tool(entry: str | Mapping[str, object], host: Plugins) -> PluginTool:
    """Find the tool that a name, an address, or a dict of `name` and settings refers to.

    Raises:
        PluginError: The tool, or a component named in its settings, is not installed, or its descriptor cannot be
            loaded.
        ConfigError: The tool's settings are not valid. Settings are only validated here if they may name other
            components.
    """
    from jackfield.descriptors import ToolSpec, required_by  # an import of agents needs no plugin

    cfg = {"name": entry} if isinstance(entry, str) else dict(entry)
    row = host.find("tool", str(cfg["name"]))
    spec = host.spec_of(row, ToolSpec)
    tool = PluginTool(row, spec, cfg, host)
    if spec.required_by and tool.cfg:
        # Report a missing component now, not when the tool is first called.
        host.load_target(row, spec.config).parse(tool.cfg, what=f"settings of tool {row.address!r}")
        for component in required_by(spec.required_by, tool.cfg):
            host.find(*component.split(".", 1))
    return tool
