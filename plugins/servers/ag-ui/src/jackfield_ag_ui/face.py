"""Serve agents to front ends over AG-UI: the face `ag-ui`."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from jackfield.config import Config
from jackfield.servers import ASGIApp, HttpServer, Refusal, ServingLike, write_json
from jackfield_ag_ui.ending import error_event
from jackfield_ag_ui.history import Wire
from jackfield_ag_ui.runs import Runs
from jackfield_serving import AgentInfo, Serving


class AGUIServerConfig(Config):
    """Settings of the face `ag-ui`."""

    on_disconnect: Literal["continue", "cancel"] = Field(
        default="continue",
        description="Continue or cancel a run when its client disconnects. A request can override this with "
        "?on_disconnect=cancel",
    )


class AGUIServer(HttpServer):
    """Face that serves agents to front ends over AG-UI."""

    name: ClassVar[str] = "ag-ui"
    config_class = AGUIServerConfig
    config: AGUIServerConfig
    paths = ("/ag-ui",)

    def app(self, serving: ServingLike) -> ASGIApp:
        """Return the ASGI application."""
        service = cast(Serving, serving)
        runs = Runs(service, is_left=self.config.on_disconnect == "cancel")

        async def agents(_: Request) -> Response:
            return JSONResponse({"agents": {name: _capabilities(info) for name, info in service.agents.items()}})

        routes = [
            Route("/ag-ui", agents, methods=["GET"]),
            Route("/ag-ui/{agent:path}/connect", runs.connect, methods=["POST"]),
            Route("/ag-ui/{agent:path}/stop", runs.stop, methods=["POST"]),
            Route("/ag-ui/{agent:path}", runs.run, methods=["POST"]),
        ]
        return Router(routes, redirect_slashes=False)

    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        """Return a `RUN_ERROR` event as a content type and a body."""
        return "application/json", write_json(error_event(refusal))


def _capabilities(info: AgentInfo) -> Wire:
    """Describe an agent as AG-UI `AgentCapabilities`."""
    return {
        "identity": {"name": info.name, "type": "jackfield", "description": info.description},
        "transport": {"streaming": True, "websocket": False, "httpBinary": False, "resumable": True},
        "tools": {"supported": True, "clientProvided": info.takes_client_tools},
        "state": {"snapshots": True, "deltas": True},
        "reasoning": {"supported": True, "streaming": True, "encrypted": False},
        "multimodal": {
            "input": {
                "image": info.images, "audio": info.audio, "video": info.video, "pdf": info.files, "file": info.files
            },
        },
        "humanInTheLoop": {"supported": True, "approvals": True, "interrupts": True, "approveWithEdits": False},
    }  # fmt: skip
