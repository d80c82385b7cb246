"""Implement A2A's HTTP+JSON binding, where a method is a path and an error is an HTTP status."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any

from a2a.utils.errors import A2A_REASON_TO_ERROR, A2A_REST_ERROR_MAPPING
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jackfield.servers import Refusal, owner_of, read_object, refusal_of, write_json
from jackfield.streams import closing
from jackfield_a2a.card import check_version
from jackfield_a2a.rpc import RpcRequest, Wire, error_of
from jackfield_a2a.service import Caller, Tasks, refused_method
from jackfield_serving import ClientLeftError, EventStream, read_disconnect, while_connected

_PUSH = "CreateTaskPushNotificationConfig"
_ROUTES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("message:send", ("POST",), "SendMessage"),
    ("message:stream", ("POST",), "SendStreamingMessage"),
    ("tasks", ("GET",), "ListTasks"),
    ("tasks/{id}:cancel", ("POST",), "CancelTask"),
    ("tasks/{id}:subscribe", ("GET", "POST"), "SubscribeToTask"),
    ("tasks/{id}", ("GET",), "GetTask"),
    ("tasks/{id}/pushNotificationConfigs", ("GET", "POST"), _PUSH),
    ("tasks/{id}/pushNotificationConfigs/{config}", ("GET", "DELETE"), _PUSH),
    ("extendedAgentCard", ("GET",), "GetExtendedAgentCard"),
)
_STATUSES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 409: "FAILED_PRECONDITION", 429: "RESOURCE_EXHAUSTED"}


class RestCalls:
    """Request handlers of the HTTP+JSON binding.

    Args:
        tasks: The A2A methods.
        agent_of: Returns the name of the agent that a request addresses.
        is_left: True to cancel a task when its client disconnects, unless the request says otherwise.
    """

    def __init__(self, tasks: Tasks, agent_of: Callable[[Request], str], *, is_left: bool) -> None:
        self._agent_of, self._is_left = agent_of, is_left
        self._one: Mapping[str, Callable[[RpcRequest, Caller], Coroutine[Any, Any, Wire]]] = {
            "SendMessage": tasks.send,
            "GetTask": tasks.get,
            "ListTasks": tasks.list_all,
            "CancelTask": tasks.cancel,
        }
        self._many: Mapping[str, Callable[[RpcRequest, Caller], Awaitable[AsyncIterator[Wire]]]] = {
            "SendStreamingMessage": tasks.send_streaming,
            "SubscribeToTask": tasks.subscribe,
        }

    def routes(self) -> list[Route]:
        """Return the routes below each agent's URL."""
        return [
            Route(f"/a2a/{{agent:path}}/{path}", self._handler(method), methods=list(verbs))
            for path, verbs, method in _ROUTES
        ]

    def _handler(self, method: str) -> Callable[[Request], Awaitable[Response | EventStream]]:
        async def handle(request: Request) -> Response | EventStream:
            try:
                return await self._call(method, request)
            except ClientLeftError:
                return Response()
            except Exception as error:
                refusal = refusal_of(error)
                if refusal.code in ("internal", "too_large"):
                    raise
                return _refuse(refusal)

        return handle

    async def _call(self, method: str, request: Request) -> Response | EventStream:
        query = dict(request.query_params)
        disconnect = {name: query.pop(name) for name in ("on_disconnect",) if name in query}
        caller = Caller(
            agent=self._agent_of(request),
            owner=owner_of(request.scope),
            is_left=read_disconnect(disconnect, cancels=self._is_left),
        )
        check_version(request.headers.get("a2a-version"))
        body = await request.body() if request.method == "POST" else b""
        params = {**_typed(query), **(read_object(body) if body.strip() else {})}
        if "id" in request.path_params:
            params["id"] = request.path_params["id"]
        rpc = RpcRequest(id=None, method=method, params=params)
        if method in self._many:
            return EventStream(_write_events(await self._many[method](rpc, caller)))
        if method in self._one:
            result = await while_connected(request.receive, self._one[method](rpc, caller))
            return Response(write_json(result), media_type="application/json")
        raise refused_method(method)


def rest_error_of(refusal: Refusal) -> Wire:
    """Return an error as the JSON of a `google.rpc.Status`, with the HTTP status in `code`."""
    error = error_of(refusal)["error"]
    kind = A2A_REASON_TO_ERROR.get(error["data"][0]["reason"])
    # Refusals with a status of their own keep it.
    mapping = None if kind is None or refusal.status != 400 else A2A_REST_ERROR_MAPPING.get(kind)
    code, status = refusal.status, _STATUSES.get(refusal.status, "INTERNAL")
    if mapping is not None:
        code, status = mapping.http_code, mapping.grpc_status
    return {"error": {"code": code, "status": status, "message": refusal.message, "details": error["data"]}}


def _refuse(refusal: Refusal) -> Response:
    body = rest_error_of(refusal)
    wait = refusal.retry_after_s
    headers = {} if wait is None else {"retry-after": str(max(1, round(wait)))}
    return Response(write_json(body), body["error"]["code"], headers, "application/json")


async def _write_events(updates: AsyncIterator[Wire]) -> AsyncIterator[bytes]:
    try:
        async with closing(updates) as following:
            async for update in following:
                yield b"data: " + write_json(update) + b"\n\n"
    except Exception as error:
        # The status has been sent already, so the error goes into the stream.
        refusal = refusal_of(error)
        yield b"event: error\ndata: " + write_json(rest_error_of(refusal)) + b"\n\n"
        if refusal.code == "internal":
            raise  # the error text refers to the log


def _typed(query: Mapping[str, str]) -> dict[str, Any]:
    """Parse booleans in query parameters. Numbers stay strings, as ProtoJSON allows."""
    truths = {"true": True, "false": False}
    return {name: truths.get(value.lower(), value) for name, value in query.items()}
