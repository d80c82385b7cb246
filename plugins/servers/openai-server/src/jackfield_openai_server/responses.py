"""Implement the Responses API: `/v1/responses`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jackfield.errors import RunBusyError, RunNotFoundError
from jackfield.events import RunFailed, RunFinished, ToolFinished, TurnFinished
from jackfield.messages import Message
from jackfield.servers import RequestRefusedError, owner_of, read_object, refusal_of, write_json
from jackfield.streams import closing
from jackfield_openai_server.calls import continue_run, outer_id, split_id, waiting_run
from jackfield_openai_server.conversations import Conversations
from jackfield_openai_server.errors import ParameterError, error_object
from jackfield_openai_server.items import AnswerEnded, Change, ItemFold
from jackfield_openai_server.models import check_model
from jackfield_openai_server.paging import page_of
from jackfield_openai_server.response_object import ResponseHead, input_item, response_object
from jackfield_openai_server.response_request import ECHO, ResponseQuestion, read_response_request
from jackfield_openai_server.response_stream import ResponseStream
from jackfield_serving import INPUT, EventStream, RunInfo, Serving, while_connected

_ID = re.compile(r"resp_([0-9a-f]{32})(?:_([0-9]{1,18}))?")
_SNAPSHOT_S = 1.0


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The part of a run that makes up one response: from its start or an answer to its end or next pause.

    Attributes:
        head: The response.
        after: The number of the event before this part, or 0 at the start of the run.
        info: The run.
        messages_before: The number of messages that the run produced before this part.
    """

    head: ResponseHead
    after: int
    info: RunInfo
    messages_before: int = 0


