"""Events of any run become a valid stream, and the messages that the stream makes are those of the fold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ag_ui_validate.pytest_plugin import assert_valid_agui
from hypothesis import given
from hypothesis import strategies as st

from jackfield.events import (
    AgentEvent,
    ApprovalNeeded,
    FunctionCallDelta,
    ModelEvent,
    ReasoningDelta,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Message, Usage
from jackfield_ag_ui.ending import waiting_calls
from jackfield_ag_ui.stream import EventFold

Wire = dict[str, Any]
TEXT = st.text(alphabet="ab 🙂", min_size=1, max_size=6)
PIECE = TEXT.map(TextDelta) | TEXT.map(ReasoningDelta)
CALL = st.tuples(st.lists(st.sampled_from(["", "1", "22"]), max_size=3), st.booleans())


@st.composite
def turns(draw: st.DrawFn) -> list[ModelEvent | AgentEvent]:
    """A turn, perhaps with a withdrawn attempt, streamed in part or not at all, and the results of its calls."""
    events: list[ModelEvent | AgentEvent] = []
    if draw(st.booleans()):
        events += draw(st.lists(PIECE, max_size=3))
        if draw(st.booleans()):
            events.append(FunctionCallDelta(0, "c1", "look", "[1"))
        events.append(StreamReset("again"))
    pieces = draw(st.lists(PIECE, max_size=4))
    calls = draw(st.lists(CALL, max_size=2))
    shown = draw(st.integers(0, len(pieces)))
    events += pieces[:shown]
    messages = [
        Message("assistant", "", reasoning_content=text)
        for text in ["".join(piece.text for piece in pieces if isinstance(piece, ReasoningDelta))]
        if text
    ]
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    messages += [Message("assistant", text)] if text or not calls else []
    for index, (digits, is_streamed) in enumerate(calls):
        arguments = f"[{''.join(digits) or 0}]"
        if is_streamed and shown == len(pieces):
            events.append(FunctionCallDelta(index, f"c{index}", "look"))
            events += [FunctionCallDelta(index, arguments=piece) for piece in (arguments[:1], arguments[1:])]
        call = FunctionCall("look", arguments)
        messages.append(Message("assistant", "", function_call=call, extra={"function_id": f"c{index}"}))
    events.append(TurnFinished(1, tuple(messages), Usage()))
    for index in range(len(calls)):
        result = Message("function", "seen", name="look", extra={"function_id": f"c{index}"})
        events.append(ToolStarted(index, f"c{index}", FunctionCall("look", "[]")))
        events.append(ToolFinished(index, f"c{index}", result, 0.1))
    return events


ENDS = st.sampled_from([RunFinished("finished", (), Usage()), RunFailed("broke", "OSError"), None])


@given(parts=st.lists(turns(), min_size=1, max_size=3), nested=st.sampled_from([None, 0, 1]), end=ENDS)
def test_every_stream_is_valid_and_makes_the_messages_of_the_fold(
    parts: list[list[ModelEvent | AgentEvent]], nested: int | None, end: AgentEvent | None
) -> None:
    fold = EventFold("root")

    def placed() -> Iterator[RunEvent]:
        yield RunEvent("root", 1, "helper", 0, RunStarted((Message("user", "Hi"),)))
        for index, part in enumerate(parts):
            is_nested = index == nested
            for event in part:
                yield RunEvent(
                    "below" if is_nested else "root", 1, "clerk" if is_nested else "helper", is_nested, event
                )
            if is_nested:
                yield RunEvent("below", 1, "clerk", 1, RunFinished("finished", (), Usage()))
        if end is not None:
            yield RunEvent("root", 1, "helper", 0, end)

    stream: list[Wire] = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}]
    for event in placed():
        stream += json.loads(json.dumps(list(fold.feed(event))))
    stream += fold.finish("t", "r")
    # A call that was withdrawn ends with the arguments that it has.
    assert_valid_agui(stream, max_warnings=0, severity_overrides={"AGUI204": "off"})
    made: dict[str, Any] = {}
    for sent in stream:
        apply(made, sent)
    expected = {message["id"]: message for message in fold.messages if message["role"] in ("assistant", "reasoning")}
    assert {key: value for key, value in made.items() if value != ("", {})} == {
        key: content_of(message) for key, message in expected.items() if content_of(message) != ("", {})
    }
    if isinstance(end, RunFinished):
        check_history(fold, parts, nested)


def check_history(fold: EventFold, parts: list[list[ModelEvent | AgentEvent]], nested: int | None) -> None:
    """The messages say what the turns say."""
    texts, thoughts, calls = "", "", []
    for index, part in enumerate(parts):
        for event in part:
            if isinstance(event, TurnFinished) and index != nested:
                texts += "".join(message.get_text_content() for message in event.messages)
                thoughts += "".join(str(message.reasoning_content or "") for message in event.messages)
                calls += [message.function_call.arguments for message in event.messages if message.function_call]
    own = [message for message in fold.messages if "subagentRunId" not in message and message["role"] == "assistant"]
    assert "".join(message.get("content", "") for message in own) == texts
    reasoning = [one for one in fold.messages if "subagentRunId" not in one and one["role"] == "reasoning"]
    assert "".join(message["content"] for message in reasoning) == thoughts
    shown = [call["function"]["arguments"] for message in own for call in message.get("toolCalls", ())]
    assert shown == calls


def content_of(message: Wire) -> Any:
    """The text of a message and its calls."""
    calls = {call["id"]: call["function"]["arguments"] for call in message.get("toolCalls", ())}
    return message.get("content") or "", calls


def apply(made: dict[str, Any], event: Wire) -> None:
    """Apply an event as a client does."""
    match event["type"]:
        case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
            text, calls = made.get(event["messageId"], ("", {}))
            made[event["messageId"]] = (text + event["delta"], calls)
        case "TOOL_CALL_START":
            text, calls = made.get(event["parentMessageId"], ("", {}))
            made[event["parentMessageId"]] = (text, {**calls, event["toolCallId"]: ""})
        case "TOOL_CALL_ARGS":
            for key, (text, calls) in made.items():
                if event["toolCallId"] in calls:
                    arguments = calls[event["toolCallId"]] + event["delta"]
                    made[key] = (text, {**calls, event["toolCallId"]: arguments})
        case "MESSAGES_SNAPSHOT":
            made.clear()
            made.update(
                {
                    message["id"]: content_of(message)
                    for message in event["messages"]
                    if message["role"] in ("assistant", "reasoning")
                }
            )


def test_an_interrupt_says_that_its_call_may_have_been_made() -> None:
    both = (FunctionCall("pay", "{}"), FunctionCall("pay", "{}"))
    needed = ApprovalNeeded(both, ("c1", "c2"), in_doubt=frozenset({"c2"}))
    certain, doubtful = waiting_calls(needed, lambda call_id, _: (call_id, ""), (), "1.r").values()
    for waiting, in_doubt in ((certain, False), (doubtful, True)):
        assert ("may have been made already" in waiting.interrupt["message"]) == in_doubt
        assert waiting.interrupt["metadata"]["jackfield"]["inDoubt"] == in_doubt
