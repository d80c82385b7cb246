"""Let the fake server speak OpenAI's Responses API, with replies and requests in the form of Chat Completions.

```python
with FakeResponses() as server:
    server.reply(text("hello"))
    ...  # talk to server.url by Responses
    assert server.requests[0].json["messages"][0]["content"] == "hi"
    assert server.requests[0].native["store"] is False
```

Scripted replies and incoming requests are translated, so a test written for Chat Completions can run against a
Responses backend. `chunks` also accepts this API's own events: an object with a `type` is sent unchanged. Only the
standard library is required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from jackfield_testkit.dialects import Dialect, named_events
from jackfield_testkit.replies import RESPONSE_ID, Chunk, Reply, Writer, wire_json
from jackfield_testkit.requests import RecordedRequest
from jackfield_testkit.server import FakeOpenAI

__all__ = ["FakeResponses", "Responses", "ResponsesRequest"]

Wire = dict[str, Any]

_PATH = "/responses"
_CHAT_PATH = "/chat/completions"
_ENCRYPTED = "reasoning.encrypted_content"
_COMPLETE = frozenset({"stop", "tool_calls", "completed"})  # any other value is why the response is incomplete


@dataclass(frozen=True)
class ResponsesRequest(RecordedRequest):
    """A recorded request; see `RecordedRequest`.

    `json` omits items for reasoning and for tools run by the provider. It also omits the fields that prevent the
    provider from storing anything (`store` set to false, and encrypted reasoning in `include`).
    """

    @property
    def wants_usage(self) -> bool:
        """Always True, because the Responses API includes usage in every answer."""
        return True

    @property
    def wants_encrypted_reasoning(self) -> bool:
        """True if the request asks for reasoning in a form that can be sent back."""
        return isinstance(self.native, Mapping) and _ENCRYPTED in (self.native.get("include") or ())


class Responses(Dialect):
    """OpenAI's Responses API.

    Each event of a reply becomes one piece of the stream that contains all equivalent events of this API.
    """

    name = "responses"
    finish_reasons: ClassVar[Mapping[str, str]] = {
        "completed": "stop",
        "max_output_tokens": "length",
        "content_filter": "content_filter",
    }

    def request(self, arrived: RecordedRequest) -> RecordedRequest:
        known = {field.name: getattr(arrived, field.name) for field in fields(arrived)}
        translated = {"json": _chat_request(arrived.native), "path": _chat_path(arrived.native_path)}
        return ResponsesRequest(**{**known, **translated})

    def writer(self, reply: Reply, request: RecordedRequest) -> Writer:
        encrypted = isinstance(request, ResponsesRequest) and request.wants_encrypted_reasoning
        return _ReplyWriter(reply, request.model, encrypted=encrypted)

    def error(self, status: int, problem: Mapping[str, object], request: RecordedRequest) -> bytes:  # noqa: ARG002
        return wire_json({"error": problem})


class FakeResponses(FakeOpenAI):
    """Model server that speaks the Responses API. `FakeOpenAI` describes its methods."""

    def __init__(self, *, default: Reply | None = None, models: Sequence[str] = ("test-model",)) -> None:
        super().__init__(default=default, models=models, dialect=Responses())


# --- requests ---------------------------------------------------------------------------------------------------------


def _chat_path(path: str) -> str:
    before, mark, query = path.partition("?")
    return before.removesuffix(_PATH) + _CHAT_PATH + mark + query if before.endswith(_PATH) else path


def _chat_request(native: object) -> object:
    """Convert a body to Chat Completions. Fields that the Responses API does not define stay unchanged."""
    if not (isinstance(native, dict) and "input" in native):
        return native
    known = {"input", "instructions", "tools", "tool_choice", "text", "reasoning", "store", "include"}
    body = {key: value for key, value in native.items() if key not in known}
    if "max_output_tokens" in body:
        body["max_completion_tokens"] = body.pop("max_output_tokens")
    if native.get("store"):
        body["store"] = native["store"]
    if native.get("include", [_ENCRYPTED]) != [_ENCRYPTED]:
        body["include"] = native["include"]
    return {**body, **_chat_options(native), "messages": _chat_messages(native)}


def _chat_options(native: Mapping[str, Any]) -> Wire:
    options: Wire = {}
    if "tools" in native:
        options["tools"] = [_chat_tool(tool) for tool in native["tools"]]
    if "tool_choice" in native:
        options["tool_choice"] = _chat_choice(native["tool_choice"])
    if wanted := native.get("text", {}).get("format"):
        options["response_format"] = _chat_format(wanted)
    if effort := native.get("reasoning", {}).get("effort"):
        options["reasoning_effort"] = effort
    return options


def _chat_choice(choice: object) -> object:
    match choice:
        case {"type": "function", "name": name}:
            return {"type": "function", "function": {"name": name}}
    return choice


def _chat_tool(tool: Mapping[str, object]) -> Wire:
    if tool.get("type") != "function":
        return dict(tool)
    function = {key: value for key, value in tool.items() if key != "type"}
    if function.get("strict") is False:  # Chat Completions has no equivalent
        del function["strict"]
    return {"type": "function", "function": function}


def _chat_format(wanted: Mapping[str, object]) -> Wire:
    if wanted.get("type") != "json_schema":
        return dict(wanted)
    return {"type": "json_schema", "json_schema": {key: value for key, value in wanted.items() if key != "type"}}


def _chat_messages(native: Mapping[str, Any]) -> list[Wire]:
    messages: list[Wire] = []
    if instructions := native.get("instructions"):
        messages.append({"role": "system", "content": instructions})
    said = native["input"]
    for item in [{"role": "user", "content": said}] if isinstance(said, str) else said:
        _add_item(messages, item)
    return messages


def _add_item(messages: list[Wire], item: Mapping[str, object]) -> None:
    match item.get("type", "message"):
        case "message":
            messages.append({"role": item["role"], "content": _chat_content(item["content"])})
        case "function_call":
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": ""})
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            messages[-1].setdefault("tool_calls", []).append(call)
        case "function_call_output":
            content = _chat_content(item["output"])
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": content})


def _chat_content(content: Any) -> object:
    return content if isinstance(content, str) else [_chat_part(part) for part in content]


def _chat_part(part: Mapping[str, object]) -> Wire:
    match part["type"]:
        case "input_text" | "output_text":
            return {"type": "text", "text": part["text"]}
        case "refusal":
            return {"type": "text", "text": part["refusal"]}
        case "input_image":
            return {"type": "image_url", "image_url": {"url": part["image_url"]}}
        case "input_file":
            return {"type": "file", "file": {key: value for key, value in part.items() if key != "type"}}
    return dict(part)


# --- replies ----------------------------------------------------------------------------------------------------------


class _ReplyWriter(Writer):
    """Writes answers in the format of the Responses API."""

    malformed = b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "delta": "cut o\n\n'

    def __init__(self, reply: Reply, model: str, *, encrypted: bool) -> None:
        super().__init__(reply, model)
        self._head = {"id": RESPONSE_ID, "model": model, "created_at": 1_767_225_600} if reply.fill else {}
        self._encrypted = encrypted
        self._items = self._new()

    def event(self, chunk: Chunk) -> bytes:
        if isinstance(chunk, str):
            return b"data: " + chunk.encode() + b"\n\n"
        return named_events(self._items.events_of(chunk))

    def whole(self) -> bytes:
        items = self._new()
        for chunk in self.reply.chunks:
            if not isinstance(chunk, str):
                items.events_of(chunk)
        return wire_json(items.response())

    def _new(self) -> _Items:
        return _Items(self._head, self.reply.usage, encrypted=self._encrypted)


class _Items:
    """The items of one answer: one for its reasoning, one for its text, and one for each call."""

    def __init__(self, head: Mapping[str, object], usage: Mapping[str, object] | None, *, encrypted: bool) -> None:
        self._head = head
        self._usage = usage
        self._encrypted = encrypted
        self._number = 0
        self._status = "in_progress"
        self._incomplete: Wire | None = None
        self._output: list[Wire] = []
        self._speaking: Wire | None = None
        self._calls: dict[int, Wire] = {}
        self._began = False

    def events_of(self, chunk: Mapping[str, Any]) -> list[Wire]:
        """Return the events, at least one, that correspond to a Chat Completions chunk."""
        if isinstance(chunk.get("type"), str):
            return [dict(chunk)]
        events: list[Wire] = []
        if not self._began:
            self._began = True
            events += [self._whole("response.created"), self._whole("response.in_progress")]
        if "error" in chunk:
            problem = chunk["error"]
            said = {"code": problem.get("code"), "message": problem.get("message"), "param": None}
            return [*events, self._event("error", **said)]
        choices = chunk.get("choices") or [{}]
        events += self._delta(choices[0].get("delta") or {})
        if reason := choices[0].get("finish_reason"):
            events += self._end(reason)
        return events or [self._event("keepalive")]

    def response(self) -> Wire:
        """Return the answer so far as one object."""
        return {
            **self._head,
            "object": "response",
            "status": self._status,
            "error": None,
            "incomplete_details": self._incomplete,
            "output": [*self._output] if self._status != "in_progress" else [],
            "usage": _usage(self._usage) if self._status != "in_progress" else None,
        }

    def _event(self, kind: str, **values: Any) -> Wire:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **values}

    def _whole(self, kind: str) -> Wire:
        return self._event(kind, response=self.response())

    def _delta(self, delta: Mapping[str, Any]) -> list[Wire]:
        events: list[Wire] = []
        for field, where in (("reasoning_content", "summary"), ("reasoning", "content")):
            if delta.get(field):
                events += self._think(delta[field], where)
        if (text := delta.get("content")) or (text is not None and self._is_speaking("message")):
            events += self._say(text)
        for part in delta.get("tool_calls") or ():
            events += self._call(part)
        return events

    # --- items ---

    def _is_speaking(self, kind: str) -> bool:
        return self._speaking is not None and self._speaking["type"] == kind

    def _begin(self, item: Wire) -> list[Wire]:
        self._output.append(item)
        shown = {**item, "status": "in_progress"} if item["type"] != "reasoning" else dict(item)
        return [self._event("response.output_item.added", output_index=len(self._output) - 1, item=shown)]

    def _place(self, item: Wire) -> Wire:
        index = next(place for place, other in enumerate(self._output) if other is item)
        return {"item_id": item["id"], "output_index": index}

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{len(self._output)}"

    def _say(self, text: str) -> list[Wire]:
        events: list[Wire] = []
        if not self._is_speaking("message"):
            events += self._fall_silent()
            self._speaking = {"id": self._id("msg"), "type": "message", "role": "assistant", "content": []}
            events += self._begin(self._speaking)
            part = {"type": "output_text", "text": "", "annotations": []}
            self._speaking["content"] = [part]
            place = self._place(self._speaking)
            events.append(self._event("response.content_part.added", **place, content_index=0, part=dict(part)))
        speaking = self._speaking or {}
        speaking["content"][0]["text"] += text
        event = self._event("response.output_text.delta", **self._place(speaking), content_index=0, delta=text)
        return [*events, event]

    def _think(self, thought: str, where: str) -> list[Wire]:
        events: list[Wire] = []
        kind = "summary_text" if where == "summary" else "reasoning_text"
        if not self._is_speaking("reasoning"):
            events += self._fall_silent()
            self._speaking = {"id": self._id("rs"), "type": "reasoning", "summary": []}
            events += self._begin(self._speaking)
            self._speaking[where] = [{"type": kind, "text": ""}]
        speaking = self._speaking or {}
        speaking[where][0]["text"] += thought
        index = {f"{'summary' if where == 'summary' else 'content'}_index": 0}
        name = f"response.reasoning_{'summary_' if where == 'summary' else ''}text.delta"
        return [*events, self._event(name, **self._place(speaking), **index, delta=thought)]

    def _call(self, part: Mapping[str, Any]) -> list[Wire]:
        function = part.get("function") or {}
        events: list[Wire] = []
        item = self._calls.get(part["index"])
        if item is None:
            events += self._fall_silent()
            item = {"id": self._id("fc"), "type": "function_call", "name": function.get("name"), "arguments": ""}
            if part.get("id"):
                item["call_id"] = part["id"]
            self._calls[part["index"]] = item
            events += self._begin(item)
        if arguments := function.get("arguments"):
            item["arguments"] += arguments
            place = self._place(item)
            events.append(self._event("response.function_call_arguments.delta", **place, delta=arguments))
        return events

    # --- ends ---

    def _fall_silent(self) -> list[Wire]:
        speaking, self._speaking = self._speaking, None
        return [] if speaking is None else self._finish(speaking)

    def _finish(self, item: Wire) -> list[Wire]:
        place = self._place(item)
        events: list[Wire] = []
        match item["type"]:
            case "message":
                part = item["content"][0]
                where = {**place, "content_index": 0}
                events.append(self._event("response.output_text.done", **where, text=part["text"]))
                events.append(self._event("response.content_part.done", **where, part=dict(part)))
            case "function_call":
                done = {"name": item["name"], "arguments": item["arguments"]}
                events.append(self._event("response.function_call_arguments.done", **place, **done))
        if item["type"] != "reasoning":
            item["status"] = "completed"
        elif self._encrypted:
            item["encrypted_content"] = f"encrypted:{item['id']}"
        index = place["output_index"]
        return [*events, self._event("response.output_item.done", output_index=index, item=dict(item))]

    def _end(self, reason: str) -> list[Wire]:
        events = self._fall_silent()
        for item in self._calls.values():
            events += self._finish(item)
        if reason in _COMPLETE:
            self._status = "completed"
        else:
            said = "max_output_tokens" if reason == "length" else reason
            self._status, self._incomplete = "incomplete", {"reason": said}
        return [*events, self._whole(f"response.{self._status}")]


def _usage(usage: Mapping[str, Any] | None) -> Wire | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.get("prompt_tokens", 0),
        "input_tokens_details": dict(usage.get("prompt_tokens_details") or {"cached_tokens": 0}),
        "output_tokens": usage.get("completion_tokens", 0),
        "output_tokens_details": dict(usage.get("completion_tokens_details") or {"reasoning_tokens": 0}),
        "total_tokens": usage.get("total_tokens", 0),
    }
