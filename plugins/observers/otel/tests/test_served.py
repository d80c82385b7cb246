"""Runs that `jackfield serve` starts are in the traces of the clients that asked for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import httpx
import pytest

from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer
from jackfield_serve import serving_app
from jackfield_testkit.faces import ServedFace

from .conftest import SDK, Receiver

FACES = ("openai", "ag-ui", "a2a", "web", "mcp")
PARENT = "00-{trace:032x}-{span:016x}-01"


def chat() -> tuple[str, object, Mapping[str, str]]:
    return "/v1/chat/completions", {"model": "helper", "messages": [{"role": "user", "content": "Hi"}]}, {}


def streamed_response() -> tuple[str, object, Mapping[str, str]]:
    return "/v1/responses", {"model": "helper", "input": "Hi", "stream": True}, {}


def ag_ui() -> tuple[str, object, Mapping[str, str]]:
    messages = [{"id": "m1", "role": "user", "content": "Hi"}]
    return "/ag-ui/helper", {"threadId": "", "runId": "r1", "messages": messages}, {}


def a2a() -> tuple[str, object, Mapping[str, str]]:
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "Hi"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    return "/a2a/helper", body, {"a2a-version": "1.0"}


def web() -> tuple[str, object, Mapping[str, str]]:
    return "/api/runs?follow", {"agent": "helper", "text": "Hi", "conversation": "c"}, {}


def mcp() -> tuple[str, object, Mapping[str, str]]:
    version = "2026-07-28"
    names = {"protocolVersion": version, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
    params = {"name": "helper", "arguments": {"message": "Hi"}, "_meta": meta}
    headers = {"mcp-protocol-version": version, "mcp-method": "tools/call", "mcp-name": "helper"}
    headers["accept"] = "application/json, text/event-stream"
    return "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers


@pytest.mark.parametrize("request_of", [chat, streamed_response, ag_ui, a2a, web, mcp])
def test_the_span_of_a_client_is_the_parent_of_the_run(
    request_of: Callable[[], tuple[str, object, Mapping[str, str]]], received: tuple[Receiver, SDK]
) -> None:
    receiver, sdk = received
    agent = FnCallAgent(llm=ScriptedModel(lambda _: answer("Hello.")), name="helper", observers=[sdk.observer()])
    path, body, headers = request_of()
    with ServedFace(serving_app({"helper": agent}, faces=FACES)) as served, httpx.Client(timeout=60) as client:
        for number in (1, 2, 3):
            if isinstance(body, dict) and "conversation" in body:
                body = {**body, "conversation": f"c{number}"}
            if isinstance(body, dict) and "threadId" in body:
                body = {**body, "threadId": f"t{number}"}
            named = {**headers, "content-type": "application/json"}
            if number < 3:
                named["traceparent"] = PARENT.format(trace=number, span=number + 16)
            reply = client.post(f"{served.url}{path}", content=json.dumps(body), headers=named)
            assert reply.status_code == 200, reply.text
    roots = [span for span in receiver.spans() if span.name == "invoke_agent helper"]
    assert [(int(one.trace, 16), int(one.parent or "0", 16)) for one in roots[:2]] == [(1, 17), (2, 18)]
    assert not roots[2].parent


@pytest.mark.parametrize("header", ["", "00-0-0-01", "x" * 5000, "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "é"])
def test_a_header_that_names_no_span_changes_nothing(header: str, received: tuple[Receiver, SDK]) -> None:
    receiver, sdk = received
    agent = FnCallAgent(llm=ScriptedModel([answer("Hello.")]), name="helper", observers=[sdk.observer()])
    path, body, _ = chat()
    with ServedFace(serving_app({"helper": agent})) as served:
        reply = httpx.post(f"{served.url}{path}", json=body, headers={b"traceparent": header.encode("latin-1")})
        assert reply.status_code == 200
    assert [span.parent for span in receiver.spans() if span.name == "invoke_agent helper"] in ([""], [None])
