"""Every route of OpenAI's SDK is answered: it works, or the error says what to do."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import pkgutil
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any, cast

import httpx
import pytest
from openresponses import OpenResponses
from openresponses.types.generated import CompactResource
from websockets.sync.client import connect

from jackfield import FnCallAgent
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer
from jackfield_serve import ServingApp, Tokens, serving_app
from jackfield_testkit.faces import ServedFace

RESOURCES = ("responses", "conversations", "chat.completions", "models", "embeddings", "files", "completions")
WORKING = {
    ("POST", "/chat/completions"),
    ("POST", "/responses"),
    ("POST", "/responses/compact"),
    ("GET", "/responses/ID"),
    ("DELETE", "/responses/ID"),
    ("POST", "/responses/ID/cancel"),
    ("GET", "/responses/ID/input_items"),
    ("POST", "/conversations"),
    ("GET", "/conversations/ID"),
    ("DELETE", "/conversations/ID"),
    ("GET", "/conversations/ID/items"),
    ("GET", "/conversations/ID/items/ID"),
    ("GET", "/models"),
    ("GET", "/models/ID"),
    ("POST", "/embeddings"),
}
TOKEN = "ada-0123456789abcdef"
_CALL = re.compile(r"self\._(post|get|delete|get_api_list|patch)\(\s*(?:path_template\()?\s*f?[\"']([^\"']+)[\"']")


def modules_of(name: str) -> Iterator[ModuleType]:
    module = importlib.import_module(f"openai.resources.{name}")
    yield module
    for inner in pkgutil.iter_modules(getattr(module, "__path__", [])):
        yield importlib.import_module(f"{module.__name__}.{inner.name}")


def routes_of_the_sdk() -> list[tuple[str, str]]:
    """Return the methods and paths that the SDK calls, with ID for each variable."""
    calls = {
        call for name in RESOURCES for module in modules_of(name) for call in _CALL.findall(inspect.getsource(module))
    }
    methods = {"get_api_list": "GET"}
    return sorted((methods.get(verb, verb.upper()), re.sub(r"{[^}]*}", "ID", path)) for verb, path in calls)


def script(request: ChatRequest) -> Any:
    text = request.messages[-1].get_text_content()
    if text.startswith("Summarise"):
        if request.messages[0].get_text_content() == "Too long":
            return [TextDelta("A summ"), ModelFinished("length")]
        return answer(f"A summary of {len(request.messages)} messages.")
    return answer(f"{len(request.messages)}: {text}")


@pytest.fixture(scope="module")
def served() -> Iterator[ServedFace]:
    with ServedFace(serving_app({"helper": FnCallAgent(llm=ScriptedModel(script), name="helper")})) as face:
        yield face


def test_the_sdk_has_the_routes_that_work() -> None:
    assert set(routes_of_the_sdk()) > WORKING


@pytest.mark.parametrize(("method", "path"), routes_of_the_sdk())
def test_a_route_works_or_is_refused_with_the_next_step(served: ServedFace, method: str, path: str) -> None:
    reply = httpx.request(method, f"{served.url}/v1{path}", json={} if method == "POST" else None)
    error = reply.json().get("error") or {}
    assert reply.status_code < 500
    assert "nothing is served" not in error.get("message", "")
    is_refused = error.get("code") == "unsupported_endpoint"
    assert is_refused is ((method, path) not in WORKING)
    if is_refused:
        assert reply.status_code == 404  # clients repeat requests after 5xx
        assert f"{method} /v1{path}" in error["message"]


# --- compaction ---


def test_a_conversation_is_compacted_and_continued(served: ServedFace) -> None:
    url = f"{served.url}/v1/responses"
    first = httpx.post(url, json={"model": "helper", "input": "Hi"}).json()
    body = {"model": "helper", "previous_response_id": first["id"], "input": "And now?"}
    serving = cast(ServingApp, served.app).serving
    before = asyncio.run(serving.runs())
    reply = httpx.post(f"{url}/compact", json=body)
    compacted = reply.json()
    assert asyncio.run(serving.runs()) == before, "its run is deleted"
    CompactResource.model_validate(compacted, strict=True)
    assert compacted["usage"]["input_tokens"] > 0
    (item,) = compacted["output"]
    assert (compacted["id"].partition("_")[0], item["id"].partition("_")[0]) == ("resp", "cmp")
    assert compacted["id"].partition("_")[2] == item["id"].partition("_")[2]
    again = httpx.post(url, json={"model": "helper", "input": [item, {"role": "user", "content": "Go on"}]}).json()
    assert again["output"][-1]["content"][0]["text"].endswith("Go on")
    listed = httpx.get(f"{url}/{again['id']}/input_items").json()["data"]
    assert "A summary of 4 messages." in json.dumps(listed)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "helper"}, "input"),
        ({"model": "helper", "input": "Hi", "stream": True}, "stream"),
        ({"model": "helper", "input": [{"type": "compaction", "encrypted_content": "x"}]}, "input.0.encrypted_content"),
    ],
)
def test_what_cannot_be_compacted_is_refused(served: ServedFace, body: dict[str, Any], param: str) -> None:
    reply = httpx.post(f"{served.url}/v1/responses/compact", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


def test_half_a_summary_is_an_error(served: ServedFace) -> None:
    reply = httpx.post(f"{served.url}/v1/responses/compact", json={"model": "helper", "input": "Too long"})
    assert (reply.status_code, "cannot compact" in reply.json()["error"]["message"]) == (500, True)


# --- the WebSocket ---


def test_responses_follow_each_other_over_a_websocket(served: ServedFace) -> None:
    with OpenResponses(api_key="x", base_url=f"{served.url}/v1") as client, client.websocket() as socket:
        first = socket.create({"model": "helper", "input": "Hi", "store": False})
        events = list(first)
        assert events[0].type == "response.created"
        response = events[-1].response
        second = list(socket.create({"model": "helper", "input": "More", "previous_response_id": response.id}))
        assert '"text":"3: More"' in second[-1].response.model_dump_json()
    assert httpx.get(f"{served.url}/v1/responses/{response.id}").status_code == 404  # store: false


def test_an_error_over_a_websocket_is_an_envelope_and_the_connection_goes_on(served: ServedFace) -> None:
    with connect(f"ws{served.url.removeprefix('http')}/v1/responses") as socket:
        for text, status, code in (
            ("{", 400, "invalid_json"),
            ('{"type": "response.cancel"}', 400, "invalid_value"),
            ('{"type": "response.create", "model": "nobody", "input": "Hi"}', 404, "model_not_found"),
            (
                '{"type": "response.create", "model": "helper", "input": "Hi", "background": true}',
                400,
                "unsupported_parameter",
            ),
        ):
            socket.send(text)
            envelope = json.loads(socket.recv(timeout=30))
            assert (envelope["type"], envelope["status"], envelope["error"]["code"]) == ("error", status, code)
            assert envelope["error"].keys() == {"message", "type", "param", "code"}
        socket.send('{"type": "response.create", "model": "helper", "input": "Hi"}')
        assert json.loads(socket.recv(timeout=30))["type"] == "response.created"


class Patient(ScriptedModel):
    """Sends a word and then waits until it is cancelled."""

    began, cancelled = threading.Event(), threading.Event()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("one moment")
        self.began.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.cancelled.set()


def test_a_client_that_leaves_its_websocket_cancels_the_response() -> None:
    with ServedFace(serving_app({"patient": FnCallAgent(llm=Patient([]), name="patient")})) as served:
        with connect(f"ws{served.url.removeprefix('http')}/v1/responses") as socket:
            socket.send('{"type": "response.create", "model": "patient", "input": "Hi"}')
            assert Patient.began.wait(30)
        assert Patient.cancelled.wait(30)


def test_a_websocket_needs_the_token_and_works_for_its_owner() -> None:
    agent = FnCallAgent(llm=ScriptedModel(script), name="helper")
    with ServedFace(serving_app({"helper": agent}, tokens=Tokens([("ada", TOKEN)]))) as served:
        url = f"ws{served.url.removeprefix('http')}/v1/responses"
        with pytest.raises(Exception, match="403"), connect(url):
            pass
        with connect(url, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as socket:
            socket.send('{"type": "response.create", "model": "helper", "input": "Hi", "store": false}')
            assert json.loads(socket.recv(timeout=30))["type"] == "response.created"
            while json.loads(socket.recv(timeout=30))["type"] != "response.completed":
                pass
            serving = cast(ServingApp, served.app).serving
            assert len(asyncio.run(serving.runs(owner="ada"))) == 1
        ends_at = time.monotonic() + 30
        while asyncio.run(serving.runs(owner="ada")) and time.monotonic() < ends_at:
            time.sleep(0.01)
        assert asyncio.run(serving.runs(owner="ada")) == [], "it was not to be stored"
