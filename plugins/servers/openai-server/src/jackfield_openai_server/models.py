"""Agents as models: `GET /v1/models`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jackfield.servers import RequestRefusedError
from jackfield_serving import Serving


class Models:
    """Lists the agents.

    Args:
        serving: The agents.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def list_all(self, request: Request) -> Response:  # noqa: ARG002
        """List the agents."""
        return JSONResponse({"object": "list", "data": [_model(name) for name in self._serving.agents]})

    async def retrieve(self, request: Request) -> Response:
        """Show one agent."""
        name = request.path_params["name"]
        check_model(self._serving, name)
        return JSONResponse(_model(name))


def check_model(serving: Serving, name: str) -> None:
    """Refuse the name of an agent that does not exist.

    Raises:
        RequestRefusedError: There is no such agent.
    """
    if name not in serving.agents:
        raise RequestRefusedError(f"the model {name[:100]!r} does not exist", status=404, code="model_not_found")


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "jackfield"}
