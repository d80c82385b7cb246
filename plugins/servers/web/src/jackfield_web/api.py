"""Implement the page's API: agents, conversations, runs and their events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from jackfield.config import Adjustable
from jackfield.events import RunFailed
from jackfield.messages import ContentItem, Message
from jackfield.servers import RequestRefusedError, failure_of, owner_of, read_object, write_json
from jackfield.streams import closing
from jackfield.tools import Denial
from jackfield_serving import Answer, EventStream, Numbered, RunInfo, Serving
from jackfield_web.carrying import ExportedConversation, export_conversation, import_conversation
from jackfield_web.citedpages import draw_citation, read_citation
from jackfield_web.wire import Wire, question_in, wire_of

_Body = TypeVar("_Body", bound=BaseModel)
_MOST_RUNS = 1000
_MOST_REASON_CHARS = 2000
_MOST_FIELDS = 200
_MOST_HITS = 30
_MOST_SEARCH_CHARS = 200
# Browsers that open the URL download the file and run nothing in it.
_DOWNLOAD = {"content-disposition": 'attachment; filename="conversation.json"', "x-content-type-options": "nosniff"}


class _File(BaseModel):
    """A file attached by the user, as a `data:` URI."""

    model_config = ConfigDict(extra="forbid")

    kind: str = Field(pattern="^(image|audio|video|file)$")
    address: str = Field(pattern="^data:")


class _Question(BaseModel):
    """A question and its conversation."""

    model_config = ConfigDict(extra="forbid")

    agent: str
    text: str
    files: list[_File] = []
    conversation: str = Field(min_length=1, max_length=100)
    continues: str = ""
    settings: dict[Adjustable, int | float] = {}
    model: str = Field(default="", max_length=200)


class _Title(BaseModel):
    """A conversation's new title."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=1000)


class _Denial(BaseModel):
    """A rejected call, with the reason for the model."""

    model_config = ConfigDict(extra="forbid")

    denied: str = Field(max_length=_MOST_REASON_CHARS)


class _Form(BaseModel):
    """The values entered in a form."""

    model_config = ConfigDict(extra="forbid")

    values: dict[str, bool | int | float | str | list[str]] = Field(max_length=_MOST_FIELDS)


class _Answers(BaseModel):
    """Answers to a run's questions, by call id."""

    model_config = ConfigDict(extra="forbid")

    answers: dict[str, bool | str | _Denial | _Form] = Field(min_length=1)


