"""Implement Chat Completions: `POST /v1/chat/completions`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jackfield.events import RunFailed
from jackfield.messages import Usage
from jackfield.servers import RequestRefusedError, failure_of, owner_of, read_object, refusal_of, write_json
from jackfield.streams import closing
from jackfield_openai_server.calls import continue_run, outer_id
from jackfield_openai_server.chat_request import ChatQuestion, read_chat_request
from jackfield_openai_server.citations import annotations_of
from jackfield_openai_server.errors import error_object
from jackfield_openai_server.items import AnswerEnded, Began, CallItem, Change, Ended, Grew, ItemFold, TextItem
from jackfield_openai_server.models import check_model
from jackfield_serving import EventStream, Serving, while_connected

_BETWEEN = "\n\n"  # between the texts of two turns
_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class _Following:
    """A run followed by a request."""

    run_id: str
    after: int
    owner: str
    spent: Usage


class ChatCompletions:
    """Request handler for Chat Completions.

    Args:
        serving: The agents and their runs.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def create(self, request: Request) -> Response | EventStream:
        """Answer a request. The run is cancelled if the client disconnects."""
        question = read_chat_request(read_object(await request.body()))
        check_model(self._serving, question.agent)
        owner = owner_of(request.scope)
        following = await self._begin(question, owner)

        async def cancel() -> None:
            await self._serving.cancel(following.run_id, owner=owner)

        if question.stream:
            return EventStream(self._stream(question, following), cancel)
        try:
            return await while_connected(request.receive, self._answer(question, following))
        except BaseException:
            await cancel()
            raise

    async def _begin(self, question: ChatQuestion, owner: str) -> _Following:
        if question.results:
            continued = await continue_run(self._serving, question, question.results, owner)
            if continued is not None:
                return _Following(continued.run_id, continued.number, owner, continued.usage)
        run_id = await self._serving.start(
            question.agent,
            question.messages,
            owner=owner,
            config=question.config,
            client_tools=question.client_tools,
            output=question.output,
        )
        return _Following(run_id, 0, owner, Usage())

    async def _changes(self, question: ChatQuestion, following: _Following) -> AsyncIterator[Change]:
        fold = ItemFold([tool["name"] for tool in question.client_tools])
        events = self._serving.attach(following.run_id, after=following.after, owner=following.owner)
        async with closing(events):
            async for numbered in events:
                for change in fold.feed(numbered.event):
                    yield change
                    if fold.is_broken:
                        raise RequestRefusedError(
                            "the model's response was interrupted, and the retry returned different text: send the "
                            "request again",
                            status=502,
                            code="answer_broke_off",
                        )
                if fold.is_over:
                    return
        raise RequestRefusedError("the run ended without a response", status=500, code="server_error")

    async def _answer(self, question: ChatQuestion, following: _Following) -> Response:
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        texts: dict[str, list[str]] = {"message": [], "reasoning": []}
        calls: list[dict[str, Any]] = []
        async with closing(self._changes(question, following)) as changes:
            async for change in changes:
                match change:
                    case Ended(TextItem() as item):
                        texts[item.kind].append(item.text)
                        if item.sources or item.citations:
                            message["annotations"] = _annotations(item, _BETWEEN.join(texts["message"]))
                    case Ended(CallItem() as call):
                        calls.append(_tool_call(call, following.run_id))
                    case AnswerEnded():
                        _check_end(change)
                        if texts["message"]:
                            message["content"] = _BETWEEN.join(texts["message"])
                        if texts["reasoning"]:
                            message["reasoning_content"] = _BETWEEN.join(texts["reasoning"])
                        if calls:
                            message["tool_calls"] = calls
                        elif message["content"] is None:
                            message["content"] = ""
                        choice = {
                            "index": 0,
                            "message": message,
                            "logprobs": None,
                            "finish_reason": _finish_reason(change, bool(calls)),
                        }
                        body = {
                            **_head(question, following, "chat.completion"),
                            "choices": [choice],
                            "usage": usage_object(change.usage, following.spent),
                        }
                        return Response(write_json(body), media_type="application/json")
        raise AssertionError("every answer has an end")

    async def _stream(self, question: ChatQuestion, following: _Following) -> AsyncIterator[bytes]:
        head = _head(question, following, "chat.completion.chunk")
        writer = _ChunkWriter({**head, "usage": None} if question.include_usage else head)
        # Sent with the first chunk, because each send costs more than a chunk.
        opening = writer.write({"role": "assistant", "content": "", "refusal": None})
        shown: dict[str, list[str]] = {"message": [], "reasoning": []}
        calls = 0
        try:
            async with closing(self._changes(question, following)) as changes:
                async for change in changes:
                    match change:
                        case Began(item) if shown[item.kind]:
                            shown[item.kind].append(_BETWEEN)
                            piece = writer.write_text(_FIELDS[item.kind], _BETWEEN)
                        case Grew(item, text):
                            shown[item.kind].append(text)
                            piece = writer.write_text(_FIELDS[item.kind], text)
                        case Ended(TextItem() as item) if item.sources or item.citations:
                            piece = writer.write({"annotations": _annotations(item, "".join(shown["message"]))})
                        case Ended(CallItem() as call):
                            piece = writer.write(
                                {"tool_calls": [{"index": calls, **_tool_call(call, following.run_id)}]}
                            )
                            calls += 1
                        case AnswerEnded():
                            _check_end(change)
                            piece = writer.write({}, _finish_reason(change, bool(calls)))
                            if question.include_usage:
                                usage = usage_object(change.usage, following.spent)
                                piece += b"data: " + write_json({**head, "choices": [], "usage": usage}) + b"\n\n"
                            piece += _DONE
                        case _:
                            continue
                    yield opening + piece
                    opening = b""
        except Exception as error:
            # The status has been sent already, so the error goes into the stream.
            refusal = refusal_of(error)
            yield opening + b"data: " + write_json({"error": error_object(refusal)}) + b"\n\n"
            if refusal.code == "internal":
                raise  # the error text refers to the log


