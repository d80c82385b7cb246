"""Start, continue, follow and stop runs for AG-UI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ag_ui.core import PROTOCOL_VERSION
from starlette.requests import Request
from starlette.responses import Response

from jackfield.errors import RunNotFoundError
from jackfield.servers import RequestRefusedError, owner_of, read_object, refusal_of, write_json
from jackfield.streams import closing
from jackfield_ag_ui.ending import error_event, read_answer
from jackfield_ag_ui.history import Wire
from jackfield_ag_ui.request import Question, read_request, read_thread
from jackfield_ag_ui.stream import EventFold, stable_id
from jackfield_serving import INPUT, EventStream, NotWaitingError, RunInfo, Serving, read_disconnect


@dataclass(frozen=True, kw_only=True)
class _Following:
    """A run followed by a request.

    Attributes:
        run_id, owner: The run's id and owner.
        fold: The run's events so far.
        after: The number of the last event in `fold`, or None if no more events will follow.
        shows_history: True to send all messages first.
        is_left: True to cancel the run when the client disconnects.
    """

    run_id: str
    owner: str
    fold: EventFold
    after: int | None = 0
    shows_history: bool = False
    is_left: bool = False


class Runs:
    """Request handlers for runs. An AG-UI thread is a session.

    Args:
        serving: The agents and their runs.
        is_left: True to cancel a run when its client disconnects, unless the request says otherwise.
    """

    def __init__(self, serving: Serving, *, is_left: bool = False) -> None:
        self._serving = serving
        self._is_left = is_left

    async def run(self, request: Request) -> EventStream:
        """Start a run, or continue one with answers, and stream its events."""
        agent, is_left = self._agent_of(request), read_disconnect(request.query_params, cancels=self._is_left)
        question = read_request(read_object(await request.body()))
        owner = owner_of(request.scope)
        if question.resume:
            following = await self._resume(agent, question, owner, is_left=is_left)
        else:
            continued = await self._continue(agent, question, owner, is_left=is_left)
            if continued is None:
                continued = await self._start(agent, question, owner, is_left=is_left)
            following = continued
        return EventStream(self._pieces(following, question))

    async def connect(self, request: Request) -> EventStream:
        """Send a thread's messages so far, then follow its latest run."""
        agent = self._agent_of(request)
        question = read_request(read_object(await request.body()))
        if question.resume:
            raise RequestRefusedError(
                "resume: /connect does not accept responses to interrupts; send them to the agent's URL "
                "without /connect"
            )
        owner = owner_of(request.scope)
        info = await self._latest(agent, question.thread, owner)
        if info is None:
            raise _no_thread(question.thread)
        if info.phase in ("queued", "running"):
            fold = EventFold(info.run_id, _tools_of(info))
            following = _Following(run_id=info.run_id, owner=owner, fold=fold, shows_history=True)
        else:
            fold = await self._replay(info, owner)
            following = _Following(run_id=info.run_id, owner=owner, fold=fold, after=None, shows_history=True)
        return EventStream(self._pieces(following, question))

    async def stop(self, request: Request) -> Response:
        """Cancel a thread's latest run."""
        agent, owner = self._agent_of(request), owner_of(request.scope)
        thread = read_thread(read_object(await request.body()))
        info = await self._latest(agent, thread, owner)
        if info is None:
            raise _no_thread(thread)
        await self._serving.cancel(info.run_id, owner=owner)
        return Response(write_json({"threadId": thread}), media_type="application/json")

    # --- the beginning of a run ---

    async def _start(self, agent: str, question: Question, owner: str, *, is_left: bool) -> _Following:
        if not any(message.role != "system" for message in question.messages):
            raise RequestRefusedError("messages must not be empty: send at least one message")
        latest = await self._latest(agent, question.thread, owner)
        if latest is not None and latest.phase == "waiting":
            if any(call.kind != "client_tool" for call in latest.waiting):
                raise RequestRefusedError(
                    "this thread is waiting for responses to its interrupts: before starting "
                    "a new run, send the responses in `resume` or POST to …/stop",
                    status=409,
                    code="interrupted",
                )
            await self._end(latest, owner)  # the new run contains its whole conversation
        run_id = await self._serving.start(
            agent,
            question.messages,
            owner=owner,
            session=question.thread,
            client_tools=question.client_tools,
        )
        fold = EventFold(run_id, [tool["name"] for tool in question.client_tools])
        return _Following(run_id=run_id, owner=owner, fold=fold, is_left=is_left)

    async def _continue(self, agent: str, question: Question, owner: str, *, is_left: bool) -> _Following | None:
        """Continue the run that waits for results of front-end tools.

        Return None if no run waits for these results, or if the request otherwise differs from the run's own; the
        request then starts a new run.
        """
        if question.has_news:
            return None
        info = await self._waiting_run(agent, question.thread, list(question.results), owner)
        if info is None:
            return None
        fold = await self._replay(info, owner)
        results, answers = _results_for(fold, question)
        if not results or not _is_same(info, fold, question, [result["id"] for result in results.values()]):
            return None
        try:
            await self._serving.answer(info.run_id, answers, owner=owner)
        except NotWaitingError:
            return None
        fold.begin_part()
        fold.answer(results)
        return _Following(run_id=info.run_id, owner=owner, fold=fold, after=info.number, is_left=is_left)

    async def _resume(self, agent: str, question: Question, owner: str, *, is_left: bool) -> _Following:
        """Continue the run that waits for answers to interrupts."""
        info = await self._waiting_run(agent, question.thread, list(question.resume), owner)
        if info is None:
            raise RequestRefusedError(
                "resume: no run in this thread is waiting for these interrupts; they may already have been resolved",
                status=409,
                code="not_waiting",
            )
        fold = await self._replay(info, owner)
        known = {message["id"] for message in fold.messages}
        if question.messages and question.messages[-1].role == "user" and question.message_ids[-1] not in known:
            raise RequestRefusedError(
                "messages: respond to the interrupts first, and send new messages in the next run"
            )
        answers: dict[str, Any] = {}
        for index, (identity, payload) in enumerate(question.resume.items()):
            _, waiting = fold.find_waiting(identity) or ("", None)
            if waiting is None or not waiting.interrupt:
                raise RequestRefusedError(
                    f"resume.{index}.interruptId: the run is not waiting for this interrupt, which was "
                    "already resolved",
                    status=409,
                    code="not_waiting",
                )
            answers[waiting.call_id] = read_answer(waiting, payload, f"resume.{index}")
        results, given = _results_for(fold, question)
        answers.update(given)
        if answers.get(INPUT, "") is None:  # the person leaves the conversation
            await self._serving.cancel(info.run_id, owner=owner)
        else:
            await self._serving.answer(info.run_id, answers, owner=owner)
        fold.begin_part()
        fold.answer(results)
        return _Following(
            run_id=info.run_id, owner=owner, fold=fold, after=info.number, shows_history=True, is_left=is_left
        )

    async def _waiting_run(self, agent: str, thread: str, identities: list[str], owner: str) -> RunInfo | None:
        """Find a thread's waiting run by the ids of its calls or interrupts, or return None."""
        run_ids = {identity.rpartition(".")[2] for identity in identities}
        if len(run_ids) != 1:
            return None
        try:
            info = await self._serving.run(run_ids.pop(), owner=owner)
        except RunNotFoundError:
            return None
        return info if (info.agent, info.session, info.phase) == (agent, thread, "waiting") else None

    async def _latest(self, agent: str, thread: str, owner: str) -> RunInfo | None:
        """Return a thread's latest run if this agent made it, otherwise None."""
        for run in await self._serving.runs(owner=owner, session=thread, limit=1):
            if run.agent == agent:
                return await self._serving.run(run.run_id, owner=owner)
        return None

    async def _end(self, info: RunInfo, owner: str) -> None:
        """Cancel a waiting run, and wait until it has ended."""
        await self._serving.cancel(info.run_id, owner=owner)
        async with closing(self._serving.attach(info.run_id, after=info.number, owner=owner)) as events:
            async for _ in events:
                pass

    # --- events ---

    async def _replay(self, info: RunInfo, owner: str) -> EventFold:
        """Fold the past events of a run that has ended or is waiting."""
        fold = EventFold(info.run_id, _tools_of(info))
        async with closing(self._serving.attach(info.run_id, owner=owner)) as events:
            async for _, event in events:
                for _ in fold.feed(event):
                    pass
        return fold

    async def _pieces(self, following: _Following, question: Question) -> AsyncIterator[bytes]:
        try:
            started: Wire = {"type": "RUN_STARTED", "threadId": question.thread, "runId": question.run}
            parent = {"parentRunId": question.parent} if question.parent else {}
            yield _sse({**started, "protocolVersion": PROTOCOL_VERSION, **parent})
            async with closing(self._events(following, question)) as events:
                async for event in events:
                    yield _sse(event)
        except Exception as error:
            # The status has been sent already, so the error goes into the stream.
            refusal = refusal_of(error)
            yield _sse(error_event(refusal))
            if refusal.code == "internal":
                raise  # the error text refers to the log

    async def _events(  # noqa: C901 - the whole event sequence in order
        self, following: _Following, question: Question
    ) -> AsyncIterator[Wire]:
        """Yield a run's AG-UI events."""
        fold, after, shows_history = following.fold, following.after, following.shows_history
        while after is not None:
            if shows_history and after:
                shows_history = False
                for event in _history_of(fold):
                    yield event
            numbered = self._serving.attach(
                following.run_id, after=after, owner=following.owner, cancel_on_leave=following.is_left
            )
            async with closing(numbered):
                async for number, placed in numbered:
                    after = number
                    events = list(fold.feed(placed))
                    if shows_history and fold.messages:
                        shows_history = False
                        events = [*_history_of(fold), *events]
                    for event in events:
                        yield event
            # A run asks for approvals first, so the request may already have the results of its other calls.
            results, answers = _results_for(fold, question)
            if not answers:
                break
            await self._serving.answer(following.run_id, answers, owner=following.owner)
            fold.answer(results)
        if shows_history:
            for event in _history_of(fold):
                yield event
        for event in fold.finish(question.thread, question.run):
            yield event

    # --- requests apart from their bodies ---

    def _agent_of(self, request: Request) -> str:
        agent: str = request.path_params["agent"]
        if agent not in self._serving.agents:
            names = ", ".join(self._serving.agents)
            raise RequestRefusedError(
                f"no agent named {agent[:60]!r}; available: {names}", status=404, code="agent_not_found"
            )
        return agent