class Responses:
    """Request handlers for the Responses API.

    Args:
        serving: The agents and their runs.
        conversations: The Conversations API.
    """

    def __init__(self, serving: Serving, conversations: Conversations) -> None:
        self._serving = serving
        self._conversations = conversations

    async def create(self, request: Request) -> Response | EventStream:
        """Answer a request. If the client disconnects, the run is cancelled unless it runs in the background."""
        question = read_response_request(read_object(await request.body()))
        check_model(self._serving, question.agent)
        owner = owner_of(request.scope)
        response_id = await self._begin(question, owner)
        part = await self._part(response_id, owner)

        async def cancel() -> None:
            await self._serving.cancel(part.info.run_id, owner=owner)

        async def finish() -> None:
            if not question.store:
                await self.forget([part.head.id], owner)

        if question.stream:
            pieces = self._sent(part, owner, finish)
            return EventStream(pieces, None if question.background else cancel)
        if question.background:
            return _json(response_object(part.head, status="in_progress"))
        try:
            final = await while_connected(request.receive, self._final(part, owner))
        except BaseException:
            await cancel()
            raise
        await finish()
        return _json(final)

    async def follow_new(self, table: dict[str, Any], owner: str, unsaved: list[str]) -> AsyncIterator[dict[str, Any]]:
        """Start a response and yield its events. Closing the iterator early cancels the response.

        Args:
            table: The request body.
            owner: The identity that sent the request.
            unsaved: Receives the response's id if the request has `store: false`; the caller must then `forget` it.

        Raises:
            RequestRefusedError: The request cannot be answered.
        """
        question = read_response_request(table)
        check_model(self._serving, question.agent)
        part = await self._part(await self._begin(question, owner), owner)
        if not question.store:
            unsaved.append(part.head.id)
        is_read = False
        try:
            async with closing(self._events(part, owner, None)) as events:
                async for event in events:
                    yield event
            is_read = True
        finally:
            if not is_read:
                await asyncio.shield(self._serving.cancel(part.info.run_id, owner=owner))

    async def forget(self, response_ids: Sequence[str], owner: str) -> None:
        """Delete the runs of these responses that have ended."""
        for response_id in response_ids:
            run_id = response_id.split("_")[1]
            with suppress(RunNotFoundError, RunBusyError):
                if (await self._serving.run(run_id, owner=owner)).phase == "ended":
                    await self._serving.delete(run_id, owner=owner)

    async def complete(self, question: ResponseQuestion, request: Request) -> dict[str, Any]:
        """Return the complete response to a question, and delete its run.

        Raises:
            RequestRefusedError: The question cannot be answered, or the previous response has not ended.
            ClientLeftError: The client disconnected.
        """
        owner = owner_of(request.scope)
        check_model(self._serving, question.agent)
        previous = await self._previous(question, owner)
        if previous is not None and previous.phase != "ended":
            raise RequestRefusedError(
                "the previous response is still in progress", status=409, code="response_in_progress"
            )
        part = await self._part(await self._begin(question, owner), owner)
        try:
            return await while_connected(request.receive, self._final(part, owner))
        except BaseException:
            await asyncio.shield(self._serving.cancel(part.info.run_id, owner=owner))
            raise
        finally:
            await asyncio.shield(self.forget([part.head.id], owner))

    async def retrieve(self, request: Request) -> Response | EventStream:
        """Return a response, or with `stream=true` its events after `starting_after`."""
        owner = owner_of(request.scope)
        query = request.query_params
        _check_query(query.keys(), ("stream", "starting_after", "include_obfuscation"))
        part = await self._part(request.path_params["response_id"], owner)
        if query.get("stream", "false").lower() != "true":
            if "starting_after" in query:
                raise ParameterError("starting_after requires stream=true.", param="starting_after")
            return _json(await self._snapshot(part, owner))
        after = query.get("starting_after", "-1")
        if not re.fullmatch(r"-1|[0-9]{1,18}", after):
            raise ParameterError("starting_after must be a sequence number.", param="starting_after")
        return EventStream(self._sent(part, owner, None, after=int(after)))

    async def delete(self, request: Request) -> Response:
        """Delete a response and its run, which is cancelled first if it is active."""
        owner = owner_of(request.scope)
        part = await self._part(request.path_params["response_id"], owner)
        await self._end(part, owner)
        await self._serving.delete(part.info.run_id, owner=owner)
        return _json({"id": part.head.id, "object": "response", "deleted": True})

    async def cancel(self, request: Request) -> Response:
        """Cancel a response."""
        owner = owner_of(request.scope)
        part = await self._part(request.path_params["response_id"], owner)
        await self._end(part, owner)
        return _json(await self._snapshot(await self._part(part.head.id, owner), owner))

    async def input_items(self, request: Request) -> Response:
        """Return a page of a response's input items."""
        owner = owner_of(request.scope)
        part = await self._part(request.path_params["response_id"], owner)
        messages = await self._answers_of(part, owner) if part.after else _new_messages(part.info)
        items = [
            item
            for index, message in enumerate(messages)
            if (item := input_item(message, f"in_{part.head.id.removeprefix('resp_')}_{index}")) is not None
        ]
        return _json(page_of(items, request.query_params))

    # --- the beginning of a response ---

    async def _begin(self, question: ResponseQuestion, owner: str) -> str:
        """Start or continue a run, and return the response id."""
        if question.answers and not question.has_others:
            before = await continue_run(self._serving, question, question.answers, owner)
            if before is not None:
                return f"resp_{before.run_id}_{before.number}"
        previous = await self._previous(question, owner)
        if previous is not None and any(call.kind == "input" for call in previous.waiting):
            text = "\n".join(message.get_text_content() for message in question.messages if message.role == "user")
            await self._serving.answer(previous.run_id, {INPUT: text}, owner=owner)
            return f"resp_{previous.run_id}_{previous.number}"
        if any(isinstance(answer, bool) for answer in question.answers.values()):
            raise RequestRefusedError(
                "no response is waiting for this approval, or the input contains items other than answers",
                status=409,
                code="not_waiting",
            )
        messages = _with_names(question, previous)
        if not messages:
            raise ParameterError("input is empty.", param="input")
        waiting = await waiting_run(self._serving, question.answers, owner) if question.answers else None
        run_id = await self._serving.start(
            question.agent,
            messages,
            owner=owner,
            session=question.conversation,
            config=question.config,
            client_tools=question.client_tools,
            output=question.output,
            continues=previous.run_id if previous else "",
        )
        if waiting is not None:  # replaced by the new run
            await self._serving.cancel(waiting.run_id, owner=owner)
        return f"resp_{run_id}"

    async def _previous(self, question: ResponseQuestion, owner: str) -> RunInfo | None:
        if question.conversation:
            return await self._conversations.last_run(question.conversation, owner)
        if not question.previous:
            return None
        try:
            return (await self._part(question.previous, owner)).info
        except RequestRefusedError:
            raise ParameterError(
                f"Previous response with id {question.previous[:60]!r} not found.",
                param="previous_response_id",
                code="previous_response_not_found",
                status=404,
            ) from None

    async def _part(self, response_id: str, owner: str) -> _Part:
        match = _ID.fullmatch(response_id)
        if match is None:
            raise _not_found(response_id)
        run_id, after = match[1], int(match[2] or 0)
        try:
            info = await self._serving.run(run_id, owner=owner)
        except RunNotFoundError:
            raise _not_found(response_id) from None
        head = ResponseHead(
            id=response_id,
            run_id=run_id,
            model=info.agent,
            created=int(info.began),
            echo=_echo_of(info),
        )
        part = _Part(head=head, after=after, info=info)
        return await self._later_part(part, owner) if after else part

    async def _later_part(self, part: _Part, owner: str) -> _Part:
        """Complete a part that begins with an answer by adding the usage and message count of the run before it."""
        previous, number = part.head.id.partition("_")[0] + f"_{part.info.run_id}", 0
        async with closing(self._serving.attach(part.info.run_id, owner=owner)) as events:
            async for number, event in events:
                if event.depth == 0 and isinstance(event.event, RunFinished):
                    if number == part.after:
                        head = replace(part.head, previous=previous, spent=event.event.usage)
                        return replace(part, head=head, messages_before=len(event.event.messages))
                    previous = f"resp_{part.info.run_id}_{number}"
                if number >= part.after:
                    break
        raise _not_found(part.head.id)

    # --- the events of a response ---

    async def _changes(self, part: _Part, owner: str) -> AsyncIterator[Change]:
        async with closing(self._numbered_changes(part, owner)) as changes:
            async for _, change in changes:
                if change is not None:
                    yield change

    async def _numbered_changes(self, part: _Part, owner: str) -> AsyncIterator[tuple[int, Change | None]]:
        """Yield each change with the number of its event, and None after the changes of each event."""
        fold = ItemFold([tool["name"] for tool in part.info.request.get("client_tools") or ()])
        async with closing(self._serving.attach(part.info.run_id, after=part.after, owner=owner)) as events:
            async for numbered in events:
                for change in fold.feed(numbered.event):
                    if isinstance(change, AnswerEnded):
                        change = replace(change, ended=await self._end_time(part, change, owner))  # noqa: PLW2901
                    yield numbered.number, change
                if fold.is_over:
                    return
                yield numbered.number, None
        raise RequestRefusedError("the run ended without a response", status=500, code="server_error")

    async def _end_time(self, part: _Part, change: AnswerEnded, owner: str) -> float | None:
        """Return the time at which the run ended, or None if it only paused, since the record has no pause times."""
        if isinstance(change.end, RunFinished) and change.end.stop_reason in ("approval_needed", "input_needed"):
            return None
        info = part.info
        if info.phase != "ended":
            with suppress(RunNotFoundError):  # deleted while it was read
                info = await self._serving.run(info.run_id, owner=owner)
        return info.changed if info.phase == "ended" else None

    async def _sent(self, part: _Part, owner: str, finish: Any, *, after: int = -1) -> AsyncIterator[bytes]:
        async with closing(self._events(part, owner, finish, after=after)) as events:
            async for event in events:
                yield _sse(event)
        yield b"data: [DONE]\n\n"

    async def _events(self, part: _Part, owner: str, finish: Any, *, after: int = -1) -> AsyncIterator[dict[str, Any]]:
        stream = ResponseStream(part.head, after=after)
        try:
            for event in stream.begin():
                yield event
            async with closing(self._changes(part, owner)) as changes:
                async for change in changes:
                    for event in stream.feed(change):
                        yield event
            if finish is not None:
                await finish()
        except Exception as error:
            # The status has been sent already, so the error goes into the stream.
            refusal = refusal_of(error)
            yield stream.fail(error_object(refusal))
            if refusal.code == "internal":
                raise  # the error text refers to the log

    async def _final(self, part: _Part, owner: str) -> dict[str, Any]:
        stream = ResponseStream(part.head)
        async for change in self._changes(part, owner):
            for _ in stream.feed(change):
                pass
        assert stream.final is not None  # noqa: S101 - the changes have an end
        return stream.final

    async def _snapshot(self, part: _Part, owner: str) -> dict[str, Any]:
        """Return the current state of a response without waiting for its end."""
        if part.info.phase not in ("queued", "running"):
            return await self._final(part, owner)
        stream = ResponseStream(part.head)
        with suppress(TimeoutError):  # the latest entries of a record may have no event
            async with asyncio.timeout(_SNAPSHOT_S), closing(self._numbered_changes(part, owner)) as changes:
                async for number, change in changes:
                    for _ in stream.feed(change) if change is not None else ():
                        pass
                    if stream.final is not None:
                        return stream.final
                    if number >= part.info.number:
                        break
        status = "queued" if part.info.phase == "queued" else "in_progress"
        return response_object(part.head, status=status, output=stream.output)

    async def _end(self, part: _Part, owner: str) -> None:
        """Cancel a run, and wait until it has ended."""
        if part.info.phase == "ended":
            return
        await self._serving.cancel(part.info.run_id, owner=owner)
        async with closing(self._serving.attach(part.info.run_id, after=part.info.number, owner=owner)) as events:
            async for _, event in events:
                is_pause = isinstance(event.event, RunFinished) and event.event.stop_reason.endswith("_needed")
                if event.depth == 0 and isinstance(event.event, RunFinished | RunFailed) and not is_pause:
                    return

    async def _answers_of(self, part: _Part, owner: str) -> list[Message]:
        """Return the tool results with which a part of a run began."""
        results: list[Message] = []
        async with closing(self._serving.attach(part.info.run_id, after=part.after, owner=owner)) as events:
            async for number, event in events:
                if event.depth == 0 and isinstance(event.event, ToolFinished):
                    message = event.event.message
                    outer = outer_id(event.event.call_id, part.info.run_id)
                    results.append(message.replace(extra={"function_id": outer}))
                elif isinstance(event.event, TurnFinished | RunFinished) or number >= part.info.number:
                    break
        return results


