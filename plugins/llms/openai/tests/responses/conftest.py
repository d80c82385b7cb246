"""What the tests of this backend share: answers and the events that tell them, a server, and models that ask it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from jackfield import sync
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_openai.responses.backend import OpenAIResponses
from jackfield_testkit.responses import FakeResponses

Wire = dict[str, Any]
MakeModel = Callable[..., OpenAIResponses]


class Told:
    """An answer's items, and the events that a server tells them with."""

    def message(self, *texts: str, id: str = "msg", refusal: str = "") -> Wire:  # noqa: A002 - the wire's word
        parts: list[Wire] = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
        if refusal:
            parts.append({"type": "refusal", "refusal": refusal})
        return {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": parts}

    def reasoning(
        self,
        *summary: str,
        content: Sequence[str] = (),
        id: str = "rs",  # noqa: A002 - as above
        encrypted: str | None = "gAAAA",
    ) -> Wire:
        item: Wire = {"id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": t} for t in summary]}
        if content:
            item["content"] = [{"type": "reasoning_text", "text": text} for text in content]
        return {**item, "encrypted_content": encrypted} if encrypted is not None else item

    def call(self, name: str, arguments: str = "{}", *, call_id: str = "call_1", id: str = "fc") -> Wire:  # noqa: A002
        return {
            "id": id,
            "type": "function_call",
            "call_id": call_id,
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }

    def image(self, result: str = "iVBORw0KGgo=", *, id: str = "ig", **more: Any) -> Wire:  # noqa: A002 - as above
        return {"id": id, "type": "image_generation_call", "status": "completed", "result": result, **more}

    def response(self, output: Sequence[Wire], status: str = "completed", **more: Any) -> Wire:
        head = {"id": "resp_1", "object": "response", "created_at": 1767225600, "model": "m", "status": status}
        return {**head, "error": None, "incomplete_details": None, "output": list(output), "usage": None, **more}

    def created(self) -> Wire:
        return {"type": "response.created", "response": self.response([], "in_progress")}

    def completed(self, output: Sequence[Wire], status: str = "completed", **more: Any) -> Wire:
        return {"type": f"response.{status}", "response": self.response(output, status, **more)}

    def added(self, item: Wire, index: int) -> Wire:
        empty: Wire = {"content": [], "summary": [], "arguments": "", "result": None, "encrypted_content": ""}
        shown = {key: empty.get(key, value) for key, value in item.items()}
        return {"type": "response.output_item.added", "output_index": index, "item": shown}

    def done(self, item: Wire, index: int) -> Wire:
        return {"type": "response.output_item.done", "output_index": index, "item": item}

    def deltas(self, item: Wire, index: int, size: int = 3) -> list[Wire]:
        """The texts of an item in pieces of this size."""
        place = {"item_id": item.get("id"), "output_index": index}
        pieces: list[tuple[str, Wire, str]] = []
        for number, part in enumerate(item.get("summary", ())):
            pieces.append(("reasoning_summary_text", {"summary_index": number}, part["text"]))
        for number, part in enumerate(item.get("content", ())):
            kind = {"reasoning_text": "reasoning_text", "refusal": "refusal"}.get(part["type"], "output_text")
            pieces.append((kind, {"content_index": number}, part.get("text", part.get("refusal"))))
        if item["type"] == "function_call":
            pieces.append(("function_call_arguments", {}, item["arguments"]))
        return [
            {"type": f"response.{kind}.delta", **place, **where, "delta": text[start : start + size]}
            for kind, where, text in pieces
            for start in range(0, len(text), size)
        ]

    def all(self, output: Sequence[Wire], size: int = 3, **completed: Any) -> list[Wire]:
        """Everything that a server tells of an answer, one item after the other."""
        events = [self.created()]
        for index, item in enumerate(output):
            events += [self.added(item, index), *self.deltas(item, index, size), self.done(item, index)]
        return [*events, self.completed(output, **completed)]

    def bytes_of(self, events: Sequence[Mapping[str, Any] | str]) -> bytes:
        frames = [
            f"data: {event}\n\n" if isinstance(event, str) else f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            for event in events
        ]
        return "".join(frames).encode()


@pytest.fixture(scope="session")
def told() -> Told:
    return Told()


@pytest.fixture
def server() -> Iterator[FakeResponses]:
    """A server of this test alone."""
    with FakeResponses() as server:
        yield server


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No keys, addresses or proxies of the developer."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.fixture
def make_model(server: FakeResponses, clean_environment: pytest.MonkeyPatch) -> Iterator[MakeModel]:
    """Makes models that ask the server, and closes them."""
    models: list[OpenAIResponses] = []

    def make(**config: Any) -> OpenAIResponses:
        settings = {"model": "test-model", "base_url": server.url, "generate_cfg": {"max_retries": 0}, **config}
        models.append(OpenAIResponses(settings, host=PluginHost(Settings())))
        return models[-1]

    yield make
    for model in models:
        sync.run(model.aclose())
