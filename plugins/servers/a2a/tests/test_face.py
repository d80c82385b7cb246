"""The two bindings of A2A between a request and a method, without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from jackfield.servers import Refusal, RequestRefusedError
from jackfield_a2a.face import A2AServer, _sent
from jackfield_a2a.rest import RestCalls, _write_events, rest_error_of
from jackfield_a2a.rpc import RpcRequest
from jackfield_a2a.service import Caller


class Methods:
    """Methods that only note what they are called with."""

    def __init__(self) -> None:
        self.called: list[tuple[RpcRequest, Caller]] = []

    async def _note(self, rpc: RpcRequest, caller: Caller) -> dict[str, Any]:
        self.called.append((rpc, caller))
        return {}

    send = get = list_all = cancel = send_streaming = subscribe = _note


def requested(body: bytes = b"", query: str = "", **path: str) -> Request:
    scope = {
        "type": "http", "method": "POST", "path": "/", "headers": [(b"a2a-version", b"1.0")],
        "query_string": query.encode(), "path_params": path,
    }  # fmt: skip
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if not messages:
            await asyncio.Event().wait()  # the client stays
        return messages.pop()

    return Request(scope, receive)


def called(request: Request, *, is_left: bool = False) -> tuple[Any, Caller]:
    methods: Any = Methods()
    calls = RestCalls(methods, lambda _: "clerk", is_left=is_left)
    asyncio.run(calls._call("SendMessage", request))  # type: ignore[arg-type]
    [(rpc, caller)] = methods.called
    return rpc.params, caller


@pytest.mark.parametrize(
    ("body", "query", "path", "params"),
    [
        (b" \n", "", {}, {}),
        (b'{"a": 1}', "a=2&b=3", {}, {"a": 1, "b": "3"}),
        (b'{"id": "body"}', "id=query", {"id": "path"}, {"id": "path"}),
        (b"", "includeArtifacts=True&on_disconnect=continue", {}, {"includeArtifacts": True}),
    ],
    ids=["a blank body", "body and query", "path", "a truth"],
)
def test_a_request_has_the_parameters_of_its_path_its_body_and_its_query(
    body: bytes, query: str, path: dict[str, str], params: dict[str, Any]
) -> None:
    assert called(requested(body, query, **path))[0] == params


@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize(
    ("query", "expected"), [("", None), ("on_disconnect=cancel", True), ("on_disconnect=continue", False)]
)
def test_a_request_or_else_the_setting_says_what_it_means_to_leave(
    is_left: bool, query: str, expected: bool | None
) -> None:
    assert called(requested(query=query), is_left=is_left)[1].is_left is (is_left if expected is None else expected)


@pytest.mark.parametrize("setting", ["continue", "cancel"])
def test_the_setting_holds_for_both_bindings(setting: Any) -> None:
    serving: Any = SimpleNamespace(agents={})
    app: Any = A2AServer({"on_disconnect": setting}).app(serving)
    [face] = {route.endpoint.__self__ for route in app.routes if hasattr(route.endpoint, "__self__")}
    assert (face._is_left, face.rest._is_left) == (setting == "cancel",) * 2


@pytest.mark.parametrize(
    ("status", "name"),
    [(404, "NOT_FOUND"), (409, "FAILED_PRECONDITION"), (429, "RESOURCE_EXHAUSTED"), (503, "INTERNAL")],
)
def test_a_status_has_the_name_of_google_rpc(status: int, name: str) -> None:
    error = rest_error_of(Refusal(status=status, code="odd", message="no"))["error"]
    assert (error["code"], error["status"], error["message"]) == (status, name, "no")


async def updates(error: Exception) -> AsyncIterator[dict[str, Any]]:
    yield {"task": {}}
    raise error


@pytest.mark.parametrize("binding", ["JSON-RPC", "REST"])
@pytest.mark.parametrize(
    ("error", "is_raised"), [(RequestRefusedError("no", code="not_found", status=404), False), (OSError("sk-x"), True)]
)
def test_an_error_after_the_first_update_is_the_last_one_and_unexpected_ones_are_raised(
    binding: str, error: Exception, is_raised: bool
) -> None:
    lines: list[bytes] = []

    async def read() -> None:
        rpc = RpcRequest(id="x", method="SubscribeToTask")
        stream = _sent(rpc, updates(error)) if binding == "JSON-RPC" else _write_events(updates(error))
        async for line in stream:
            lines.append(line)  # noqa: PERF401 - keeps those before an error

    if is_raised:
        with pytest.raises(OSError, match="sk-x"):
            asyncio.run(read())
    else:
        asyncio.run(read())
    first, last = lines
    assert first.startswith(b"data: ")
    sent = json.loads(last.removeprefix(b"event: error\ndata: "))
    assert "sk-x" not in str(sent)
    assert sent.get("id") == ("x" if binding == "JSON-RPC" else None)
    assert ("jsonrpc" in sent, "status" in sent["error"]) == (binding == "JSON-RPC", binding == "REST")
