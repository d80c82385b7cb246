"""Handle an editor's requests: sessions, prompts and approvals."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError
from acp.helpers import text_block
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptCapabilities,
    PromptResponse,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    StopReason,
    ToolCallUpdate,
)

from jackfield.errors import JackfieldError, RunNotFoundError, ToolServiceError
from jackfield.events import PluginEvent, RunFailed, ToolStarted
from jackfield.messages import FunctionCall, Message
from jackfield.servers import RequestRefusedError, failure_of
from jackfield.streams import closing
from jackfield_acp_server.errors import INVALID_PARAMS, errors_of_protocol
from jackfield_acp_server.prompts import Block, read_prompt
from jackfield_acp_server.toolcalls import TextBefore, replaced_file
from jackfield_acp_server.updates import Update, Updates, user_updates
from jackfield_acp_server.workplace import Workplace
from jackfield_serving import INPUT, QUESTION, NotWaitingError, RunInfo, Serving, SessionBusyError, WaitingCall

_MOST_RUNS = 1000
_MOST_SESSIONS = 1000
_ALLOW, _ALWAYS, _REJECT = "allow", "always", "reject"
_STOP_REASONS: dict[str, StopReason] = {
    "cancelled": "cancelled",
    "token_limit": "max_tokens",
    "turn_limit": "max_turn_requests",
    "tool_call_limit": "max_turn_requests",
    "time_limit": "max_turn_requests",
    "cost_limit": "max_turn_requests",
}


@dataclass(slots=True)
class _Session:
    """A conversation opened by the editor.

    Attributes:
        session_id: The session id.
        agent: The agent that answers.
        last_run: The id of the latest run, or '' if there is none.
        waiting_run: The id of a run that awaits the user's message, or ''.
        running: The id of the run that answers the current prompt, or ''.
        allowed: The tools that the user allowed for the whole session.
        cancelled: Set when the editor cancels the prompt.
        workplace: The editor's files and terminals.
        connected: Disconnects the session's runs from the workplace when closed.
        updates: The updates of the current run, or None if no run is shown.
    """

    session_id: str
    agent: str
    last_run: str = ""
    waiting_run: str = ""
    running: str = ""
    allowed: set[str] = field(default_factory=set)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    workplace: Workplace | None = None
    connected: ExitStack = field(default_factory=ExitStack)
    updates: Updates | None = None


class EditorAgent:
    """Handlers for one editor's requests, which the SDK calls by name.

    Args:
        serving: The agents and their runs.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._sessions: dict[str, _Session] = {}
        self._editor: Client
        self._abilities: ClientCapabilities | None = None

    def on_connect(self, conn: Client) -> None:
        """Store the connection to the editor."""
        self._editor = conn

    def close(self) -> None:
        """Disconnect all runs from the editor."""
        for session in [*self._sessions.values()]:
            self._forget(session)

    async def initialize(
        self,
        protocol_version: int,  # noqa: ARG002
        client_capabilities: ClientCapabilities | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Store the editor's capabilities, and return the protocol version and the agents' capabilities."""
        self._abilities = client_capabilities
        agents = self._serving.agents.values()
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="jackfield", version=version("jackfield-acp-server")),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(
                    image=any(agent.images for agent in agents),
                    audio=any(agent.audio for agent in agents),
                    embedded_context=True,
                ),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
        )

    # --- sessions ---

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:  # noqa: ARG002
        """Start a conversation with the first agent."""
        session = self._open(uuid.uuid4().hex, next(iter(self._serving.agents)))
        return NewSessionResponse(session_id=session.session_id, modes=self._modes(session))

    async def load_session(self, session_id: str, **_: Any) -> LoadSessionResponse:
        """Reopen an earlier conversation and replay it to the editor."""
        with errors_of_protocol():
            runs = await self._serving.runs(session=session_id, limit=_MOST_RUNS) if session_id else []
            if not runs:
                raise RequestRefusedError(f"session {session_id!r} not found: start a new one", status=404)
            session = self._sessions.get(session_id) or self._open(session_id, runs[0].agent)
            session.last_run = runs[0].run_id
            if session.agent not in self._serving.agents:
                session.agent = next(iter(self._serving.agents))
            for summary in reversed(runs):
                if summary.phase in ("ended", "waiting"):
                    await self._show_again(session, await self._serving.run(summary.run_id))
            return LoadSessionResponse(modes=self._modes(session))

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        """Return the conversations of this working directory, newest first."""
        with errors_of_protocol():
            folder = str(Path.cwd())
            sessions = await self._serving.sessions(limit=_MOST_RUNS) if cwd in (None, folder) else []
            return ListSessionsResponse(
                sessions=[
                    SessionInfo(
                        session_id=one.session,
                        cwd=folder,
                        title=one.title,
                        updated_at=datetime.fromtimestamp(one.changed, UTC).isoformat(),
                    )
                    for one in sessions
                ]
            )

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Select the agent that answers the next prompts."""
        session = self._session(session_id)
        if mode_id not in self._serving.agents:
            raise RequestError(INVALID_PARAMS, f"no agent named {mode_id!r}: choose one of the modes")
        session.agent = mode_id
        return SetSessionModeResponse()

    def _open(self, session_id: str, agent: str) -> _Session:
        if len(self._sessions) >= _MOST_SESSIONS:
            idle = next((one for one in self._sessions.values() if not one.running), None)
            if idle is not None:  # the least recently used one
                self._forget(idle)
        session = self._sessions[session_id] = _Session(session_id, agent)

        async def show_terminal(key: tuple[str, str], terminal_id: str) -> None:
            if session.updates is not None:
                session.updates.terminals[key] = terminal_id
                for update in session.updates.show_terminal(key):
                    await self._send(session, update)

        session.workplace = Workplace(self._editor, session_id, self._abilities, show_terminal)
        session.connected.enter_context(self._serving.connect_editor(session.workplace, session=session_id))
        return session

    def _forget(self, session: _Session) -> None:
        self._sessions.pop(session.session_id, None)
        session.connected.close()

    def _session(self, session_id: str) -> _Session:
        if session_id not in self._sessions:
            raise RequestError(INVALID_PARAMS, f"session {session_id!r} is not open: start or load a session")
        session = self._sessions[session_id] = self._sessions.pop(session_id)  # now the most recently used
        return session

    def _modes(self, session: _Session) -> SessionModeState | None:
        agents = self._serving.agents
        if len(agents) == 1:
            return None
        modes = [SessionMode(id=name, name=name, description=one.description or None) for name, one in agents.items()]
        return SessionModeState(current_mode_id=session.agent, available_modes=modes)

    async def _show_again(self, session: _Session, run: RunInfo) -> None:
        for update in user_updates(run.messages):
            await self._send(session, update)
        updates = Updates(self._workspace(run.agent))
        async with closing(self._serving.attach(run.run_id)) as events:
            async for _, event in events:
                for update in updates.feed(event):
                    await self._send(session, update)
        if any(call.kind == "input" for call in run.waiting):
            session.waiting_run = run.run_id

    # --- prompts ---

    async def prompt(self, prompt: Sequence[Block], session_id: str, **_: Any) -> PromptResponse:
        """Run the agent and stream its work until it has answered. Cancelling the request cancels the run."""
        session = self._session(session_id)
        with errors_of_protocol():
            question = read_prompt(prompt)
            if session.running:
                raise RequestRefusedError(
                    "the session is already answering a prompt: wait until it finishes, or cancel it"
                )
            session.running = session.waiting_run or uuid.uuid4().hex
            session.cancelled.clear()
            try:
                return PromptResponse(stop_reason=await self._answer(session, question))
            except BaseException:
                await asyncio.shield(self._cancel(session.running))
                raise
            finally:
                session.running, session.updates = "", None  # prompts contain file contents

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the current prompt."""
        session = self._sessions.get(session_id)
        if session is not None and session.running:
            session.cancelled.set()
            await self._cancel(session.running)

    async def _answer(self, session: _Session, question: Message) -> StopReason:
        run_id = session.running
        number = await self._begin(session, question)
        updates = session.updates = Updates(self._workspace(session.agent))
        while True:
            if session.cancelled.is_set():
                await self._cancel(run_id)
            number = await self._show(session, updates, number)
            run = await self._serving.run(run_id)
            if run.phase == "ended":
                return await self._end(session, updates, run)
            if any(call.kind == "input" for call in run.waiting):
                session.waiting_run = run_id
                return "end_turn"
            answers = {call.call_id: await self._ask(session, updates, run_id, call) for call in run.waiting}
            for call in run.waiting:
                for update in updates.settle(run_id, call, answers[call.call_id]):
                    await self._send(session, update)
            if answers:
                with suppress(NotWaitingError):  # another client was faster, or the prompt was cancelled
                    await self._serving.answer(run_id, answers)

    async def _begin(self, session: _Session, question: Message) -> int:
        """Start or continue a run, and return the number of the last event the editor has seen."""
        if session.waiting_run:
            waiting, session.waiting_run = session.waiting_run, ""
            run = await self._serving.run(waiting)
            await self._serving.answer(run.run_id, {INPUT: [question]})
            return run.number
        try:
            await self._start(session, question)
        except SessionBusyError as busy:
            # An earlier editor left a run waiting, which the new prompt replaces.
            await self._cancel(busy.run_id)
            async with closing(self._serving.attach(busy.run_id)) as events:
                async for _ in events:
                    pass
            await self._start(session, question)
        return 0

    async def _start(self, session: _Session, question: Message) -> None:
        start = partial(
            self._serving.start,
            session.agent,
            [question],
            run_id=session.running,
            session=session.session_id,
            takes_questions=True,
        )
        try:
            await start(continues=session.last_run)
        except RunNotFoundError:  # another client has deleted the conversation
            await start()
        session.last_run = session.running

    async def _show(self, session: _Session, updates: Updates, after: int) -> int:
        """Stream a run's events until it ends, pauses or asks a question; return the number of the last one."""
        last = after
        async with closing(self._serving.attach(session.running, after=after)) as events:
            async for number, event in events:
                last = number
                if isinstance(event.event, ToolStarted):
                    key = (event.run_id, event.event.call_id)
                    await self._note_text_before(session, updates, key, event.event.call)
                for update in updates.feed(event):
                    await self._send(session, update)
                if isinstance(event.event, PluginEvent) and event.event.name == QUESTION:
                    break
        return last

    async def _end(self, session: _Session, updates: Updates, run: RunInfo) -> StopReason:
        """Return the stop reason of a run that has ended.

        Raises:
            RequestRefusedError: The run failed.
        """
        if run.error:
            raise failure_of(RunFailed(run.error, run.error_kind))
        if run.text and not updates.has_text:  # for agents that do not stream
            await self._send(session, updates.message(text_block(run.text)))
        return _STOP_REASONS.get(run.stop_reason, "end_turn")

    async def _cancel(self, run_id: str) -> None:
        with suppress(JackfieldError):  # the run has not begun, or has ended
            await self._serving.cancel(run_id)

    # --- approvals ---

    async def _ask(self, session: _Session, updates: Updates, run_id: str, call: WaitingCall) -> bool:
        """Ask the user to approve a call, unless its tool is allowed for the session; return True if approved."""
        name = call.call.name
        if name in session.allowed and not call.in_doubt and call.kind == "approval":
            return True
        await self._note_text_before(session, updates, (run_id, call.call_id), call.call)
        call_id, shown = updates.propose(run_id, call.call_id, call.call, call.agent)
        doubt = " (may already have been made)" if call.in_doubt else ""
        update = ToolCallUpdate(
            tool_call_id=call_id,
            title=f"{shown.title}{doubt}",
            kind=shown.kind,
            status="pending",
            content=list(shown.changes) or None,
            locations=list(shown.locations) or None,
            raw_input=shown.arguments,
        )
        options = [
            PermissionOption(option_id=_ALLOW, name="Allow", kind="allow_once"),
            PermissionOption(option_id=_ALWAYS, name=f"Always allow {name} in this session", kind="allow_always"),
            PermissionOption(option_id=_REJECT, name="Reject", kind="reject_once"),
        ]
        if call.kind != "approval" or call.in_doubt:
            del options[1]
        choice = await self._choose(session, update, options)
        if choice == _ALWAYS:
            session.allowed.add(name)
        return choice in (_ALLOW, _ALWAYS)

    async def _note_text_before(
        self, session: _Session, updates: Updates, key: tuple[str, str], call: FunctionCall
    ) -> None:
        """Save the editor's current text of a file that a call will overwrite, to show the change as a diff."""
        path = replaced_file(call, self._workspace(session.agent))
        place = session.workplace
        if path is None or place is None or not place.reads or key in updates.texts_before:
            return
        with suppress(ToolServiceError):  # the file on disk is shown instead
            updates.texts_before[key] = TextBefore(await place.read_text(path))

    async def _choose(self, session: _Session, update: ToolCallUpdate, options: list[PermissionOption]) -> str:
        """Return the option the user selects, or '' if there is none or the prompt is cancelled first."""
        asking = asyncio.ensure_future(self._editor.request_permission(session.session_id, update, options))
        leaving = asyncio.ensure_future(session.cancelled.wait())
        try:
            await asyncio.wait([asking, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return ""
            outcome = asking.result().outcome
        except RequestError:  # the editor cannot ask
            return ""
        finally:
            asking.cancel()
            leaving.cancel()
        chosen: str = getattr(outcome, "option_id", "")
        return chosen if chosen in {option.option_id for option in options} else ""

    async def _send(self, session: _Session, update: Update) -> None:
        await self._editor.session_update(session.session_id, update)

    def _workspace(self, agent: str) -> str:
        info = self._serving.agents.get(agent)
        return "" if info is None else info.workspace