def _tools_of(info: RunInfo) -> list[str]:
    return [tool["name"] for tool in info.request.get("client_tools") or ()]


def _history_of(fold: EventFold) -> list[Wire]:
    state = [] if fold.state is None else [{"type": "STATE_SNAPSHOT", "snapshot": fold.state}]
    return [fold.snapshot(), *state]


def _results_for(fold: EventFold, question: Question) -> tuple[dict[str, Wire], dict[str, str]]:
    """Return the pending results that the request contains.

    Returns:
        The tool messages by our call ids, and the answers to pass to the run.
    """
    messages: dict[str, Wire] = {}
    answers: dict[str, str] = {}
    for identity, result in question.results.items():
        own, waiting = fold.find_waiting(identity) or ("", None)
        if waiting is not None and waiting.kind == "client_tool" and isinstance(result["content"], str):
            messages[own], answers[waiting.call_id] = result, _result_of(result)
    return messages, answers


def _result_of(result: Mapping[str, Any]) -> str:
    """Format a front-end tool's result for the model."""
    text: str = result["content"]
    return f"{text}\nError: {result['error']}".strip() if result.get("error") else text


def _is_same(info: RunInfo, fold: EventFold, question: Question, news: Sequence[str]) -> bool:
    """Return True if the request has the run's messages, tools, state and context, so the run can continue.

    Args:
        info, fold: The run and its events.
        question: The request.
        news: The ids of the request's messages that the run does not have yet.
    """
    ids = [
        stable_id(message["id"])
        for message in fold.messages
        if message["role"] != "reasoning" and "subagentRunId" not in message
    ]
    state = question.note["state"]
    return (
        [stable_id(one) for one in question.message_ids if one not in news] == ids
        and list(info.request.get("client_tools") or ()) == list(question.client_tools)
        and (state == fold.state or (state is None and not fold.state))
        and question.note["context"] == fold.note.get("context", [])
    )


def _no_thread(thread: str) -> RequestRefusedError:
    return RequestRefusedError(f"this agent has no thread {thread!r}", status=404, code="not_found")


def _sse(event: Wire) -> bytes:
    return b"data: " + write_json(event) + b"\n\n"
