"""A tool that a plugin offers: all a model sees comes from its descriptor; its module is imported at its first call.

What its class says is known only then: whoever is about to run a call loads the tool first, and asks `safety` after it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Awaitable, Mapping
from typing import Any

from jackfield.descriptors import ToolSpec, required_by
from jackfield.errors import BrokenPluginError, ConfigError, ToolServiceError
from jackfield.plugins._catalog import Row
from jackfield.plugins._host import PluginHost
from jackfield.tools._base import BaseTool, StandIn, ToolContext, ToolOutput
from jackfield.tools._function_tool import FunctionTool
from jackfield.tools._safety import Safety, claims_of

_OF_SPEC = ("description", "parameters", "raw_argument", *Safety.__dataclass_fields__)


class PluginTool(StandIn):
    """Stands for a tool until it is called."""

    def __init__(self, row: Row, spec: ToolSpec, cfg: Mapping[str, object], host: PluginHost) -> None:
        self.name = spec.name
        super().__init__({key: value for key, value in cfg.items() if key != "name"})
        vars(self).update({name: getattr(spec, name) for name in _OF_SPEC})
        self.row = row
        self._host = host
        self._lock = threading.Lock()
        self._tool: BaseTool | None = None

    def load(self) -> BaseTool:
        """The tool itself, made at first use."""
        with self._lock:
            if self._tool is None:
                made = self._made(self._host.load_row(self.row))
                if not isinstance(made, BaseTool):
                    raise BrokenPluginError(
                        f"{self.row.distribution}: tool {self.name!r} is not a subclass of jackfield.BaseTool"
                    )
                made.host = self._host
                self._tool = made
            return self._tool

    def _made(self, loaded: Any) -> object:
        if not isinstance(loaded, FunctionTool):
            return loaded(cfg=dict(self.cfg))
        if self.cfg:
            raise ConfigError(f"tool {self.row.address!r} takes no settings; got {', '.join(map(repr, self.cfg))}")
        return copy.copy(loaded)  # each agent's host is its own

    @property
    def is_loaded(self) -> bool:
        return self._tool is not None

    def claims(self) -> Safety:
        """The stricter of its descriptor, and its class once that is loaded."""
        claims = claims_of(self, name=self.name)
        return claims if self._tool is None else claims.stricter(claims_of(self._tool, name=self.name))

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """Check the arguments by the descriptor's schema; in doubt about a pattern, ask the function behind it."""
        try:
            return super().parse_arguments(params)
        except ToolServiceError:
            # The schema of a function has pydantic's patterns, in which `\\w` knows every alphabet.
            if "pattern" not in repr(self.parameters) or not isinstance(tool := self.load(), FunctionTool):
                raise
            return tool.parse_arguments(params)

    def call(
        self, params: str | Mapping[str, Any], *, context: ToolContext | None = None
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Call the tool; loading it counts as part of the first call."""
        return self.load().call(params, context=context)


def find_tool(entry: str | Mapping[str, object], host: PluginHost) -> PluginTool:
    """The tool that a name, an address, or a dict with `name` and settings means.

    Raises:
        PluginError: It is not installed, or its descriptor cannot be loaded; or what its settings ask for is not
            installed.
        ConfigError: Its settings may ask for other components, and do not fit.
    """
    cfg = {"name": entry} if isinstance(entry, str) else dict(entry)
    row = host.find("tool", str(cfg["name"]))
    spec = host.spec_of(row, ToolSpec)
    made = PluginTool(row, spec, cfg, host)
    if spec.required_by and made.cfg:
        # Now, and not when the tool is first called.
        host.load_target(row, spec.config).parse(made.cfg, what=f"settings of tool {row.address!r}")
        for component in required_by(spec.required_by, made.cfg):
            host.find(*component.split(".", 1))
    return made
