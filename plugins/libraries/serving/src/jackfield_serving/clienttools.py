"""Tools that run on the client. A call pauses the run, which continues once the client has sent the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield.agents import ParentRun
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.events import ApprovalNeeded
from jackfield.jsontext import dumps
from jackfield.messages import FunctionCall
from jackfield.tools import BaseTool, FunctionSchema, ToolContext, ToolEntry, Toolset, check_tool_name


class ClientTools(Toolset):
    """The client tools in one request.

    Args:
        schemas: The tools' schemas, as shown to the model.
        results: The results received so far, by call id. The mapping may grow.
    """

    name = "client"
    effects = ()

    def __init__(self, schemas: Sequence[FunctionSchema], results: Mapping[str, Any]) -> None:
        super().__init__()
        self._tools = [ClientTool(schema, results) for schema in schemas]

    @property
    def names(self) -> list[str]:
        """The names of the tools."""
        return [tool.name for tool in self._tools]

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:  # noqa: ARG002
        """See `Toolset`."""
        return self._tools


class ClientTool(BaseTool):
    """A tool that runs on the client.

    Raises:
        ConfigError: The schema has no valid name, or its parameters are not an object.
    """

    resumable = True  # the same call continues with its result

    def __init__(self, schema: FunctionSchema, results: Mapping[str, Any]) -> None:
        super().__init__()
        if not isinstance(schema.get("name"), str):
            raise ConfigError("a client tool needs a name: send {'name': …, 'description': …, 'parameters': …}")
        self.name = schema["name"]
        check_tool_name(self.name)
        self.description = str(schema.get("description") or "")
        if schema.get("parameters"):
            self.parameters = schema["parameters"]
        self._results = results

    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> Any:
        """Return the client's result, or pause the run until it has arrived."""
        run = context.run if context is not None else None
        if context is None or not isinstance(run, ParentRun):
            raise ToolServiceError(f"{self.name} can only run in the client")
        if context.call_id in self._results:
            return self._results[context.call_id]
        arguments = params if isinstance(params, str) else dumps(params)
        run.waiting[context.call_id] = ApprovalNeeded(
            (FunctionCall(self.name, arguments),), (context.call_id,), agents=("",)
        )
        return ""