_FIELDS: Mapping[str, str] = {"message": "content", "reasoning": "reasoning_content"}


def usage_object(usage: Usage, spent: Usage) -> dict[str, Any]:
    """Return an answer's usage, which is that of the run minus its earlier answers."""
    used = {
        name: max(0, getattr(usage, name) - getattr(spent, name))
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    }
    return {
        "prompt_tokens": used["prompt_tokens"],
        "completion_tokens": used["completion_tokens"],
        "total_tokens": used["prompt_tokens"] + used["completion_tokens"],
        "prompt_tokens_details": {"cached_tokens": used["cached_tokens"]},
        "completion_tokens_details": {"reasoning_tokens": used["reasoning_tokens"]},
    }


def _head(question: ChatQuestion, following: _Following, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{following.run_id}",
        "object": kind,
        "created": int(time.time()),
        "model": question.agent,
    }


class _ChunkWriter:
    """Serialises the chunks of one answer, which differ only in their choice."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        self._before = b"data: " + write_json(head)[:-1] + b',"choices":['

    def write(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        """Return a chunk as a server-sent event."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._before + write_json(choice) + b"]}\n\n"

    def write_text(self, field: str, text: str) -> bytes:
        """Return a text chunk; a faster equivalent of `write({field: text})`."""
        return b'%b{"index":0,"delta":{"%b":%b},"logprobs":null,"finish_reason":null}]}\n\n' % (
            self._before,
            field.encode(),
            write_json(text),
        )


def _tool_call(item: CallItem, run_id: str) -> dict[str, Any]:
    if not item.is_of_client:
        raise RequestRefusedError(
            f"the agent wants to call {item.call.name!r}, which requires approval: use the Responses API",
            status=409,
            code="approval_needed",
        )
    function = {"name": item.call.name, "arguments": item.call.arguments}
    return {"id": outer_id(item.call_id, run_id), "type": "function", "function": function}


def _annotations(item: TextItem, text: str) -> list[dict[str, Any]]:
    return [
        {"type": "url_citation", "url_citation": {name: value for name, value in one.items() if name != "type"}}
        for one in annotations_of(item, offset=len(text) - len(item.text))
    ]


def _finish_reason(end: AnswerEnded, has_calls: bool) -> str:
    if has_calls:
        return "tool_calls"
    stop_reason = "" if isinstance(end.end, RunFailed) else end.end.stop_reason
    if stop_reason not in ("finished", "empty_reply", "approval_needed", "input_needed"):
        return "length"  # a limit of the run
    return end.finish_reason if end.finish_reason in ("length", "content_filter") else "stop"


def _check_end(end: AnswerEnded) -> None:
    """Raise the error if the run failed or was cancelled."""
    if isinstance(end.end, RunFailed):
        raise failure_of(end.end)
    if end.end.stop_reason == "cancelled":
        raise RequestRefusedError("the run was cancelled", status=409, code="cancelled")