class Api:
    """Request handlers for the page.

    Args:
        serving: The agents and their runs.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def agents(self, _: Request) -> Response:
        """Return the available agents."""
        agents = [
            {
                "name": name,
                "description": agent.description,
                "model": agent.model,
                "models": agent.models,
                "images": agent.images,
                "tools": agent.tools,
                "suggestions": agent.suggestions,
                "adjustable": agent.adjustable,
            }
            for name, agent in self._serving.agents.items()
        ]
        return _json({"agents": agents})

    async def conversations(self, request: Request) -> Response:
        """Return the user's conversations, newest first."""
        sessions = await self._serving.sessions(owner=owner_of(request.scope), limit=_MOST_RUNS)
        return _json(
            {
                "conversations": [
                    {"id": one.session, "title": one.title, "agent": one.agent, "changed": one.changed}
                    for one in sessions
                    if one.session
                ]
            }
        )

    async def conversation(self, request: Request) -> Response:
        """Return a conversation's runs, oldest first, including all events of those that have ended.

        `?limit=20` returns only the last 20 runs, and `?before=` only those before a given run. `earlier` counts the
        runs that precede the first one returned.
        """
        owner = owner_of(request.scope)
        session = request.path_params["conversation"]
        ids = [run.run_id for run in await self._serving.runs(owner=owner, session=session, limit=_MOST_RUNS)][::-1]
        before = request.query_params.get("before", "")
        if before in ids:
            ids = ids[: ids.index(before)]
        limit = request.query_params.get("limit", str(_MOST_RUNS))
        if not limit.isdecimal() or not 0 < int(limit[:6]) <= _MOST_RUNS:
            raise RequestRefusedError(f"`limit` must be a number from 1 to {_MOST_RUNS}")
        runs = [await self._run(run_id, owner) for run_id in ids[-int(limit) :]]
        return _json({"id": session, "runs": runs, "earlier": len(ids) - len(runs)})

    async def rename_conversation(self, request: Request) -> Response:
        """Set a conversation's title."""
        body = await _read(request, _Title)
        await self._serving.rename(request.path_params["conversation"], body.title, owner=owner_of(request.scope))
        return Response(status_code=204)

    async def export_conversation(self, request: Request) -> Response:
        """Return a conversation as a file."""
        owner, session = owner_of(request.scope), request.path_params["conversation"]
        summaries = await self._serving.runs(owner=owner, session=session, limit=_MOST_RUNS)
        runs = [await self._serving.run(one.run_id, owner=owner) for one in reversed(summaries)]
        title = summaries[-1].title if summaries else ""
        file = export_conversation(title, runs).model_dump(exclude_defaults=True)
        text = json.dumps(file, ensure_ascii=False, indent=1).encode("utf-8", "replace")
        return Response(text, media_type="application/json", headers=_DOWNLOAD)

    async def import_conversation(self, request: Request) -> Response:
        """Store an exported conversation as a new one, and return its id."""
        file = await _read(request, ExportedConversation)
        session = await import_conversation(self._serving, file, owner=owner_of(request.scope))
        return _json({"id": session}, 201)

    async def search(self, request: Request) -> Response:
        """Return the conversations that contain all search words."""
        text = request.query_params.get("text", "")[:_MOST_SEARCH_CHARS]
        hits = await self._serving.search(text, owner=owner_of(request.scope), limit=_MOST_HITS)
        return _json({"hits": [{"id": hit.session, "run": hit.run_id, "excerpt": hit.excerpt} for hit in hits]})

    async def delete_conversation(self, request: Request) -> Response:
        """Delete a conversation and its runs, cancelling any that are active."""
        owner = owner_of(request.scope)
        session = request.path_params["conversation"]
        for run in await self._serving.runs(owner=owner, session=session, limit=_MOST_RUNS):
            if run.phase != "ended":
                await self._serving.cancel(run.run_id, owner=owner)
                async for _ in self._serving.attach(run.run_id, owner=owner):
                    pass
            await self._serving.delete(run.run_id, owner=owner)
        return Response(status_code=204)

    async def start(self, request: Request) -> Response | EventStream:
        """Start a run and return its id; with `?follow`, stream its events instead."""
        question = await _read(request, _Question)
        items = [ContentItem(text=question.text)] if question.text.strip() else []
        items += [ContentItem(**{file.kind: file.address}) for file in question.files]
        if not items:
            raise RequestRefusedError("the question is empty: enter some text or attach a file")
        content = question.text if len(items) == 1 and items[0].text is not None else items
        info = self._serving.agents.get(question.agent)
        if info and (foreign := question.settings.keys() - info.adjustable.keys()):
            raise RequestRefusedError(f"agent {question.agent!r} does not allow changes to {min(foreign)}")
        run_id = await self._serving.start(
            question.agent,
            [Message("user", content)],
            owner=owner_of(request.scope),
            session=question.conversation,
            continues=question.continues,
            takes_questions=True,
            model=question.model,
            config={str(name): value for name, value in question.settings.items()} or None,
        )
        if "follow" in request.query_params:
            return self._follow(run_id, 0, owner_of(request.scope))
        return _json({"run": run_id}, 201)

    async def events(self, request: Request) -> EventStream:
        """Stream a run's events after a given number until it ends or waits. A disconnect does not affect the run."""
        run_id, owner = request.path_params["run_id"], owner_of(request.scope)
        after = request.query_params.get("after", "0")
        if not after.isdecimal() or len(after) > 20:
            raise RequestRefusedError("`after` must be an event number")
        await self._serving.run(run_id, owner=owner)  # an unknown run is refused before the stream begins
        return self._follow(run_id, int(after), owner)

    async def record(self, request: Request) -> Response:
        """Return all events of a run that has ended or is waiting, for inspection."""
        run = await self._serving.run(request.path_params["run_id"], owner=owner_of(request.scope))
        if run.phase in ("queued", "running"):
            raise RequestRefusedError("the run has not finished yet: try again later")
        return _json({"events": await self._events(run.run_id, owner_of(request.scope))})

    async def run(self, request: Request) -> Response:
        """Return a run's phase and the ids of its pending calls."""
        run = await self._serving.run(request.path_params["run_id"], owner=owner_of(request.scope))
        return _json({"phase": run.phase, "waiting": [one.call_id for one in run.waiting]})

    async def citation_page(self, request: Request) -> Response:
        """Return an image of the cited page, or null if the page can only be shown as text."""
        run_id, owner = request.path_params["run_id"], owner_of(request.scope)
        number, place = request.path_params["number"], request.path_params["place"]
        citation = await read_citation(self._serving, run_id, number, place, owner=owner)
        image = await draw_citation(self._serving, await self._serving.run(run_id, owner=owner), citation)
        return _json({"image": image}, headers={"cache-control": "no-store"})

    async def answer(self, request: Request) -> Response:
        """Answer a run's pending questions."""
        body = await _read(request, _Answers)
        answers = {call_id: _answer_in(answer) for call_id, answer in body.answers.items()}
        await self._serving.answer(request.path_params["run_id"], answers, owner=owner_of(request.scope))
        return Response(status_code=204)

    async def cancel(self, request: Request) -> Response:
        """Cancel a run."""
        await self._serving.cancel(request.path_params["run_id"], owner=owner_of(request.scope))
        return Response(status_code=204)

    def _follow(self, run_id: str, after: int, owner: str) -> EventStream:
        events = self._serving.attach(run_id, after=after, owner=owner)
        return EventStream(self._stream(events, run_id, owner))

    async def _run(self, run_id: str, owner: str) -> Wire:
        run = await self._serving.run(run_id, owner=owner)
        events = await self._events(run_id, owner) if run.phase == "ended" else []
        return {
            "id": run.run_id,
            "agent": run.agent,
            "phase": run.phase,
            "continues": run.request.get("continues", ""),
            "question": question_in(run.messages),
            "events": events,
            "waiting": await self._waiting(run),
        }

    async def _events(self, run_id: str, owner: str) -> list[Wire]:
        wires = [wire_of(number, event) async for number, event in self._serving.attach(run_id, owner=owner)]
        return [wire for wire in wires if wire]

    async def _stream(self, events: AsyncIterator[Numbered], run_id: str, owner: str) -> AsyncIterator[bytes]:
        async with closing(events):
            async for numbered in events:
                if wire := wire_of(*numbered):
                    yield b"data: " + write_json(wire) + b"\n\n"
        run = await self._serving.run(run_id, owner=owner)
        error = str(failure_of(RunFailed(run.error, run.error_kind))) if run.error else ""
        end = {"type": "end", "phase": run.phase, "reason": run.stop_reason, "error": error}
        yield b"data: " + write_json({**end, "waiting": await self._waiting(run)}) + b"\n\n"

    async def _waiting(self, run: RunInfo) -> list[Wire]:
        """Return a run's pending questions, including the file changes that its calls would make."""
        previews = await self._serving.previews(run)
        return [
            {
                "call_id": one.call_id,
                "kind": one.kind,
                "name": one.call.name,
                "arguments": one.call.arguments,
                "agent": one.agent,
                "in_doubt": one.in_doubt,
                "diff": previews.get(one.call_id, ""),
            }
            for one in run.waiting
        ]


def _answer_in(answer: bool | str | _Denial | _Form) -> Answer:
    match answer:
        case _Denial():
            return Denial(answer.denied)
        case _Form():
            return answer.values
    return answer


async def _read(request: Request, form: type[_Body]) -> _Body:
    """Validate a request body.

    Raises:
        RequestRefusedError: The body is invalid.
    """
    try:
        return form.model_validate(read_object(await request.body()))
    except ValidationError as error:
        raise RequestRefusedError(_reason_of(error.errors()[0])) from None


def _reason_of(fault: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in fault["loc"])
    text = str(fault["msg"]).removeprefix("Value error, ")
    return f"{place}: {text}" if place else text


def _json(value: Wire, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(write_json(value), status, headers, media_type="application/json")
