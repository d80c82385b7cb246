"""Convert a run's events to AG-UI events and messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    HandedOff,
    MediaDelta,
    ModelFinished,
    PreparationProgress,
    ReasoningDelta,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.servers import failure_of
from jackfield_ag_ui.ending import Waiting, end_events, input_wanted, waiting_calls
from jackfield_ag_ui.history import (
    Wire,
    note_of,
    reasoning_of,
    show_call,
    show_content,
    show_message,
    show_messages,
    text_of,
)
from jackfield_serving import markdown_of

STATE = "ag_ui_state"
"""Key in a tool result's metadata for updates to the application state."""

_Role = Literal["assistant", "reasoning"]
_Kind = Literal["message", "reasoning", "call"]
_ATTEMPT = re.compile(r"r\d+(?=\.)")


@dataclass(slots=True)
class _Call:
    """A call of the current turn, and how much of it has been sent."""

    name: str = ""
    arguments: str = ""
    wire: Wire | None = None


@dataclass(slots=True)
class _Speaker:
    """An agent of the run: the main agent or a nested one.

    Attributes:
        run_id, agent, depth: See the agent's events.
        parent_call: The id of the call that runs the agent, or '' if uncertain.
        is_active: True while the agent is working.
        is_named: True if its messages carry its name, because it is not the main agent.
        turns: The number of completed turns.
        open, pieces: The message being streamed, and the deltas since it was opened.
        answer: The agent's message in this turn, which contains its calls.
        shown: The text deltas sent in this turn, by message role.
        made: The messages created in this turn.
        spare: A reasoning message whose text was withdrawn, to be refilled.
        media: The number of media items sent in this turn.
        calls: The calls of this turn, by index.
        counts: The number of ids assigned in this turn, by kind.
        attempt: The number of withdrawn attempts in this turn.
        ids: The client's ids of calls, by call id.
        running: The client's ids of running calls.
        listed: The complete response, if the agent yields lists of messages.
    """

    run_id: str
    agent: str
    depth: int
    parent_call: str = ""
    is_active: bool = True
    is_named: bool = False
    turns: int = 0
    open: Wire | None = None
    answer: Wire | None = None
    pieces: list[str] = field(default_factory=list)
    shown: dict[str, list[str]] = field(default_factory=lambda: {"assistant": [], "reasoning": []})
    made: list[Wire] = field(default_factory=list)
    spare: Wire | None = None
    media: int = 0
    calls: dict[int, _Call] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    attempt: int = 0
    ids: dict[str, str] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    listed: list[Wire] = field(default_factory=list)

    @property
    def owner(self) -> Wire:
        """The field that attributes an event or a message to a nested agent; empty for the main agent."""
        return {"subagentRunId": self.run_id} if self.depth else {}

    def begin_turn(self) -> None:
        """Reset the state of the previous turn."""
        self.open = self.answer = self.spare = None
        self.shown = {"assistant": [], "reasoning": []}
        self.media = 0
        self.made, self.calls, self.counts = [], {}, {}