def _with_names(question: ResponseQuestion, previous: RunInfo | None) -> Sequence[Message]:
    """Complete a request's messages with its instructions, the fields to echo, and the names of answered calls."""
    calls = {}
    for message in previous.response if previous else ():
        if message.function_call is not None:
            calls[message.function_id] = message.function_call.name
    messages = []
    for message in question.messages:
        call_id, run_id = split_id(message.function_id or "")
        if message.role == "function" and previous is not None and run_id == previous.run_id and call_id in calls:
            messages.append(message.replace(name=calls[call_id], extra={"function_id": call_id}))
        else:
            messages.append(message)
    first = next((index for index, message in enumerate(messages) if message.role != "system"), None)
    if first is not None:
        extra = {**(messages[first].extra or {}), ECHO: dict(question.echo)}
        messages[first] = messages[first].replace(extra=extra)
    if question.instructions and not (previous and _echo_of(previous).get("instructions") == question.instructions):
        messages.insert(0, Message("system", question.instructions))
    return messages


def _echo_of(info: RunInfo) -> dict[str, Any]:
    for message in reversed(info.messages):
        echo = (message.extra or {}).get(ECHO)
        if isinstance(echo, dict):
            return echo
    return {}


def _new_messages(info: RunInfo) -> Sequence[Message]:
    """Return the messages from the request that started a run, without the earlier conversation."""
    marked = [index for index, message in enumerate(info.messages) if ECHO in (message.extra or {})]
    return info.messages[marked[-1] :] if marked else [one for one in info.messages if one.role != "system"]


def _not_found(response_id: str) -> RequestRefusedError:
    return RequestRefusedError(f"Response with id {response_id[:60]!r} not found.", status=404, code="not_found")


def _check_query(names: Any, known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ParameterError(f"Unknown parameter: {name[:60]!r}.", param=name[:60], code="unknown_parameter")


def _sse(event: dict[str, Any]) -> bytes:
    kind: str = event["type"]
    return f"event: {kind}\ndata: ".encode() + write_json(event) + b"\n\n"


def _json(value: dict[str, Any]) -> Response:
    return Response(write_json(value), media_type="application/json")
