"""List agents as models: `GET /v1/models`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jackfield.servers import RequestRefusedError
from jackfield_serving import Serving


class Models:
    """Request handlers for models, which are agents and embedders.

    Args:
        serving: The agents.
        others: The names of models that are not agents.
    """

    def __init__(self, serving: Serving, others: Sequence[str] = ()) -> None:
        self._serving = serving
        self._others = others

    async def list_all(self, request: Request) -> Response:  # noqa: ARG002
        """Return all models."""
        return JSONResponse({"object": "list", "data": [_model(name) for name in self._names()]})

    async def retrieve(self, request: Request) -> Response:
        """Return one model."""
        name = request.path_params["name"]
        if name not in self._others:
            check_model(self._serving, name)
        return JSONResponse(_model(name))

    def _names(self) -> list[str]:
        return [*self._serving.agents, *self._others]


def check_model(serving: Serving, name: str) -> None:
    """Refuse unknown agent names.

    Raises:
        RequestRefusedError: There is no agent with this name.
    """
    if name not in serving.agents:
        raise RequestRefusedError(f"the model {name[:100]!r} does not exist", status=404, code="model_not_found")


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "jackfield"}
