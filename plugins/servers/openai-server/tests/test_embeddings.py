"""Embeddings, as OpenAI's client asks for them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import openai
import pytest

from jackfield import FnCallAgent
from jackfield.errors import ConfigError
from jackfield.messages import Usage
from jackfield.plugins import PluginHost, Row, Settings
from jackfield.retrieval import Embedded, Embedder, Purpose
from jackfield.testing import ScriptedModel
from jackfield_openai_server.face import OpenAIServer
from jackfield_serve import serving_app
from jackfield_testkit.faces import HttpRequest, ServedFace


class Lengths(Embedder):
    """Counts characters and words."""

    backend = "lengths"
    space = "lengths"
    dimension = 2

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """Embed."""
        vectors = tuple((float(len(text)), float(len(text.split()))) for text in texts)
        return Embedded(vectors, Usage(prompt_tokens=len(texts)))


@pytest.fixture
def face(monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    host = PluginHost(Settings())
    monkeypatch.setattr(host, "find", lambda kind, name: Row(kind, name, "", "acme", "1.0", 1, ""))
    monkeypatch.setattr(host, "make", lambda row, settings, base: Lengths())
    return OpenAIServer({"embedders": ["lengths", {"name": "lengths", "model": "other"}]}, host=host)


@pytest.fixture
def served(face: OpenAIServer) -> Iterator[ServedFace]:
    with ServedFace(serving_app({"helper": FnCallAgent(llm=ScriptedModel([]))}, faces=[face])) as made:
        yield made


def test_texts_become_vectors_in_their_order(served: ServedFace) -> None:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none") as client:
        for form in ("float", "base64", None):
            more: Any = {} if form is None else {"encoding_format": form}
            reply = client.embeddings.create(model="lengths", input=["one", "two words"], **more)
            if form != "base64":
                assert [entry.embedding for entry in reply.data] == [[3.0, 1.0], [9.0, 2.0]]
            assert reply.usage.prompt_tokens == 2
        assert client.embeddings.create(model="other", input="one").data[0].embedding == [3.0, 1.0]
        assert [model.id for model in client.models.list()] == ["helper", "lengths", "other"]
        assert client.models.retrieve("other").id == "other"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"model": "helper"}, 404), ({"input": []}, 400), ({"input": ""}, 400), ({"input": ["a", ""]}, 400),
        ({"input": [1, 2]}, 400), ({"dimensions": 3}, 400), ({"encoding_format": "int8"}, 400),
        ({"input": ["a"] * 2049}, 400),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_is_not_supported_is_refused(served: ServedFace, change: dict[str, Any], status: int) -> None:
    reply = httpx.post(f"{served.url}/v1/embeddings", json={"model": "lengths", "input": "a", **change})
    error = reply.json()["error"]
    assert (reply.status_code, error["type"]) == (status, "invalid_request_error")
    assert str(error["param"]).partition(".")[0] == ("None" if status == 404 else next(iter(change)))


def test_as_many_texts_as_openai_takes_are_embedded_with_their_numbers(served: ServedFace) -> None:
    body = {"model": "lengths", "input": ["a"] * 2048}
    reply = httpx.post(f"{served.url}/v1/embeddings", json=body, timeout=60).json()
    assert [entry["index"] for entry in reply["data"]] == list(range(2048))
    assert reply["usage"] == {"prompt_tokens": 2048, "total_tokens": 2048}


def test_a_client_that_leaves_ends_its_request_to_the_embedder(
    served: ServedFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended = threading.Event(), threading.Event()

    async def embed(*_: Any, **__: Any) -> Embedded:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("it is never set")

    monkeypatch.setattr(Lengths, "embed", embed)
    body = json.dumps({"model": "lengths", "input": "a"}).encode()
    with served.connect() as connection:
        connection.sendall(HttpRequest(path="/v1/embeddings", body=body).encode())
        assert asked.wait(30)
    assert ended.wait(30)


def test_embedders_are_closed_with_the_face(monkeypatch: pytest.MonkeyPatch, face: OpenAIServer) -> None:
    closed: list[Embedder] = []

    async def aclose(embedder: Embedder) -> None:
        closed.append(embedder)

    monkeypatch.setattr(Lengths, "aclose", aclose)
    asyncio.run(face.aclose())
    assert len(closed) == 2


@pytest.mark.parametrize("entry", [{}, {"name": 1}])
def test_an_embedder_needs_a_name(entry: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must have a `name` that matches an installed embedder"):
        OpenAIServer({"embedders": [entry]})
