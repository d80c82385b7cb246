"""The name of a file that a client sends arrives at the model, through every face and from every backend."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from acp.schema import BlobResourceContents, EmbeddedResourceContentBlock

from jackfield import FnCallAgent
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.media import split_data_uri, stated_name, write_data_uri
from jackfield.messages import ContentItem, Message
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel
from jackfield_acp_server.prompts import read_prompt
from jackfield_anthropic.history import _document
from jackfield_chat_completions.media import file_part
from jackfield_openai.responses.wire import _file
from jackfield_serve import serving_app
from jackfield_testkit.faces import HttpRequest, ServedFace

NAME = "Übersicht 2026; final, v2.pdf"
PDF = base64.b64encode(b"%PDF-1.7").decode()
URI = write_data_uri("application/pdf", PDF, NAME)
FACES = ("openai", "ag-ui", "a2a", "web")


def tells_name(request: ChatRequest) -> Sequence[ModelEvent]:
    names = [stated_name(item.file) for item in request.messages[-1].items if item.file is not None]
    return [TextDelta(f"The file is <{'|'.join(names)}>."), ModelFinished("stop")]


@pytest.fixture(scope="module")
def served() -> Iterator[ServedFace]:
    agent = FnCallAgent(llm=ScriptedModel(tells_name, facts=ModelFacts(files=True)), name="eyes")
    with ServedFace(serving_app({"eyes": agent}, faces=FACES)) as face:
        yield face


def chat(file: Mapping[str, str]) -> HttpRequest:
    body = {"model": "eyes", "messages": [{"role": "user", "content": [{"type": "file", "file": dict(file)}]}]}
    return HttpRequest(path="/v1/chat/completions", body=json.dumps(body).encode())


def response(file: Mapping[str, str]) -> HttpRequest:
    body = {"model": "eyes", "input": [{"role": "user", "content": [{"type": "input_file", **file}]}]}
    return HttpRequest(path="/v1/responses", body=json.dumps(body).encode())


def ag_ui() -> HttpRequest:
    source = {"type": "data", "value": PDF, "mimeType": "application/pdf"}
    part = {"type": "document", "source": source, "metadata": {"filename": NAME}}
    message = {"id": "m1", "role": "user", "content": [part]}
    body = {"threadId": "t1", "runId": "r1", "messages": [message]}
    return HttpRequest(path="/ag-ui/eyes", body=json.dumps(body).encode())


def a2a() -> HttpRequest:
    part = {"raw": PDF, "mediaType": "application/pdf", "filename": NAME}
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [part]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    headers = {"content-type": "application/json", "a2a-version": "1.0"}
    return HttpRequest(path="/a2a/eyes", body=json.dumps(body).encode(), headers=headers)


def web() -> HttpRequest:
    body = {"agent": "eyes", "text": "", "files": [{"kind": "file", "address": URI}], "conversation": "c1"}
    return HttpRequest(path="/api/runs?follow", body=json.dumps(body).encode())


PLAIN = f"data:application/pdf;base64,{PDF}"
REQUESTS = {
    "chat": chat({"file_data": PDF, "filename": NAME}),
    "chat-uri": chat({"file_data": PLAIN, "filename": NAME}),
    "responses": response({"file_data": PDF, "filename": NAME}),
    "responses-uri": response({"file_data": PLAIN, "filename": NAME}),
    "ag-ui": ag_ui(),
    "a2a": a2a(),
    "web": web(),
}


@pytest.mark.parametrize("face", REQUESTS)
def test_a_face_passes_the_name_of_a_file_on(served: ServedFace, face: str) -> None:
    reply = served.ask(REQUESTS[face])
    assert reply.status == 200, reply.text
    assert f"The file is <{NAME}>." in reply.text


def test_a_file_embedded_by_an_editor_has_the_name_in_its_address() -> None:
    resource = BlobResourceContents(blob=PDF, mime_type="application/pdf", uri="file:///home/ada/%C3%9Cbersicht.pdf")
    message = read_prompt([EmbeddedResourceContentBlock(type="resource", resource=resource)])
    assert split_data_uri(message.items[0].file or "") == ("application/pdf", PDF, "Übersicht.pdf")


@pytest.mark.parametrize(
    ("read", "key"),
    [
        (lambda: (file_part(URI) or {})["file"], "filename"),
        (lambda: _file(URI), "filename"),
        (lambda: _document(URI), "title"),
    ],
    ids=["chat-completions", "responses", "anthropic"],
)
def test_a_backend_sends_the_name_of_a_file_beside_its_content(read: Callable[[], Any], key: str) -> None:
    part = read()
    assert part[key] == NAME
    assert "name=" not in json.dumps(part), "providers read content without parameters of ours"


def test_shown_messages_name_their_files(served: ServedFace) -> None:
    created = served.ask(REQUESTS["responses"])
    items = f"/v1/responses/{json.loads(created.body)['id']}/input_items"
    (item,) = json.loads(served.ask(HttpRequest(method="GET", path=items)).body)["data"]
    assert item["content"] == [{"type": "input_file", "filename": NAME, "file_data": PLAIN}]
    from jackfield_a2a.messages import show_part
    from jackfield_ag_ui.history import _show_part

    shown = show_part(ContentItem(file=URI))
    assert shown == {"raw": PDF, "mediaType": "application/pdf", "filename": NAME}
    wire = _show_part(ContentItem(file=URI))
    assert (wire["metadata"], wire["source"]["mimeType"]) == ({"filename": NAME}, "application/pdf")


def test_a_message_in_the_form_of_openai_keeps_the_name() -> None:
    for data in (PLAIN, URI):
        message = Message.model_validate(
            {"role": "user", "content": [{"type": "file", "file": {"file_data": data, "filename": NAME}}]}
        )
        assert message.items[0].file == URI


def test_odd_names_come_back_without_folders() -> None:
    for name, shown in {"": "", "a/b/c.pdf": "c.pdf", "..": "", "\udcff.pdf": "?.pdf", "x" * 300: "x" * 255}.items():
        uri = write_data_uri("application/pdf", PDF, name)
        assert split_data_uri(uri) == ("application/pdf", PDF, shown)
        assert Message("user", [ContentItem(file=uri)]).items[0].file == uri