class EventFold:
    """Converts the events of one run.

    Message and call ids are derived from positions in the run, so every process assigns the same ids.

    Args:
        run_id: The run id.
        client_tools: The names of the front end's tools.

    Attributes:
        messages: The conversation's messages so far.
        state: The application state, or None if there is none.
        note: The parts of the request that were stored with the run.
        end: The end of the run or its last pause; None while it is running.
        waiting: The questions of the last pause, by the ids that the client sees.
    """

    def __init__(self, run_id: str, client_tools: Collection[str] = ()) -> None:
        self.messages: list[Wire] = []
        self.state: Any = None
        self.note: Mapping[str, Any] = {}
        self.end: RunFinished | RunFailed | None = None
        self.waiting: dict[str, Waiting] = {}
        self._run_id = run_id
        self._client_tools = client_tools
        self._speakers: dict[str, _Speaker] = {}
        self._answered: set[str] = set()
        self._model = ""
        self._pauses = 0
        self._spent = Usage()

    def feed(self, placed: RunEvent) -> Iterator[Wire]:  # noqa: C901, PLR0912 - one case for each event
        """Yield the AG-UI events for one event."""
        speaker = self._speakers.get(placed.run_id)
        if speaker is None or not speaker.is_active:
            speaker = self._activate(placed)
            if speaker.depth:
                yield self._announce(speaker)
        match placed.event:
            case RunStarted():
                if not speaker.depth:
                    yield from self._begin(placed.event.messages)
            case TextDelta(text):
                yield from self._grow(speaker, "assistant", text)
            case ReasoningDelta(text):
                yield from self._grow(speaker, "reasoning", text)
            case MediaDelta(item):
                speaker.media += 1
                yield from self._grow(speaker, "assistant", markdown_of(item), is_medium=True)
            case FunctionCallDelta() as delta:
                call = speaker.calls.setdefault(delta.index, _Call())
                call.name = delta.name or call.name
                call.arguments += delta.arguments
                yield from self._show_call(speaker, call, delta.arguments)
            case HandedOff(to=to):
                speaker.agent, speaker.is_named = to, True
            case ModelFinished():
                self._model = placed.event.model or self._model
            case StreamReset():
                yield from self._withdraw(speaker)
            case TurnFinished():
                yield from self._finish_turn(speaker, placed.event.messages)
            case ResponseReplaced():
                yield from self._replace(speaker, placed.event.messages)
            case ToolStarted(call_id=call_id, call=function_call):
                yield from self._start_tool(speaker, call_id, function_call)
            case ToolProgress(call_id=call_id, text=text):
                value = {"toolCallId": speaker.ids.get(call_id, ""), "text": text}
                yield {"type": "CUSTOM", "name": "jackfield.progress", "value": value, **speaker.owner}
            case PreparationProgress() as progress:
                yield {
                    "type": "CUSTOM",
                    "name": "jackfield.progress",
                    "value": {"text": progress.text},
                    **speaker.owner,
                }
            case ToolFinished():
                yield from self._finish_tool(speaker, placed.event)
            case ApprovalNeeded():
                if not speaker.depth:
                    self._pauses += 1
                    place = f"{self._pauses}.{self._run_id}"
                    self.waiting = waiting_calls(placed.event, self._id_of_call, self._client_tools, place)
            case RunFinished() | RunFailed() as end:
                yield from self._finish_speaker(speaker, end)

    def finish(self, thread: str, run: str) -> Iterator[Wire]:
        """Close everything that is still open, then yield the final event."""
        for speaker in sorted(self._speakers.values(), key=lambda one: -one.depth):
            yield from self._close(speaker)
            yield from self._end_calls(speaker)
            if speaker.depth and speaker.is_active:
                speaker.is_active = False
                yield _subagent_end(speaker, self.end)
        yield from end_events(
            self.end, self.waiting, {"threadId": thread, "runId": run}, model=self._model, spent=self._spent
        )

    def find_waiting(self, identity: str) -> tuple[str, Waiting] | None:
        """Find a pending question by the client's id; return our id and the question, or None."""
        for own, waiting in self.waiting.items():
            if stable_id(own) == stable_id(identity):
                return own, waiting
        return None

    def answer(self, results: Mapping[str, Wire]) -> None:
        """Continue the run with results of front-end tools, given as messages by call id."""
        self.messages += results.values()
        self._answered.update(results)
        self.end, self.waiting = None, {}

    def begin_part(self) -> None:
        """Exclude the usage so far, because each AG-UI run reports only its own model requests."""
        if isinstance(self.end, RunFinished):
            self._spent = self.end.usage

    def snapshot(self) -> Wire:
        """Return an event with all messages."""
        return {"type": "MESSAGES_SNAPSHOT", "messages": [dict(message) for message in self.messages]}

    # --- agents ---

    def _activate(self, placed: RunEvent) -> _Speaker:
        speaker = self._speakers.get(placed.run_id)
        if speaker is None:
            speaker = _Speaker(placed.run_id, placed.agent, placed.depth, is_named=placed.depth > 0)
            parents = [one for one in self._speakers.values() if one.depth == placed.depth - 1 and one.is_active]
            running = [call for one in parents for call in one.running]
            if len(running) == 1:
                speaker.parent_call = running[0]
            self._speakers[placed.run_id] = speaker
        speaker.is_active = True
        return speaker

    def _announce(self, speaker: _Speaker) -> Wire:
        event: Wire = {"type": "SUBAGENT_STARTED", "subagentRunId": speaker.run_id, "name": speaker.agent}
        if speaker.parent_call:
            event["parentToolCallId"] = speaker.parent_call
        parents = [one for one in self._speakers.values() if one.depth == speaker.depth - 1 and one.is_active]
        if speaker.depth > 1 and len(parents) == 1:
            event["parentSubagentRunId"] = parents[0].run_id
        return event

    def _begin(self, messages: Sequence[Message]) -> Iterator[Wire]:
        if not self.messages:
            self.messages = show_messages(messages, self._run_id)
            self.note = note_of(messages)
            self.state = self.note.get("state")
            return
        # The run restarts after the turn of a person in the group.
        news: list[Message] = []
        for message in reversed(messages):
            if message.role != "user":
                break
            news.insert(0, message)
        for index, message in enumerate(news):
            self.messages.append(show_message(message, f"answer_{len(self.messages)}_{index}.{self._run_id}"))
        yield self.snapshot()

    def _finish_speaker(self, speaker: _Speaker, end: RunFinished | RunFailed) -> Iterator[Wire]:
        if isinstance(end, RunFinished) and not speaker.turns:
            yield from self._replace(speaker, end.messages)
        yield from self._close(speaker)
        yield from self._end_calls(speaker)
        speaker.begin_turn()
        if speaker.depth:
            speaker.is_active = False
            yield _subagent_end(speaker, end)
            return
        self.end = end
        if isinstance(end, RunFinished) and end.stop_reason == "input_needed":
            self._pauses += 1
            self.waiting = input_wanted(f"{self._pauses}.{self._run_id}")

    # --- texts ---

    def _grow(self, speaker: _Speaker, role: _Role, text: str, *, is_medium: bool = False) -> Iterator[Wire]:
        if not text:
            return
        if speaker.open is None or speaker.open["role"] != role:
            yield from self._close(speaker)
            yield from self._open(speaker, role)
        message = speaker.open
        assert message is not None  # noqa: S101 - a message is open
        speaker.pieces.append(text)
        if not is_medium:
            speaker.shown[role].append(text)
        kind = "TEXT_MESSAGE_CONTENT" if role == "assistant" else "REASONING_MESSAGE_CONTENT"
        yield {"type": kind, "messageId": message["id"], "delta": text, **speaker.owner}

    def _open(self, speaker: _Speaker, role: _Role) -> Iterator[Wire]:
        if role == "assistant":
            message = self._answer_of(speaker)
            if "content" in message:  # a second text of the same turn
                message = self._make(speaker, {"id": self._next_id(speaker, "message"), "role": role})
            message["content"] = ""
            speaker.open = message
            name = {"name": speaker.agent} if speaker.is_named else {}
            yield {"type": "TEXT_MESSAGE_START", "messageId": message["id"], "role": role, **name, **speaker.owner}
            return
        message = speaker.spare or self._make(
            speaker, {"id": self._next_id(speaker, "reasoning"), "role": role, "content": ""}
        )
        speaker.spare, speaker.open = None, message
        yield {"type": "REASONING_START", "messageId": message["id"], **speaker.owner}
        yield {"type": "REASONING_MESSAGE_START", "messageId": message["id"], "role": role, **speaker.owner}

    def _close(self, speaker: _Speaker) -> Iterator[Wire]:
        message, speaker.open = speaker.open, None
        if message is None:
            return
        message["content"] += "".join(speaker.pieces)
        speaker.pieces.clear()
        identity = {"messageId": message["id"], **speaker.owner}
        if message["role"] == "assistant":
            yield {"type": "TEXT_MESSAGE_END", **identity}
        else:
            yield {"type": "REASONING_MESSAGE_END", **identity}
            yield {"type": "REASONING_END", **identity}

    def _withdraw(self, speaker: _Speaker) -> Iterator[Wire]:
        """Withdraw everything sent in this turn, because the model is retried."""
        if not (any(speaker.shown.values()) or speaker.media or speaker.answer):
            return
        yield from self._close(speaker)
        yield from self._end_calls(speaker)
        spare = next((message for message in speaker.made if message["role"] == "reasoning"), None)
        withdrawn = [message["id"] for message in speaker.made if message is not spare]
        self.messages = [message for message in self.messages if message["id"] not in withdrawn]
        if spare is not None:
            # Clients retain reasoning that a snapshot omits, so the message is emptied and refilled.
            spare["content"] = ""
        speaker.begin_turn()
        speaker.spare = spare
        speaker.attempt += 1
        yield self.snapshot()

    def _finish_turn(self, speaker: _Speaker, messages: Sequence[Message]) -> Iterator[Wire]:
        """Send everything that has not been streamed, since answers may arrive whole and always do in a replay."""
        spoken = [message for message in messages if message.role == "assistant"]
        reasoning = "".join(reasoning_of(message) for message in spoken)
        items = [item for message in spoken for item in message.items]
        is_off = False
        for role, whole in (("reasoning", reasoning), ("assistant", "".join(item.text or "" for item in items))):
            shown = "".join(speaker.shown[role])
            if whole.startswith(shown):
                yield from self._grow(speaker, "reasoning" if role == "reasoning" else "assistant", whole[len(shown) :])
            elif role == "assistant":
                yield from self._close(speaker)
                self._set_text(speaker, "".join(text_of(message) for message in spoken))
                is_off = True
        if not is_off:
            for item in [item for item in items if item.text is None][speaker.media :]:
                yield from self._grow(speaker, "assistant", markdown_of(item), is_medium=True)
        are_calls_off = yield from self._finish_calls(speaker, spoken)
        yield from self._close(speaker)
        if is_off or are_calls_off:
            yield self.snapshot()
        speaker.begin_turn()
        speaker.turns, speaker.attempt = speaker.turns + 1, 0

    def _set_text(self, speaker: _Speaker, text: str) -> None:
        """Replace everything the agent has written in this turn, including its media."""
        answer = self._answer_of(speaker)
        answer["content"] = text
        others = [one["id"] for one in speaker.made if one["role"] == "assistant" and one is not answer]
        self.messages = [one for one in self.messages if one["id"] not in others]

    # --- calls ---

    def _show_call(self, speaker: _Speaker, call: _Call, piece: str) -> Iterator[Wire]:
        """Send a call's new argument text, and its start if it is new."""
        if not call.name:
            return
        if call.wire is None:
            yield from self._close(speaker)
            holder = self._answer_of(speaker)
            call.wire = show_call(self._next_id(speaker, "call"), FunctionCall(call.name, ""))
            holder.setdefault("toolCalls", []).append(call.wire)
            yield {
                "type": "TOOL_CALL_START",
                "toolCallId": call.wire["id"],
                "toolCallName": call.name,
                "parentMessageId": holder["id"],
                **speaker.owner,
            }
            piece = call.arguments
        if piece:
            call.wire["function"]["arguments"] += piece
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call.wire["id"], "delta": piece, **speaker.owner}

    def _finish_calls(self, speaker: _Speaker, messages: Sequence[Message]) -> Generator[Wire, None, bool]:
        """Complete the calls of a turn; return True if a call differs from what was streamed."""
        shown = [call for _, call in sorted(speaker.calls.items()) if call.wire is not None]
        is_off = False
        calls = [(message.function_id or "", message.function_call) for message in messages if message.function_call]
        for index, (call_id, function_call) in enumerate(calls):
            if index == len(shown):
                shown.append(_Call(function_call.name))
                speaker.calls[max(speaker.calls, default=-1) + 1] = shown[index]
            call = shown[index]
            if function_call.arguments.startswith(call.arguments):
                piece = function_call.arguments[len(call.arguments) :]
                call.arguments = function_call.arguments
                yield from self._show_call(speaker, call, piece)
            elif call.wire is not None:
                call.wire["function"]["arguments"] = function_call.arguments
                is_off = True
            if call.wire is not None:
                speaker.ids[call_id] = call.wire["id"]
        yield from self._end_calls(speaker)
        return is_off

    def _end_calls(self, speaker: _Speaker) -> Iterator[Wire]:
        for call in speaker.calls.values():
            if call.wire is not None:
                yield {"type": "TOOL_CALL_END", "toolCallId": call.wire["id"], **speaker.owner}

    def _start_tool(self, speaker: _Speaker, call_id: str, function_call: FunctionCall) -> Iterator[Wire]:
        if call_id not in speaker.ids:  # the agent itself made the call, not its model
            call = _Call(function_call.name, function_call.arguments)
            yield from self._show_call(speaker, call, "")
            assert call.wire is not None  # noqa: S101 - the call has a name
            yield {"type": "TOOL_CALL_END", "toolCallId": call.wire["id"], **speaker.owner}
            speaker.ids[call_id] = call.wire["id"]
        if speaker.ids[call_id] not in speaker.running:
            speaker.running.append(speaker.ids[call_id])

    def _finish_tool(self, speaker: _Speaker, finished: ToolFinished) -> Iterator[Wire]:
        identity = speaker.ids.get(finished.call_id)
        if identity is None:
            return
        if identity in speaker.running:
            speaker.running.remove(identity)
        if identity not in self._answered:
            content = show_content(finished.message)
            result = {"id": f"result_{identity}", "role": "tool", "toolCallId": identity, "content": content}
            if finished.error:
                result["error"] = finished.error
            self._add(speaker, result)
            yield {
                "type": "TOOL_CALL_RESULT",
                "messageId": result["id"],
                "toolCallId": identity,
                "content": content,
                "role": "tool",
                **({"metadata": {"error": finished.error}} if finished.error else {}),
                **speaker.owner,
            }
        changes = finished.metadata.get(STATE)
        if isinstance(changes, Mapping):
            yield from self._change_state(speaker, changes)

    def _change_state(self, speaker: _Speaker, changes: Mapping[str, Any]) -> Iterator[Wire]:
        if not isinstance(self.state, dict):
            self.state = dict(changes)
            yield {"type": "STATE_SNAPSHOT", "snapshot": self.state, **speaker.owner}
            return
        self.state = {**self.state, **changes}
        delta = [
            {"op": "add", "path": "/" + key.replace("~", "~0").replace("/", "~1"), "value": value}
            for key, value in changes.items()
        ]
        yield {"type": "STATE_DELTA", "delta": delta, **speaker.owner}

    # --- whole responses ---

    def _replace(self, speaker: _Speaker, messages: Sequence[Message]) -> Iterator[Wire]:
        """Send the complete response of an agent that yields lists of messages."""
        if speaker.turns or (speaker.answer and not speaker.listed):
            return  # the deltas have been shown
        suffix = self._suffix(speaker)
        listed = [
            {**show_message(message, f"response_{index}.{suffix}"), **speaker.owner}
            for index, message in enumerate(messages)
        ]
        before, speaker.listed = speaker.listed, listed
        if listed == before:
            return
        known = {message["id"] for message in before}
        is_one_text = len(listed) == len(before) or (not before and len(listed) == 1)
        if is_one_text and listed[:-1] == before[:-1] and "toolCalls" not in listed[-1]:
            old = before[-1].get("content", "") if before else ""
            new = listed[-1].get("content", "")
            if listed[-1]["role"] == "assistant" and isinstance(new, str) and new.startswith(old):
                if speaker.open is None:
                    message = {**listed[-1], "content": old}
                    self.messages = [one for one in self.messages if one["id"] != message["id"]]
                    self.messages.append(message)
                    speaker.open = speaker.answer = message
                    yield {
                        "type": "TEXT_MESSAGE_START",
                        "messageId": message["id"],
                        "role": "assistant",
                        **speaker.owner,
                    }
                yield from self._grow(speaker, "assistant", new[len(old) :])
                return
        yield from self._close(speaker)
        self.messages = [one for one in self.messages if one["id"] not in known] + listed
        yield self.snapshot()

    # --- ids ---

    def _suffix(self, speaker: _Speaker) -> str:
        return speaker.run_id if speaker.depth else self._run_id

    def _next_id(self, speaker: _Speaker, kind: _Kind) -> str:
        count = speaker.counts.get(kind, 0)
        speaker.counts[kind] = count + 1
        attempt = f"r{speaker.attempt}" if speaker.attempt else ""
        return f"{kind}_{speaker.turns}_{count}{attempt}.{self._suffix(speaker)}"

    def _id_of_call(self, call_id: str, agents: str) -> tuple[str, str]:
        """Return the client's id of a call and the nested agent that makes it, each '' if ambiguous or unknown."""
        name, inner = agents.rpartition("/")[2], call_id.rpartition("/")[2] if agents else call_id
        makers = [
            one
            for one in self._speakers.values()
            if inner in one.ids and (one.agent == name if agents else not one.depth)
        ]
        if len(makers) != 1:
            return "", ""
        return makers[0].ids[inner], makers[0].run_id if makers[0].depth else ""

    def _answer_of(self, speaker: _Speaker) -> Wire:
        """Return the agent's message in this turn, creating it if necessary."""
        if speaker.answer is None:
            speaker.answer = self._make(speaker, {"id": self._next_id(speaker, "message"), "role": "assistant"})
        return speaker.answer

    def _make(self, speaker: _Speaker, message: Wire) -> Wire:
        speaker.made.append(message)
        return self._add(speaker, message)

    def _add(self, speaker: _Speaker, message: Wire) -> Wire:
        message.update(speaker.owner)
        self.messages.append(message)
        return message


def stable_id(identity: str) -> str:
    """Strip the attempt number from an id, because the record omits withdrawn attempts."""
    return _ATTEMPT.sub("", identity, count=1)


def _subagent_end(speaker: _Speaker, end: RunFinished | RunFailed | None) -> Wire:
    event: Wire = {"subagentRunId": speaker.run_id}
    if isinstance(end, RunFailed):
        return {"type": "SUBAGENT_ERROR", **event, "message": str(failure_of(end)), "code": failure_of(end).code}
    if isinstance(end, RunFinished) and end.stop_reason.endswith("_needed"):
        return {"type": "SUBAGENT_FINISHED", **event, "outcome": {"type": "suspended"}}
    if isinstance(end, RunFinished) and end.stop_reason in ("finished", "empty_reply"):
        return {"type": "SUBAGENT_FINISHED", **event, "outcome": {"type": "success"}}
    reason = end.stop_reason if end is not None else "interrupted"
    return {"type": "SUBAGENT_ERROR", **event, "message": f"the agent stopped: {reason}", "code": reason}
