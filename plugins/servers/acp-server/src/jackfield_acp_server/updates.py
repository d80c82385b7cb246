"""Convert a run's events to session updates."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TypeAlias

from acp.helpers import (
    audio_block,
    image_block,
    resource_link_block,
    start_tool_call,
    text_block,
    tool_content,
    tool_terminal_ref,
    update_tool_call,
)
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AudioContentBlock,
    ImageContentBlock,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)

from jackfield.events import (
    MediaDelta,
    ReasoningDelta,
    RunEvent,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield.results import sources_in
from jackfield_acp_server.toolcalls import Content, ShownCall, TextBefore, show_call, text_content
from jackfield_serving import WaitingCall

Update: TypeAlias = UserMessageChunk | AgentMessageChunk | AgentThoughtChunk | ToolCallStart | ToolCallProgress


class Updates:
    """Converts the events of one run.

    Args:
        workspace: The directory in which the agent's tools work.

    Attributes:
        has_text: True once text has been sent.
        texts_before: The editor's text of each file before a call overwrites it, by run id and call id.
        terminals: The ids of the editor's terminals in which calls run, by run id and call id.
    """

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self.has_text = False
        self.texts_before: dict[tuple[str, str], TextBefore] = {}
        self.terminals: dict[tuple[str, str], str] = {}
        self._message_id = ""
        self._shown = ""  # the text of this turn, as the editor has it
        self._repeated: str | None = None  # the text since the turn restarted
        self._open: dict[tuple[str, str], str] = {}
        self._changing: set[tuple[str, str]] = set()  # calls that show file changes
        self._begun: set[tuple[str, str]] = set()
        self._wanted: dict[tuple[str, str], FunctionCall] = {}

    def feed(self, event: RunEvent) -> Iterator[Update]:
        """Yield the updates for an event. Nested agents' calls are shown, but not their texts."""
        inner, key = event.event, (event.run_id, getattr(event.event, "call_id", ""))
        match inner:
            case ToolStarted():
                yield self._start(key, inner.call, event.agent if event.depth else "")
            case ToolProgress():
                yield update_tool_call(self._id_of(key), content=[text_content(inner.text)])
            case ToolFinished():
                yield from self._finish(key, inner)
            case TurnFinished():
                for message in inner.messages:
                    if message.function_call is not None and message.function_id:
                        self._wanted[event.run_id, message.function_id] = message.function_call
            case _ if event.depth == 0:
                yield from self._feed_text(event)

    def _feed_text(self, event: RunEvent) -> Iterator[Update]:
        match event.event:
            case TurnStarted():
                self._message_id = uuid.uuid4().hex
                self._shown, self._repeated = "", None
            case StreamReset():
                self._repeated = ""
            case TextDelta(text):
                if piece := self._new_text(text):
                    yield self.message(text_block(piece))
            case ReasoningDelta(text) if text and self._repeated is None:
                chunk = text_block(text)
                yield AgentThoughtChunk(
                    session_update="agent_thought_chunk", content=chunk, message_id=self._message_id or None
                )
            case MediaDelta(item):
                if block := media_block(item):
                    yield self.message(block)

    def message(self, block: TextContentBlock | ImageContentBlock | AudioContentBlock) -> AgentMessageChunk:
        """Return a chunk of the agent's message."""
        self.has_text = True
        return AgentMessageChunk(
            session_update="agent_message_chunk", content=block, message_id=self._message_id or None
        )

    def _new_text(self, text: str) -> str:
        """Return the part of a text the editor has not seen, since a restarted turn may repeat its text."""
        if self._repeated is None:
            self._shown += text
            return text
        self._repeated += text
        if self._shown.startswith(self._repeated):
            return ""
        is_same = self._repeated.startswith(self._shown)
        new = self._repeated[len(self._shown) :] if is_same else self._repeated
        if not is_same:
            self._message_id = uuid.uuid4().hex  # sent text cannot be withdrawn, so a new message begins
        self._shown, self._repeated = self._repeated, None
        return new

    # --- calls ---

    def propose(self, run_id: str, call_id: str, call: FunctionCall, agent: str) -> tuple[str, ShownCall]:
        """Return the id and description of a call that awaits approval."""
        return self._id_of((run_id, call_id)), self._show((run_id, call_id), call, agent)

    def _show(self, key: tuple[str, str], call: FunctionCall, agent: str) -> ShownCall:
        return show_call(call, self._workspace, agent=agent, before=self.texts_before.get(key))

    def show_terminal(self, key: tuple[str, str]) -> Iterator[Update]:
        """Attach the terminal to a call that has been shown; for any other call, its start update does this."""
        if key in self._begun:
            yield update_tool_call(self._id_of(key), content=[tool_terminal_ref(self.terminals[key])])

    def settle(self, run_id: str, call: WaitingCall, is_allowed: bool) -> Iterator[Update]:
        """Close a call that no later event will close: a nested agent's call, or a question asked by a running call."""
        if (call.agent or call.kind != "approval") and (call_id := self._open.pop((run_id, call.call_id), "")):
            yield update_tool_call(call_id, status="completed" if is_allowed else "failed")

    def _start(self, key: tuple[str, str], call: FunctionCall, agent: str) -> Update:
        is_known = key in self._open
        shown = self._show(key, call, agent)
        self._begun.add(key)
        if shown.changes:
            self._changing.add(key)
        begin = update_tool_call if is_known else start_tool_call
        return begin(
            self._id_of(key),
            title=shown.title,
            kind=shown.kind,
            status="in_progress",
            content=[tool_terminal_ref(self.terminals[key])] if key in self.terminals else list(shown.changes),
            locations=list(shown.locations),
            raw_input=shown.arguments,
        )

    def _finish(self, key: tuple[str, str], finished: ToolFinished) -> Iterator[Update]:
        if key not in self._open:  # never started, such as a rejected call
            call = self._wanted.get(key) or FunctionCall(finished.message.name or "call", "{}")
            yield self._start(key, call, "")
        content = list(_content_of(finished.message))
        content += [
            tool_content(resource_link_block(str(source), source.location))
            for source in sources_in(finished.metadata)
            if source.location.startswith(("https://", "http://"))
        ]
        is_change = (key in self._changing and not finished.error) or key in self.terminals
        self._changing.discard(key)
        self._begun.discard(key)
        self.texts_before.pop(key, None)
        self.terminals.pop(key, None)
        yield update_tool_call(
            self._open.pop(key),
            status="failed" if finished.error else "completed",
            # The content replaces the earlier content; file changes and the terminal stay visible.
            content=None if is_change else content,
        )

    def _id_of(self, key: tuple[str, str]) -> str:
        """Return a session-wide unique id for a call, since models reuse call ids in later turns."""
        return self._open.setdefault(key, uuid.uuid4().hex)


def user_updates(messages: tuple[Message, ...]) -> Iterator[Update]:
    """Yield the user's latest messages as updates."""
    start = len(messages)
    while start and messages[start - 1].role == "user":
        start -= 1
    for message in messages[start:]:
        for item in message.items:
            block = text_block(item.text) if item.text is not None else media_block(item)
            if block is not None:
                yield UserMessageChunk(session_update="user_message_chunk", content=block)


def media_block(item: ContentItem) -> ImageContentBlock | AudioContentBlock | None:
    """Convert inline image or audio data to a content block; None for URLs and other media."""
    value = item.value
    if item.type not in ("image", "audio") or not isinstance(value, str) or not value.startswith("data:"):
        return None
    media_type, _, data = value[5:].partition(";base64,")
    return image_block(data, media_type) if item.type == "image" else audio_block(data, media_type)


def _content_of(message: Message) -> Iterator[Content]:
    for item in message.items:
        if item.text:
            yield text_content(item.text)
        elif (block := media_block(item)) is not None:
            yield tool_content(block)
