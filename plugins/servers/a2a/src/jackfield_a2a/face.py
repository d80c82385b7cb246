"""Serve agents over A2A: the face `a2a`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, ClassVar, Literal, cast

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from jackfield.config import Config
from jackfield.servers import (
    ASGIApp,
    HttpServer,
    Refusal,
    RequestRefusedError,
    ServingLike,
    owner_of,
    read_object,
    refusal_of,
    write_json,
)
from jackfield.streams import closing
from jackfield_a2a.card import card_of, check_version
from jackfield_a2a.rest import RestCalls
from jackfield_a2a.rpc import RpcRequest, Wire, error_of, read_rpc, result_of
from jackfield_a2a.service import Caller, Tasks, refused_method
from jackfield_serving import ClientLeftError, EventStream, Serving, read_disconnect, while_connected

_CARD = ".well-known/agent-card.json"
_One = Callable[[RpcRequest, Caller], Coroutine[Any, Any, Wire]]
_Many = Callable[[RpcRequest, Caller], Awaitable[AsyncIterator[Wire]]]


class A2AServerConfig(Config):
    """Settings of the face `a2a`."""

    on_disconnect: Literal["continue", "cancel"] = Field(
        default="continue",
        description="Continue or cancel a task when its client disconnects. A request can override this with "
        "?on_disconnect=cancel",
    )


class A2AServer(HttpServer):
    """Face that serves agents to other agents over A2A."""

    name: ClassVar[str] = "a2a"
    config_class = A2AServerConfig
    config: A2AServerConfig
    paths = ("/a2a", f"/{_CARD}")

    def app(self, serving: ServingLike) -> ASGIApp:
        """Return the ASGI application."""
        face = _Face(cast(Serving, serving), is_left=self.config.on_disconnect == "cancel")
        routes = [
            Route(f"/{_CARD}", face.only_card, methods=["GET"]),
            Route(f"/a2a/{{agent:path}}/{_CARD}", face.card, methods=["GET"]),
            *face.rest.routes(),
            Route("/a2a/{agent:path}", face.call, methods=["POST"]),
        ]
        return Router(routes, redirect_slashes=False)

    def refusal(self, refusal: Refusal) -> tuple[str, bytes]:
        """Return a JSON-RPC error as a content type and a body."""
        return "application/json", write_json(error_of(refusal))


class _Face:
    """Request handlers of the face.

    Args:
        serving: The agents and their runs.
        is_left: True to cancel a task when its client disconnects, unless the request says otherwise.

    Attributes:
        rest: The handlers of the HTTP+JSON binding.
    """

    def __init__(self, serving: Serving, *, is_left: bool) -> None:
        self._serving = serving
        self._is_left = is_left
        tasks = Tasks(serving)
        self.rest = RestCalls(tasks, self._agent_of, is_left=is_left)
        self._one: Mapping[str, _One] = {
            "SendMessage": tasks.send,
            "GetTask": tasks.get,
            "ListTasks": tasks.list_all,
            "CancelTask": tasks.cancel,
        }
        self._many: Mapping[str, _Many] = {
            "SendStreamingMessage": tasks.send_streaming,
            "SubscribeToTask": tasks.subscribe,
        }

    async def only_card(self, request: Request) -> Response:
        """Return the card of the only agent; with several agents, refuse and list their cards."""
        if len(self._serving.agents) > 1:
            paths = ", ".join(f"/a2a/{name}/{_CARD}" for name in self._serving.agents)
            raise RequestRefusedError(
                f"there is no shared card; each agent has its own: {paths}", status=404, code="unsupported"
            )
        return self._card(request, next(iter(self._serving.agents)))

    async def card(self, request: Request) -> Response:
        """Return an agent's card."""
        return self._card(request, self._agent_of(request))

    async def call(self, request: Request) -> Response | EventStream:
        """Call a JSON-RPC method.

        JSON-RPC errors are sent with status 200, because clients treat any other status as an HTTP error.
        """
        agent = self._agent_of(request)
        caller = Caller(
            agent=agent,
            owner=owner_of(request.scope),
            is_left=read_disconnect(request.query_params, cancels=self._is_left),
        )
        rpc: RpcRequest | None = None
        try:
            rpc = read_rpc(read_object(await request.body()))
            check_version(request.headers.get("a2a-version"))
            if rpc.method in self._many:
                return EventStream(_sent(rpc, await self._many[rpc.method](rpc, caller)))
            if rpc.method in self._one:
                result = await while_connected(request.receive, self._one[rpc.method](rpc, caller))
                return _json(result_of(rpc, result))
            return _json(error_of(refused_method(rpc.method).refusal, rpc.id))
        except ClientLeftError:
            return Response()
        except Exception as error:
            refusal = refusal_of(error)
            if refusal.code in ("internal", "too_large"):
                raise
            return _json(error_of(refusal, rpc.id if rpc is not None else None))

    def _card(self, request: Request, agent: str) -> Response:
        base = str(request.base_url).rstrip("/")
        info = self._serving.agents[agent]
        return _json(card_of(info, f"{base}/a2a/{agent}", has_tokens=bool(owner_of(request.scope))))

    def _agent_of(self, request: Request) -> str:
        agent: str = request.path_params["agent"]
        if agent not in self._serving.agents:
            names = ", ".join(self._serving.agents)
            raise RequestRefusedError(
                f"no agent named {agent[:60]!r}; available: {names}", status=404, code="agent_not_found"
            )
        return agent


async def _sent(rpc: RpcRequest, updates: AsyncIterator[Wire]) -> AsyncIterator[bytes]:
    try:
        async with closing(updates) as following:
            async for update in following:
                yield b"data: " + write_json(result_of(rpc, update)) + b"\n\n"
    except Exception as error:
        # The status has been sent already, so the error goes into the stream.
        refusal = refusal_of(error)
        yield b"event: error\ndata: " + write_json(error_of(refusal, rpc.id)) + b"\n\n"
        if refusal.code == "internal":
            raise  # the error text refers to the log


def _json(value: Wire) -> Response:
    return Response(write_json(value), media_type="application/json")
