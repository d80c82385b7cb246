"""Serve agents. Runs are resources that any client can start, follow, answer and cancel."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError, InvalidMessageError, PluginError, RunBusyError, RunNotFoundError, StoreError
from jackfield.events import PluginEvent, RunEvent, RunStarted
from jackfield.messages import (
    SYSTEM,
    FunctionCall,
    Message,
    Messages,
    as_messages,
    with_system_text,
    without_system_text,
)
from jackfield.plugins import Plugins, default_host
from jackfield.plurals import format_count
from jackfield.request import GenerateOptions, language_of
from jackfield.runs import open_calls
from jackfield.stores import RUNNING, Store, load_store
from jackfield.streams import closing
from jackfield.sync import in_worker
from jackfield.tools import Editor, FunctionSchema
from jackfield_records import fork
from jackfield_records.pending import append_events, record_finished, record_pending
from jackfield_records.searching import excerpt_of, search_words
from jackfield_serving.agents import (
    AgentInfos,
    AgentSource,
    ServedAgent,
    check_names,
    describe_tool,
    files_of,
    preview_call,
    serve_agent,
)
from jackfield_serving.driving import Driver
from jackfield_serving.errors import (
    AgentNotFoundError,
    DrainingError,
    InputTooLargeError,
    NotWaitingError,
    OptionsRefusedError,
    SessionBusyError,
    TooManyRunsError,
)
from jackfield_serving.limits import ServingLimits
from jackfield_serving.live import LiveRun
from jackfield_serving.memory import MemoryStore
from jackfield_serving.numbering import HALF, STRIDE, Numbered
from jackfield_serving.peers import Message as PeerMessage
from jackfield_serving.peers import Peers
from jackfield_serving.reading import RunRecord, read_run, summary_of
from jackfield_serving.recorded import Reader, RecordedEvents
from jackfield_serving.recording import HeldRun, ServedStore
from jackfield_serving.requests import Answer, Request, size_of
from jackfield_serving.views import AgentInfo, RunInfo, RunSummary, SearchHit, SessionInfo, ToolInfo

_log = logging.getLogger("jackfield.serving")
_MOST_LISTED = 10_000
_MOST_OWNERS = 10_000
_MOST_HITS = 200
_MOST_TITLE_CHARS = 200
_CANCELS = 20
_CANCEL_AGAIN_S = 0.25
_NO_ENTRIES = (1 << 31) - 1


class Serving:
    """Runs agents for clients. A run lives until it ends, with or without clients following it.

    Use as an async context manager, in a single event loop. Every run is recorded in the store, so that other processes
    with the same store and agents can follow, answer, cancel and continue it. Without a store, runs live in memory.

    Args:
        agents: The agents by their names in the service: objects, paths of agent files, or `module:name`.
        store: The store for runs, which replaces the agents' own stores: a store, the name of an installed one, or a
            dict with a `name` and settings. None stores runs in memory.
        limits: The service's limits.
        poll_s: The interval for polling runs in other processes, in seconds, if the store has no signals.
        recover_every_s: The interval for finding and continuing runs whose process has ended, in seconds. None disables
            recovery.
        trust: True if the caller vouches for the agent files.
        host: The plugin host that resolves names.

    Raises:
        ConfigError: An agent cannot be loaded, or the store does not record content.
        PluginError: The store, or something an agent needs, is not installed.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentSource],
        *,
        store: str | Mapping[str, object] | Store | None = None,
        limits: ServingLimits = ServingLimits(),  # noqa: B008 - it is frozen
        poll_s: float = 0.1,
        recover_every_s: float | None = 2.0,
        trust: bool = False,
        host: Plugins | None = None,
    ) -> None:
        check_names(agents)
        self.limits = limits
        self._store = ServedStore(_load_store(store, limits, host), self._note_written)
        self._agents = {
            name: serve_agent(name, source, self._store, host=host, trust=trust, run_s=limits.run_s)
            for name, source in agents.items()
        }
        self._driver = Driver(self._store, limits)
        self._peers = Peers(self._store.inner, self._take_message, poll_s=poll_s)
        self._recover_every_s = None if isinstance(self._store.inner, MemoryStore) else recover_every_s
        self._recovery: asyncio.Task[None] | None = None
        self._owners: dict[str, str] = {}
        self._starting: set[tuple[str, str]] = set()
        self._is_draining = False

    async def __aenter__(self) -> Self:
        self._peers.open()
        if self._recover_every_s is not None:
            work = self._keep_recovering(self._recover_every_s)
            self._recovery = asyncio.create_task(work, name="jackfield-serving-recovery")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.drain(0)
        await self._peers.aclose()
        await self._store.inner.aclose()

    # --- agents ---

    @property
    def agents(self) -> Mapping[str, AgentInfo]:
        """The descriptions of the agents, by name."""
        return AgentInfos(self._agents)

    def tools(self, agent: str) -> list[ToolInfo]:
        """Return an agent's tools that clients can call with `start(call=…)`, except for those created per run.

        Raises:
            AgentNotFoundError: The service has no such agent.
        """
        return [describe_tool(tool) for tool in self._agent(agent).agent.function_map.values()]

    @property
    def observers(self) -> frozenset[str]:
        """The names of the observers of at least one agent's runs."""
        names = [served.agent.observers.names for served in self._agents.values()]
        return frozenset().union(*names)

    @contextlib.contextmanager
    def connect_editor(self, editor: Editor, *, session: str, owner: str = "") -> Iterator[None]:
        """Let runs in a session use their user's editor, if they begin or continue in this process."""
        key = (owner, session)
        self._driver.editors[key] = editor
        try:
            yield
        finally:
            if self._driver.editors.get(key) is editor:
                del self._driver.editors[key]

    # --- runs ---

    @property
    def active(self) -> int:
        """The number of runs in this process that have not ended."""
        return self._driver.count

    @property
    def queued(self) -> int:
        """The number of queued runs in this process."""
        return sum(live.is_queued for live in self._driver.active())

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
        takes_questions: bool = False,
        model: str = "",
        call: FunctionCall | None = None,
        deps: Any = None,
    ) -> str:
        """Start a run and return its id. By then the run is recorded, and other processes finish it if this one ends.

        Args:
            agent: The agent's name in the service.
            messages: A question, or a conversation, oldest first.
            owner: The identity that starts the run. No other owner can find the run.
            session: The conversation that the run belongs to, which has one run at a time.
            run_id: The run's id. If None, a new id is generated.
            config: Model options, as JSON.
            client_tools: The schemas of tools that run on the client. A call pauses the run until `answer` delivers the
                result.
            output: The answer's JSON Schema.
            continues: A run of the same owner whose conversation precedes the messages. System messages among the
                messages replace the conversation's own.
            takes_questions: True if the client answers questions raised during calls, such as those of MCP servers.
                Questions wait for `answer` until the call times out. If False, questions are declined.
            call: A call of one of the agent's tools, which the run makes instead of asking the model. The agent's rules
                and approvals apply. The result is the tool's message.
            model: A model that the agent offers (`AgentInfo.models`), or '' for the agent's own.
            deps: Passed to the agent's tools. Not recorded, so it is None if another process continues the run.

        Raises:
            AgentNotFoundError: The service has no such agent.
            RunNotFoundError: The run to continue does not exist.
            SessionBusyError: A run in the session has not ended.
            TooManyRunsError: The service is full; `retry_after_s` says when to retry.
            InputTooLargeError: The messages, or the conversation they continue, are too large.
            OptionsRefusedError: The agent does not support these tools or options.
            InvalidMessageError: A message is invalid.
            StoreError: The run cannot be recorded, or the id is already in use.
        """
        served = self._agent(agent)
        asked = as_messages(messages)
        self._check_room(owner)
        self._check_waiting()
        if (size := size_of(asked)) > self.limits.input_bytes:
            raise InputTooLargeError(f"the messages total {size} bytes; the limit is {self.limits.input_bytes}")
        request = Request(
            config=_as_options(config),
            output=output,
            client_tools=tuple(client_tools),
            continues=continues,
            takes_questions=takes_questions,
            model=model,
            call=call,
        )
        try:
            served = served.with_model(model)
            served.check(request)
            facts = request.as_facts()
        except (ConfigError, PluginError) as error:
            raise OptionsRefusedError(str(error)) from None
        before = await self._conversation(continues, owner) if continues else ()
        history = with_system_text(_join_system(before, asked), served.agent.system_message, first=True)
        if served.agent.files:
            history = served.agent.make_run(history, language_of(history)).messages
        run_id = run_id or os.urandom(16).hex()
        with self._starting_in(session, owner) if session else contextlib.nullcontext():
            if session:
                await self._check_session(session, owner)
            pending = await record_pending(
                served.recorder, history, run_id=run_id, session=session, owner=owner, facts=facts
            )
        live = LiveRun(pending.run, agent, request, entries=pending.entries, limits=self.limits)
        live.deps = deps
        live.publish_start(RunEvent(run_id, 1, served.recorder.agent, 0, RunStarted(history)))
        self._remember_owner(run_id, owner)
        self._driver.begin(served, live, pending)
        return run_id

    def attach(
        self, run_id: str, *, after: int = 0, owner: str = "", cancel_on_leave: bool = False
    ) -> AsyncIterator[Numbered]:
        """Yield a run's events after a number, first recorded and then live, until the run ends or pauses.

        Leaving or reading slowly does not affect the run. A late or slow reader gets larger chunks of text.

        Args:
            run_id: The run's id.
            after: The number of the reader's last event, or 0 for none.
            owner: The identity that started the run.
            cancel_on_leave: True to cancel the run, including its model request, if the reader leaves before the end.
                To leave, close the iterator or cancel the task that awaits it.

        Raises:
            RunNotFoundError: The owner has no such run.
            StoreError: The record cannot be read.
        """
        events = self._events(run_id, after, owner)
        return self._cancelling_on_leave(run_id, events) if cancel_on_leave else events

    async def _cancelling_on_leave(self, run_id: str, events: AsyncIterator[Numbered]) -> AsyncIterator[Numbered]:
        is_read = False
        try:
            async with closing(events):
                async for numbered in events:
                    yield numbered
            is_read = True
        finally:
            live = self._driver.find(run_id)
            if not is_read and live is not None:
                live.cancel.cancel()

    async def answer(self, run_id: str, answers: Mapping[str, Answer], *, owner: str = "") -> None:
        """Answer calls that a run waits for. The run continues with the same id and increasing numbers.

        Args:
            run_id: The run's id.
            answers: The answers by the ids in `RunInfo.waiting`. An approval takes True, False or `Denial(reason)`; a
                question takes the same, or the values of its form; a client tool takes its result; a person's turn
                (`INPUT`) takes text or messages. Unanswered calls keep waiting.
            owner: The identity that started the run.

        Raises:
            RunNotFoundError: The owner has no such run.
            NotWaitingError: The run does not wait for these answers, or another answer came first.
            InvalidMessageError: A person's message is invalid.
            TooManyRunsError: The service is full; `retry_after_s` says when to retry.
            StoreError: The answers cannot be recorded.
        """
        await self._check_owner(run_id, owner)
        self._check_room(owner)
        if not answers:
            raise NotWaitingError(f"no answers for run {run_id}: answer the pending calls")
        live = self._driver.find(run_id)
        if live is not None and live.questions.answer(answers):
            return
        seen, _ = await self._store.inner.read(run_id, after=_NO_ENTRIES)
        answered = NotWaitingError(f"run {run_id} is not waiting: it is running, or has already been answered")
        try:
            held = await self._take(run_id)
        except RunBusyError:
            raise answered from None
        async with self._releasing_after_error(held):
            if held.run.entries != seen.entries:
                # It was answered meanwhile, and waits again. Models may reuse the id of a call in a later turn.
                raise answered
            record = read_run(held.run, held.entries)
            served = self._served(record)
            sorted_answers = record.sort_answers(answers)
            events: list[PluginEvent | RunStarted] = [sorted_answers.as_note()]
            if sorted_answers.messages:
                events.insert(0, RunStarted((*record.messages, *record.response, *sorted_answers.messages)))
            held.entries += await append_events(served.recorder, run_id, held.hold, events)
            self._continue(served, held)

    async def cancel(self, run_id: str, *, owner: str = "") -> None:
        """Cancel a run, including its model request and its calls. Has no effect on a run that has ended.

        A run in another process may still be running for a moment after this returns.

        Raises:
            RunNotFoundError: The owner has no such run.
            StoreError: The run is in another process and the store has no signals, or the store cannot be used.
        """
        await self._check_owner(run_id, owner)
        for _ in range(_CANCELS):
            if live := self._driver.find(run_id):
                live.cancel.cancel()
                return
            try:
                held = await self._take(run_id)
            except RunBusyError:  # another process runs it
                await self._peers.send(run_id, {"cancel": True})
                await asyncio.sleep(_CANCEL_AGAIN_S)
                continue
            async with self._releasing_after_error(held):
                record = read_run(held.run, held.entries)
                if summary_of(held.run).phase == "ended":
                    await self._store.inner.release(run_id, held.hold)
                else:
                    self._continue(self._served(record), held, is_cancelled=True)
            return

    async def run(self, run_id: str, *, owner: str = "") -> RunInfo:
        """Return a run: its phase, messages, usage, pending calls and end.

        Raises:
            RunNotFoundError: The owner has no such run.
            StoreError: The record cannot be read.
        """
        await self._check_owner(run_id, owner)
        info = (await self._read(run_id)).info(is_queued=self._is_queued(run_id))
        live = self._driver.find(run_id)
        questions = live.questions.waiting() if live is not None else ()
        return replace(info, agent=self._name_of(info.agent), waiting=(*info.waiting, *questions))

    async def previews(self, run: RunInfo) -> dict[str, str]:
        """Return the changes that a run's waiting calls would make to text files, as unified diffs by call id.

        Only tools that implement `BaseTool.preview` have previews. Calls from nested agents are previewed in those
        agents' workspaces.
        """
        served = self._agents.get(run.agent)
        calls = [one for one in run.waiting if one.kind == "approval"]
        if served is None or not calls:
            return {}
        previews = [await in_worker(preview_call, served.agent, one.call, one.agent) for one in calls]
        return {one.call_id: preview for one, preview in zip(calls, previews, strict=True) if preview}

    def documents(self, agent: str) -> tuple[str, ...]:
        """Return the documents of an agent and those below it (paths, folders, patterns), or () for an unknown agent.

        Faces must not show these names to clients on other machines.
        """
        served = self._agents.get(agent)
        return () if served is None else files_of(served.agent)

    async def runs(
        self, *, owner: str = "", session: str | None = None, agent: str | None = None, limit: int = 100
    ) -> list[RunSummary]:
        """Return an owner's runs, newest first.

        Raises:
            StoreError: The runs cannot be read.
        """
        listed = _MOST_LISTED if agent is not None else limit
        runs = await self._store.inner.runs(owner=owner, session=session, limit=listed)
        summaries = [
            replace(summary_of(run, is_queued=self._is_queued(run.run_id)), agent=self._name_of(run.agent))
            for run in runs
        ]
        return [summary for summary in summaries if agent in (None, summary.agent)][:limit]

    async def sessions(self, *, owner: str = "", limit: int = 100) -> list[SessionInfo]:
        """Return an owner's conversations, latest first.

        Raises:
            StoreError: The conversations cannot be read.
        """
        sessions: dict[str, SessionInfo] = {}
        for run in await self.runs(owner=owner, limit=_MOST_LISTED):
            if not run.session:
                continue
            latest = sessions.get(run.session) or SessionInfo(
                session=run.session, agent=run.agent, last_run=run.run_id, changed=run.changed
            )
            sessions[run.session] = replace(latest, runs=latest.runs + 1, title=run.title, began=run.began)
        return list(sessions.values())[:limit]

    async def search(self, text: str, *, owner: str = "", limit: int = 20) -> list[SearchHit]:
        """Return an owner's conversations in which one run contains every word of the text, latest hit first.

        Raises:
            StoreError: The store cannot search, or cannot be read.
        """
        words = search_words(text)
        hits: dict[str, SearchHit] = {}
        for run in await self._store.inner.search(text, owner=owner, limit=_MOST_HITS) if words else ():
            if len(hits) == limit:
                break
            if not run.session or run.session in hits:
                continue
            with contextlib.suppress(RunNotFoundError):  # deleted meanwhile
                _, entries = await self._store.inner.read(run.run_id)
                hits[run.session] = SearchHit(
                    session=run.session,
                    run_id=run.run_id,
                    agent=self._name_of(run.agent),
                    excerpt=excerpt_of(entries, words),
                    changed=run.changed,
                )
        return list(hits.values())

    async def rename(self, session: str, title: str, *, owner: str = "") -> None:
        """Set a conversation's title, as shown in lists.

        Raises:
            RunNotFoundError: The owner has no such conversation.
            ConfigError: The title is empty.
            StoreError: The store cannot rename, or cannot be written.
        """
        line = " ".join(title.split())[:_MOST_TITLE_CHARS]
        if not line:
            raise ConfigError("the title must not be empty")
        runs = await self._store.inner.runs(owner=owner, session=session, limit=_MOST_LISTED)
        if not session or not runs:
            raise RunNotFoundError(f"no conversation {session!r}")
        await self._store.inner.rename(runs[-1].run_id, line)

    async def add_ended(
        self,
        agent: str,
        messages: Sequence[Message],
        response: Sequence[Message],
        *,
        owner: str = "",
        session: str = "",
        continues: str = "",
    ) -> str:
        """Record a run that was completed elsewhere, such as in an imported conversation, and return its id.

        Args:
            agent: The agent that will continue the conversation.
            messages: The question.
            response: The messages from the model and from tools. Each call must have a result.
            owner, session, continues: See `start`.

        Raises:
            AgentNotFoundError: The service has no such agent.
            RunNotFoundError: The run to continue does not exist.
            InputTooLargeError: The messages, or the conversation they continue, are too large.
            InvalidMessageError: A call has no result.
            StoreError: The run cannot be recorded.
        """
        served = self._agent(agent)
        asked, response = as_messages(messages), tuple(response)
        if (size := size_of((*asked, *response))) > self.limits.input_bytes:
            raise InputTooLargeError(f"the messages total {size} bytes; the limit is {self.limits.input_bytes}")
        if calls := open_calls(response):
            raise InvalidMessageError(f"call {calls[0].call.name!r} has no result: add the result, or remove the call")
        before = await self._conversation(continues, owner) if continues else ()
        history = with_system_text(_join_system(before, asked), served.agent.system_message, first=True)
        run_id = os.urandom(16).hex()
        facts = Request(continues=continues).as_facts()
        await record_finished(
            served.recorder, history, response, run_id=run_id, session=session, owner=owner, facts=facts
        )
        self._remember_owner(run_id, owner)
        return run_id

    async def fork(self, run_id: str, *, at: int | None = None, owner: str = "") -> str:
        """Copy a run up to a recorded event, and return the id of the copy, which continues from there.

        Args:
            run_id: The original run's id.
            at: The number of the last event to copy. None copies all recorded events.
            owner: The identity that started the run.

        Raises:
            RunNotFoundError: The owner has no such run.
            TooManyRunsError: The service is full; `retry_after_s` says when to retry.
            StoreError: The record cannot be read or written.
        """
        await self._check_owner(run_id, owner)
        self._check_room(owner)
        copy_id = await fork(self._store.inner, run_id, at=None if at is None else max(1, at // STRIDE))
        held = await self._take(copy_id)
        async with self._releasing_after_error(held):
            self._continue(self._served(read_run(held.run, held.entries)), held)
        return copy_id

    async def delete(self, run_id: str, *, owner: str = "") -> None:
        """Delete a run that is not in progress.

        Raises:
            RunNotFoundError: The owner has no such run.
            RunBusyError: The run is in progress. Cancel it first.
            StoreError: The run cannot be deleted.
        """
        await self._check_owner(run_id, owner)
        await self._store.inner.delete(run_id)
        self._driver.live.pop(run_id, None)
        self._owners.pop(run_id, None)

    async def drain(self, seconds: float) -> None:
        """Start no more runs, let active ones end, and leave the rest to other processes.

        Without a shared store, the rest are cancelled.

        Args:
            seconds: The time that runs are given to end.
        """
        self._is_draining = True
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.gather(self._recovery, return_exceptions=True)
        await self._driver.drain(seconds)

    async def recover(self) -> list[str]:
        """Continue this service's interrupted runs that no process holds, and return their ids.

        Calls that may have been made await a decision, unless their tools allow repetition. A run that was continued
        several times without a step is left for a person to look at.

        Raises:
            StoreError: The runs cannot be listed.
        """
        continued: list[str] = []
        names = {served.recorder.agent for served in self._agents.values()}
        for run in reversed(await self._store.inner.runs(state=RUNNING, limit=_MOST_LISTED)):
            if self._driver.count >= self.limits.runs or self._is_draining:
                break
            if not run.is_held and run.agent in names and self._driver.find(run.run_id) is None:
                with contextlib.suppress(StoreError):  # another process was faster, or the store became unavailable
                    continued += await self._recover_run(run.run_id)
        return continued

    # --- events ---

    async def _events(self, run_id: str, after: int, owner: str) -> AsyncIterator[Numbered]:
        await self._check_owner(run_id, owner)
        cursor, reader = after, Reader()
        recorded: RecordedEvents | None = None
        live: LiveRun | None = None
        while True:
            driven = self._driver.live.get(run_id)
            # The driver retains only the latest ended runs, but a reader holds on to its own and reads no record.
            if driven is not None or live is None or live.end is None:
                live = driven
            is_in_record = cursor % STRIDE >= HALF  # between events that were derived from an entry
            batch = None if live is None or is_in_record else live.after(cursor)
            if live is not None and batch is not None:
                recorded = None
                following = batch[-1].number if batch else cursor
                is_over = not batch and live.is_over and live.end is not None
            else:
                floor = None if live is None else max(live.floor, -(-cursor // STRIDE) * STRIDE)
                stored, entries = await self._store.inner.read(
                    run_id, after=0 if recorded is None else recorded.entries
                )
                recorded = recorded or RecordedEvents(stored, cursor, reader)
                batch = list(recorded.feed(entries, up_to=floor))
                following = floor or (batch[-1].number if batch else cursor)
                is_over = floor is None and stored.state != RUNNING
            for numbered in batch:
                if numbered.event.event.is_delta:
                    yield numbered
                    continue
                for one in reader.complete(numbered):
                    yield one
            if is_over:
                if live is None or not await self._continues_elsewhere(live):
                    return
                self._driver.forget(live)
                live = None
            elif following == cursor:
                await self._wait_for_events(live)
            cursor = following

    async def _continues_elsewhere(self, live: LiveRun) -> bool:
        """Return True if a run that paused here has since been continued by another process."""
        if not live.is_paused:
            return False
        stored, _ = await self._store.inner.read(live.run_id, after=_NO_ENTRIES)
        return stored.state == RUNNING or stored.entries > live.entries

    async def _wait_for_events(self, live: LiveRun | None) -> None:
        if live is None or live.is_over:  # another process has it, or will have it
            await self._peers.changed()
        else:
            await live.changed()

    def _note_written(self, run_id: str, entries: Sequence[str]) -> None:
        live = self._driver.live.get(run_id)
        if live is not None:
            live.note_written(entries)
        self._peers.note_written(run_id)

    def _take_message(self, run_id: str, message: PeerMessage) -> None:
        live = self._driver.find(run_id)
        if live is not None and message.get("cancel"):
            live.cancel.cancel()

    # --- continuing runs ---

    def _continue(self, served: ServedAgent, held: HeldRun, *, is_cancelled: bool = False) -> None:
        record = read_run(held.run, held.entries)
        live = LiveRun(held.run, served.name, record.request, entries=held.entries, limits=self.limits)
        live.answers = record.answers
        live.results.update(record.results)
        if is_cancelled:
            live.cancel.cancel()
        self._driver.resume(served, live, held)

    async def _take(self, run_id: str) -> HeldRun:
        """Hold a run and read it.

        Raises:
            RunBusyError: The run is in progress.
            StoreError: The run cannot be read.
        """
        hold = await self._store.inner.hold(run_id)
        try:
            stored, entries = await self._store.inner.read(run_id)
        except BaseException:
            await self._store.inner.release(run_id, hold)
            raise
        return HeldRun(stored, entries, hold)

    @contextlib.asynccontextmanager
    async def _releasing_after_error(self, held: HeldRun) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:
            await self._store.inner.release(held.run.run_id, held.hold)
            raise

    async def _keep_recovering(self, every_s: float) -> None:
        outage = ""
        while True:
            try:
                await self.recover()
                outage = ""
            except StoreError as error:
                if str(error) != outage:  # once for each outage, not for each attempt
                    _log.warning("cannot recover interrupted runs: %s", error)
                outage = str(error)
            await asyncio.sleep(every_s)

    async def _recover_run(self, run_id: str) -> list[str]:
        held = await self._take(run_id)
        async with self._releasing_after_error(held):
            record = read_run(held.run, held.entries)
            if held.run.state != RUNNING or record.recorded_request is None or record.is_stuck:
                await self._store.inner.release(run_id, held.hold)
                return []
            self._continue(self._served(record), held)
        return [run_id]

    # --- reading ---

    async def _read(self, run_id: str) -> RunRecord:
        return read_run(*await self._store.inner.read(run_id))

    def _agent(self, name: str) -> ServedAgent:
        if name not in self._agents:
            names = ", ".join(map(repr, self._agents))
            raise AgentNotFoundError(f"no agent named {name!r}; available: {names}")
        return self._agents[name]

    def _served(self, record: RunRecord) -> ServedAgent:
        for served in self._agents.values():
            if served.recorder.agent == record.run.agent:
                # An agent that no longer offers the model continues with its own.
                model = record.request.model
                return served.with_model(model if model in served.agent.models else "")
        raise AgentNotFoundError(
            f"run {record.run.run_id} belongs to agent {record.run.agent!r}, which is not available here"
        )

    def _name_of(self, agent: str) -> str:
        """Return an agent's name in the service, given its name in records."""
        names = [name for name, served in self._agents.items() if served.recorder.agent == agent]
        return names[0] if names else agent

    def _is_queued(self, run_id: str) -> bool:
        live = self._driver.find(run_id)
        return live is not None and live.is_queued

    def _remember_owner(self, run_id: str, owner: str) -> None:
        if len(self._owners) >= _MOST_OWNERS:
            del self._owners[next(iter(self._owners))]
        self._owners[run_id] = owner

    async def _check_owner(self, run_id: str, owner: str) -> None:
        if run_id not in self._owners:
            with contextlib.suppress(RunNotFoundError):  # its text would differ from the one for a run of another owner
                stored, _ = await self._store.inner.read(run_id, after=_NO_ENTRIES)
                self._remember_owner(run_id, stored.owner)
        if self._owners.get(run_id) != owner:
            raise RunNotFoundError(f"no run {run_id!r}")

    async def _conversation(self, run_id: str, owner: str) -> tuple[Message, ...]:
        await self._check_owner(run_id, owner)
        record = await self._read(run_id)
        try:
            messages = without_system_text(record.messages, self._served(record).agent.system_message)
        except AgentNotFoundError:  # it is gone, so its own part of the instructions is unknown
            messages = tuple(message for message in record.messages if message.role != SYSTEM)
        conversation = (*messages, *record.response)
        if (size := size_of(conversation)) > self.limits.history_bytes:
            raise InputTooLargeError(
                f"the conversation of run {run_id} is {size} bytes long; the limit is {self.limits.history_bytes}: "
                "start a new conversation"
            )
        return conversation

    # --- limits ---

    def _check_room(self, owner: str) -> None:
        retry_after_s = self.limits.retry_after_s
        if self._is_draining:
            raise DrainingError("this server is shutting down: try another one", retry_after_s=retry_after_s)
        if self._driver.count >= self.limits.runs + self.limits.queue:
            raise TooManyRunsError(
                f"this server already has {format_count(self._driver.count, 'active run')}: try again later",
                retry_after_s=retry_after_s,
            )
        most = self.limits.runs_per_owner
        if most is not None and sum(live.run.owner == owner for live in self._driver.active()) >= most:
            raise TooManyRunsError(
                f"you already have {format_count(most, 'active run')}: wait until one finishes",
                retry_after_s=retry_after_s,
            )

    def _check_waiting(self) -> None:
        """Reject another run while too many await human input."""
        store = self._store.inner
        if isinstance(store, MemoryStore) and (waiting := store.count_waiting()) >= self.limits.waiting_runs:
            raise TooManyRunsError(
                f"this server already has {format_count(waiting, 'run')} waiting for a human, the limit for runs in "
                "memory: answer or cancel some, or configure a store",
                retry_after_s=self.limits.retry_after_s,
            )

    @contextlib.contextmanager
    def _starting_in(self, session: str, owner: str) -> Iterator[None]:
        """Reject a second run in a session while the first one is being recorded."""
        key = (owner, session)
        if key in self._starting:
            raise SessionBusyError(f"a run of session {session!r} is starting: wait until it finishes", run_id="")
        self._starting.add(key)
        try:
            yield
        finally:
            self._starting.discard(key)

    async def _check_session(self, session: str, owner: str) -> None:
        for run in await self.runs(owner=owner, session=session, limit=1):
            if run.phase != "ended":
                raise SessionBusyError(
                    f"run {run.run_id} of session {session!r} is {run.phase}: wait until it finishes, or cancel it",
                    run_id=run.run_id,
                )


def _load_store(store: str | Mapping[str, object] | Store | None, limits: ServingLimits, host: Plugins | None) -> Store:
    if store is None:
        return MemoryStore(limits.kept_runs)
    loaded = load_store(store, host or default_host())
    if not loaded.content:
        raise ConfigError("the store does not save content, so runs cannot be followed or resumed: set content=true")
    return loaded


def _join_system(before: Sequence[Message], asked: Sequence[Message]) -> tuple[Message, ...]:
    """Join a conversation with at most one system message: models accept only one, but clients send several."""
    systems = [message for message in asked if message.role == SYSTEM]
    if not systems or (len(systems) == 1 and not before):
        return (*before, *asked)
    rest = [message for message in (*before, *asked) if message.role != SYSTEM]
    return (Message(SYSTEM, "\n\n".join(message.get_text_content() for message in systems)), *rest)


def _as_options(config: GenerateOptions) -> Mapping[str, Any] | None:
    return config.model_dump(exclude_unset=True, mode="json") if isinstance(config, GenerateConfig) else config
