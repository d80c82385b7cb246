"""Serve agents: runs are resources that any client can start, follow, answer and cancel."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from jackfield.agents import Agent
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError, JackfieldError, RunBusyError, RunNotFoundError, StoreError
from jackfield.events import RunEvent, RunStarted, ToolFinished, ToolStarted
from jackfield.messages import Message, Messages, as_messages, with_system_text, without_system_text
from jackfield.plugins import Plugins, default_host
from jackfield.request import GenerateOptions, language_of
from jackfield.stores import RUNNING, Store, load_store
from jackfield.streams import closing
from jackfield.tools import FunctionSchema
from jackfield_records import fork
from jackfield_records.pending import append_failure, append_notes, record_pending
from jackfield_serving.agents import AgentSource, ServedAgent, check_names, serve_agent
from jackfield_serving.clienttools import ClientTools
from jackfield_serving.errors import (
    AgentNotFoundError,
    DrainingError,
    InputTooLargeError,
    NotWaitingError,
    SessionBusyError,
    TooManyRunsError,
)
from jackfield_serving.limits import ServingLimits
from jackfield_serving.live import LiveRun
from jackfield_serving.memory import MemoryStore
from jackfield_serving.numbering import STRIDE, Numbered
from jackfield_serving.reading import RunRecord, read_run, summary_of
from jackfield_serving.recorded import RecordedEvents
from jackfield_serving.recording import HeldRun, ServedStore
from jackfield_serving.requests import Answer, Request, size_of
from jackfield_serving.views import AgentInfo, RunInfo, RunSummary, SessionInfo

_log = logging.getLogger("jackfield.serving")
_LISTED = 10_000
_RETIRED = 32


class Serving:
    """Runs agents for clients. A run lives until it ends, whoever follows it.

    Use it as an async context manager, in one event loop. Every run is recorded in the store, so that other processes
    with the same store and agents can follow, answer, cancel and continue it. Without a store, runs live in memory.

    Args:
        agents: The agents by their names in the service: objects, paths of agent files, or `module:name`.
        store: Where runs are recorded: a store, the name of an installed one, or a dict of `name` and settings. It
            replaces the stores of the agents. None for memory.
        limits: What the service takes on.
        poll_s: How often runs of other processes are read, if the store does not report changes.
        recover: Continue runs whose process has ended.
        trust: The caller vouches for the agent files.
        host: Where names are looked up.

    Raises:
        ConfigError: An agent cannot be loaded, or the store keeps no content.
        PluginError: The store, or something that an agent needs, is not installed.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentSource],
        *,
        store: str | Mapping[str, object] | Store | None = None,
        limits: ServingLimits = ServingLimits(),  # noqa: B008 - it is frozen
        poll_s: float = 0.1,
        recover: bool = True,
        trust: bool = False,
        host: Plugins | None = None,
    ) -> None:
        check_names(agents)
        self.limits = limits
        self._store = ServedStore(_load_store(store, limits, host), self._note_written)
        self._agents = {
            name: serve_agent(name, source, self._store, host=host, trust=trust) for name, source in agents.items()
        }
        self._poll_s, self._recovers = poll_s, recover
        self._live: dict[str, LiveRun] = {}
        self._retired: deque[LiveRun] = deque()
        self._owners: dict[str, str] = {}
        self._slots = asyncio.Semaphore(limits.runs)
        self._draining = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.drain(0)
        await self._store.inner.aclose()

    # --- agents ---

    @property
    def agents(self) -> Mapping[str, AgentInfo]:
        """The agents by their names."""
        return {name: served.info() for name, served in self._agents.items()}

    # --- runs ---

    async def start(
        self,
        agent: str,
        messages: Messages,
        *,
        owner: str = "",
        session: str = "",
        run_id: str | None = None,
        config: GenerateOptions = None,
        client_tools: Sequence[FunctionSchema] = (),
        output: Mapping[str, object] | None = None,
        continues: str = "",
        deps: Any = None,
    ) -> str:
        """Begin a run, and return its id. Once this returns, the run is recorded, and ends even if this process does.

        Args:
            agent: Its name in the service.
            messages: A question, or a conversation, oldest first.
            owner: The identity that starts the run; only it finds the run again.
            session: The conversation that the run belongs to. It has one run at a time.
            run_id: The id of the run; a new one if None.
            config: Options for the model, as JSON.
            client_tools: The schemas of tools that the client runs. A call pauses the run; `answer` brings its result.
            output: The JSON Schema of the answer.
            continues: A run of this owner whose conversation precedes the messages.
            deps: Passed to the agent's tools while the run is in this process.

        Raises:
            AgentNotFoundError: The service has no such agent.
            RunNotFoundError: There is no run to continue.
            SessionBusyError: A run of the session has not ended.
            TooManyRunsError: The service is full; `retry_after_s` says when to try again.
            InputTooLargeError: The messages, or the conversation before them, are too large.
            ConfigError: The agent does not take these options.
            InvalidMessageError: A message is not valid.
            StoreError: The run cannot be recorded.
        """
        served = self._agent(agent)
        asked = as_messages(messages)
        self._check_room(owner)
        if (size := size_of(asked)) > self.limits.input_bytes:
            raise InputTooLargeError(f"the messages have {size} bytes: send at most {self.limits.input_bytes}")
        tools = tuple(client_tools)
        request = Request(
            owner=owner,
            config=_as_options(config),
            output=output,
            client_tools=tools,
            continues=continues,
        )
        if tools:
            served.with_client_tools(ClientTools(tools, {}))
        before = await self._conversation(continues, owner) if continues else ()
        if session:
            await self._check_session(session, owner)
        history = with_system_text((*before, *asked), served.agent.system_message, first=True)
        run = served.agent.make_run(history, language_of(history))
        run_id = run_id or uuid.uuid4().hex
        hold, stored, entries = await record_pending(
            served.recorder, run.messages, run_id=run_id, session=session, notes=[request.as_note()]
        )
        live = LiveRun(run_id, agent, session, request, entries=entries, limits=self.limits)
        live.deps = deps
        live.publish_start(RunEvent(run_id, 1, served.recorder.agent, 0, RunStarted(run.messages)))
        self._owners[run_id] = owner
        self._drive(served, live, HeldRun(stored, entries, hold))
        return run_id

    async def attach(self, run_id: str, *, after: int = 0, owner: str = "") -> AsyncIterator[Numbered]:
        """Yield the events of a run after a number: recorded ones, then live ones, until it ends or pauses.

        Leaving it, or reading it slowly, changes nothing for the run. A late or slow reader gets longer pieces of text.

        Args:
            run_id: The run.
            after: The number of the last event that the reader has; 0 for none.
            owner: The identity that started the run.

        Raises:
            RunNotFoundError: The owner has no such run.
            StoreError: The record cannot be read.
        """
        await self._check_owner(run_id, owner)
        cursor, started = after, set[str]()
        while True:
            live = self._live.get(run_id)
            batch = None if live is None else live.after(cursor)
            if live is None or batch is None:
                batch, following, is_over = await self._read_recorded(run_id, cursor, live, started)
            else:
                following = batch[-1].number if batch else cursor
                is_over = not batch and live.is_over and live.end is not None
            for numbered in batch:
                _note_calls(numbered.event, started)
                yield numbered
            if is_over:
                return
            if following == cursor:
                await self._wait_for_events(live)
            cursor = following

    async def _read_recorded(
        self, run_id: str, cursor: int, live: LiveRun | None, started: set[str]
    ) -> tuple[list[Numbered], int, bool]:
        """Return the recorded events after a number, up to those that `live` has.

        Returns:
            The events, the number to continue from, and True if there will be no more.
        """
        floor = None if live is None else live.floor
        stored, entries = await self._store.inner.read(run_id)
        recorded = RecordedEvents(stored, cursor, started)
        if floor is not None:
            return list(recorded.feed(entries[: floor // STRIDE])), floor, False
        batch = list(recorded.feed(entries))
        return batch, batch[-1].number if batch else cursor, stored.state != RUNNING

    async def _wait_for_events(self, live: LiveRun | None) -> None:
        if live is None or live.is_over:  # another process has it, or will have it
            await asyncio.sleep(self._poll_s)
        else:
            await live.changed()

    async def answer(self, run_id: str, answers: Mapping[str, Answer], *, owner: str = "") -> None:
        """Answer calls that a run waits for. It continues with the same id, and its numbers go on.

        Args:
            run_id: The run.
            answers: By the ids of `RunInfo.waiting`: True or False for an approval, the result for a client's tool.
                Calls without an answer wait on.
            owner: The identity that started the run.

        Raises:
            RunNotFoundError: The owner has no such run.
            NotWaitingError: The run does not wait for these answers, or another answer came first.
            StoreError: The answers cannot be recorded.
        """
        await self._check_owner(run_id, owner)
        self._check_room(owner)
        if not answers:
            raise NotWaitingError(f"no answers for run {run_id}: name the calls that it waits for")
        try:
            held = await self._take(run_id)
        except RunBusyError:
            raise NotWaitingError(f"run {run_id} does not wait: it is running, or was answered already") from None
        try:
            record = read_run(held.run, held.entries)
            served = self._served(record)
            sorted_answers = record.sort_answers(answers)
            note = sorted_answers.as_note()
            entries = await append_notes(served.recorder, run_id, held.hold, [note])
        except BaseException:
            await self._store.release(run_id, held.hold)
            raise
        self._continue(served, held, entries)

    async def cancel(self, run_id: str, *, owner: str = "") -> None:
        """Cancel a run, with its request to the model and its calls. One that has ended stays as it is.

        Raises:
            RunNotFoundError: The owner has no such run.
            StoreError: The end cannot be recorded.
        """
        await self._check_owner(run_id, owner)
        live = self._live.get(run_id)
        if live is not None and not live.is_over:
            live.cancel.cancel()
            return
        info = await self.run(run_id, owner=owner)
        if info.phase != "waiting":
            return
        held = await self._take(run_id)
        record = read_run(held.run, held.entries)
        self._continue(self._served(record), held, (), cancelled=True)

    async def run(self, run_id: str, *, owner: str = "") -> RunInfo:
        """Return a run: its phase, messages, usage, the calls it waits for, and its end.

        Raises:
            RunNotFoundError: The owner has no such run.
            StoreError: The record cannot be read.
        """
        await self._check_owner(run_id, owner)
        record = await self._read(run_id)
        live = self._live.get(run_id)
        return record.info(is_queued=live is not None and live.is_queued)

    async def runs(
        self, *, owner: str = "", session: str | None = None, agent: str | None = None, limit: int = 100
    ) -> list[RunSummary]:
        """Return the runs of an owner, the newest first.

        Raises:
            StoreError: They cannot be read.
        """
        summaries: list[RunSummary] = []
        for run in await self._store.runs(session=session, limit=_LISTED):
            if len(summaries) == limit:
                break
            if agent not in (None, run.agent) or await self._owner_of(run.run_id) != owner:
                continue
            live = self._live.get(run.run_id)
            summaries.append(summary_of(run, owner=owner, is_queued=live is not None and live.is_queued))
        return summaries

    async def sessions(self, *, owner: str = "", limit: int = 100) -> list[SessionInfo]:
        """Return the conversations of an owner, the latest first.

        Raises:
            StoreError: They cannot be read.
        """
        sessions: dict[str, SessionInfo] = {}
        for run in await self.runs(owner=owner, limit=_LISTED):
            if not run.session:
                continue
            latest = sessions.get(run.session) or SessionInfo(
                session=run.session, agent=run.agent, last_run=run.run_id, changed=run.changed
            )
            sessions[run.session] = replace(latest, runs=latest.runs + 1, title=run.title, began=run.began)
        return list(sessions.values())[:limit]

    async def fork(self, run_id: str, *, at: int | None = None, owner: str = "") -> str:
        """Copy a run up to a recorded event, and return the id of the copy, which continues from there.

        Args:
            run_id: The run.
            at: The number of the last event of the copy; None for all that is recorded.
            owner: The identity that started the run.

        Raises:
            RunNotFoundError: The owner has no such run.
            StoreError: The record cannot be read or written.
        """
        await self._check_owner(run_id, owner)
        copy_id = await fork(self._store.inner, run_id, at=None if at is None else max(2, at // STRIDE))
        self._owners[copy_id] = owner
        held = await self._take(copy_id)
        self._continue(self._served(read_run(held.run, held.entries)), held, ())
        return copy_id

    async def delete(self, run_id: str, *, owner: str = "") -> None:
        """Delete a run that is not running.

        Raises:
            RunNotFoundError: The owner has no such run.
            RunBusyError: It is running: cancel it first.
            StoreError: It cannot be deleted.
        """
        await self._check_owner(run_id, owner)
        await self._store.delete(run_id)
        self._live.pop(run_id, None)
        self._owners.pop(run_id, None)

    async def drain(self, seconds: float) -> None:
        """Begin no more runs, let those that are running end, and leave the others to other processes.

        Without a shared store, the others are cancelled.

        Args:
            seconds: How long runs may take to end.
        """
        self._draining = True
        tasks = [live.task for live in self._live.values() if live.task is not None and not live.task.done()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds) if seconds else (set(), tasks)
        for live in list(self._live.values()):
            if live.task is not None and live.task in late:
                self._store.abandon(live.run_id)
                live.task.cancel()
        if late:
            await asyncio.wait(late)

    # --- driving runs ---

    def _drive(self, served: ServedAgent, live: LiveRun, held: HeldRun) -> None:
        self._store.pass_on(held)
        self._live[live.run_id] = live
        live.task = asyncio.create_task(self._run(served, live, held.hold), name=f"jackfield-run-{live.run_id}")

    def _continue(self, served: ServedAgent, held: HeldRun, entries: Iterable[str], *, cancelled: bool = False) -> None:
        held.entries.extend(entries)
        record = read_run(held.run, held.entries)
        live = LiveRun(
            held.run.run_id, served.name, held.run.session, record.request, entries=held.entries, limits=self.limits
        )
        live.answers = record.answers
        live.results.update(record.results)
        if cancelled:
            live.cancel.cancel()
        self._drive(served, live, held)

    async def _run(self, served: ServedAgent, live: LiveRun, hold: int) -> None:
        try:
            async with self._slots:
                live.is_queued = False
                await self._run_agent(served, live)
        except JackfieldError as error:
            await self._note_failure(served, live, hold, error)
        except Exception as error:  # noqa: BLE001 - the run's end; a fault of an agent must not be silent
            _log.warning("run %s failed", live.run_id, exc_info=True)
            await self._note_failure(served, live, hold, error)
        finally:
            await self._store.release(live.run_id, hold)
            live.close()
            self._retire(live)

    def _retire(self, live: LiveRun) -> None:
        """Keep the events of the latest runs that have ended, for readers that are about to read their end."""
        if live.end is not None:
            self._retired.append(live)
            if len(self._retired) <= _RETIRED:
                return
            live = self._retired.popleft()
        if self._live.get(live.run_id) is live:
            del self._live[live.run_id]

    async def _run_agent(self, served: ServedAgent, live: LiveRun) -> None:
        request = live.request
        agent: Agent[Any] = served.agent
        if request.client_tools:
            agent = served.with_client_tools(ClientTools(request.client_tools, live.results))
        options: dict[str, Any] = {"output": request.output} if request.output else {}
        events = agent.astream(
            (),
            run_id=live.run_id,
            resume=dict(live.answers.approvals) or True,
            cancel=live.cancel,
            deps=live.deps,
            config=request.config,
            **options,
        )
        timeout = (
            asyncio.get_running_loop().call_later(self.limits.run_s, live.cancel.cancel) if self.limits.run_s else None
        )
        try:
            async with closing(events):
                async for event in events:
                    live.publish(event)
        finally:
            if timeout is not None:
                timeout.cancel()

    async def _note_failure(self, served: ServedAgent, live: LiveRun, hold: int, error: Exception) -> None:
        """Record that a run could not begin; the agent has recorded every other failure."""
        if live.end is not None or isinstance(error, StoreError):
            return
        with contextlib.suppress(StoreError):
            await append_failure(served.recorder, live.run_id, hold, error)

    def _note_written(self, run_id: str, entries: Sequence[str]) -> None:
        live = self._live.get(run_id)
        if live is not None:
            live.note_written(entries)

    # --- reading ---

    async def _take(self, run_id: str) -> HeldRun:
        """Hold a run, and read it.

        Raises:
            RunBusyError: It is running.
            StoreError: It cannot be read.
        """
        hold = await self._store.inner.hold(run_id)
        try:
            stored, entries = await self._store.inner.read(run_id)
        except BaseException:
            await self._store.inner.release(run_id, hold)
            raise
        return HeldRun(stored, entries, hold)

    async def _read(self, run_id: str) -> RunRecord:
        return read_run(*await self._store.inner.read(run_id))

    def _agent(self, name: str) -> ServedAgent:
        if name not in self._agents:
            names = ", ".join(map(repr, self._agents))
            raise AgentNotFoundError(f"no agent {name!r}; this service has {names}")
        return self._agents[name]

    def _served(self, record: RunRecord) -> ServedAgent:
        for served in self._agents.values():
            if served.recorder.agent == record.run.agent:
                return served
        raise AgentNotFoundError(f"run {record.run.run_id} belongs to agent {record.run.agent!r}, which is not here")

    async def _owner_of(self, run_id: str) -> str | None:
        if run_id not in self._owners:
            with contextlib.suppress(RunNotFoundError):
                request = (await self._read(run_id)).recorded_request
                if request is not None:
                    self._owners[run_id] = request.owner
        return self._owners.get(run_id)

    async def _check_owner(self, run_id: str, owner: str) -> None:
        if await self._owner_of(run_id) != owner:
            raise RunNotFoundError(f"there is no run {run_id!r}")

    async def _conversation(self, run_id: str, owner: str) -> tuple[Message, ...]:
        info = await self.run(run_id, owner=owner)
        served = self._served(await self._read(run_id))
        conversation = (*without_system_text(info.messages, served.agent.system_message), *info.response)
        if (size := size_of(conversation)) > self.limits.history_bytes:
            raise InputTooLargeError(
                f"the conversation of run {run_id} has {size} bytes, more than {self.limits.history_bytes}: begin a "
                f"new one"
            )
        return conversation

    # --- limits ---

    def _check_room(self, owner: str) -> None:
        retry_after_s = self.limits.retry_after_s
        if self._draining:
            raise DrainingError("this service is being stopped: try another server", retry_after_s=retry_after_s)
        active = [live for live in self._live.values() if not live.is_over]
        if len(active) >= self.limits.runs + self.limits.queue:
            raise TooManyRunsError(f"{len(active)} runs are active: try again later", retry_after_s=retry_after_s)
        most = self.limits.runs_per_owner
        if most is not None and sum(live.request.owner == owner for live in active) >= most:
            raise TooManyRunsError(
                f"{most} of your runs are active: wait until one has ended", retry_after_s=retry_after_s
            )

    async def _check_session(self, session: str, owner: str) -> None:
        for run in await self.runs(owner=owner, session=session, limit=1):
            if run.phase != "ended":
                raise SessionBusyError(
                    f"run {run.run_id} of session {session!r} is {run.phase}: wait until it has ended, or cancel it",
                    run_id=run.run_id,
                )


def _load_store(store: str | Mapping[str, object] | Store | None, limits: ServingLimits, host: Plugins | None) -> Store:
    if store is None:
        return MemoryStore(limits.kept_runs)
    loaded = load_store(store, host or default_host())
    if not loaded.content:
        raise ConfigError("the store keeps no content, so no run can be followed or resumed: set content=true")
    return loaded


def _as_options(config: GenerateOptions) -> Mapping[str, Any] | None:
    return config.model_dump(exclude_unset=True, mode="json") if isinstance(config, GenerateConfig) else config


def _note_calls(event: RunEvent, started: set[str]) -> None:
    """Remember the calls that a reader has seen begin, until it sees them end."""
    match event.event:
        case ToolStarted(call_id=call_id):
            started.add(call_id)
        case ToolFinished(call_id=call_id):
            started.discard(call_id)
