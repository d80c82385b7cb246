"""Events of any run become a valid stream, and the messages that the stream makes are those of the fold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ag_ui_validate.pytest_plugin import assert_valid_agui
from hypothesis import given
from hypothesis import strategies as st

from jackfield.events import (
    AgentEvent,
    ApprovalNeeded,
    FunctionCallDelta,
    HandedOff,
    MediaDelta,
    ModelEvent,
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
    TurnStarted,
)
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield_ag_ui.ending import waiting_calls
from jackfield_ag_ui.history import NOTE
from jackfield_ag_ui.stream import STATE, EventFold

Wire = dict[str, Any]
TEXT = st.text(alphabet="ab 🙂", min_size=1, max_size=6)
IMAGE = ContentItem(image="https://example.org/a.png")
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
        assert ("may already have been made" in waiting.interrupt["message"]) == in_doubt
        assert waiting.interrupt["metadata"]["jackfield"]["inDoubt"] == in_doubt


@pytest.mark.parametrize(
    ("before", "is_certain"),
    [(["start a", "end a", "start b"], True), (["start a", "start b"], False), (["start b"], True), ([], False)],
    ids=["one after another", "two at once", "one", "none"],
)
def test_a_nested_agent_is_shown_below_the_only_call_that_runs(before: list[str], is_certain: bool) -> None:
    fold = EventFold("root")
    wires: list[Wire] = []

    def feed(event: Any, run_id: str = "root", depth: int = 0) -> None:
        wires.extend(fold.feed(RunEvent(run_id, 1, "helper", depth, event)))

    feed(RunStarted((Message("user", "Hi"),)))
    for number, step in enumerate(before):
        what, call_id = step.split()
        result = Message("function", "seen", name="look", extra={"function_id": call_id})
        call = FunctionCall("look", "{}")
        feed(ToolStarted(number, call_id, call) if what == "start" else ToolFinished(0, call_id, result, 0.1))
    feed(RunStarted((Message("user", "Work"),)), "below", 1)
    feed(TextDelta("Done."), "below", 1)
    [started] = [wire for wire in wires if wire["type"] == "SUBAGENT_STARTED"]
    begun = [wire["toolCallId"] for wire in wires if wire["type"] == "TOOL_CALL_START"]
    assert started.get("parentToolCallId") == (begun[-1] if is_certain else None)


def test_a_whole_response_after_its_pieces_is_shown_once() -> None:
    fold = EventFold("root")
    said = (Message("assistant", "Hello."),)
    wires: list[Wire] = []
    for event in (
        RunStarted((Message("user", "Hi"),)),
        TurnStarted(1),
        TextDelta("Hel"),
        ResponseReplaced(said),
        TextDelta("lo."),
        TurnFinished(1, said, Usage()),
        ResponseReplaced(said),
    ):
        wires.extend(fold.feed(RunEvent("root", 1, "helper", 0, event)))
    deltas = [wire["delta"] for wire in wires if wire["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "".join(deltas) == "Hello."
    assert [message["content"] for message in fold.messages if message["role"] == "assistant"] == ["Hello."]
    assert [wire for wire in wires if wire["type"] == "MESSAGES_SNAPSHOT"] == []


class Feed:
    """A fold and the events that came out of it. Events are those of the run itself, or of a nested one by its name."""

    def __init__(self) -> None:
        self.fold = EventFold("root")
        self.wires: list[Wire] = []

    def __call__(self, *events: Any, run: str = "root", depth: int = 0, agent: str = "") -> list[Wire]:
        new: list[Wire] = []
        for event in events:
            new += self.fold.feed(RunEvent(run, 1, agent or run, depth, event))
        self.wires += new
        return new

    def begin(self) -> Feed:
        self(RunStarted((Message("user", "Hi"),)))
        return self

    def end(self) -> list[Wire]:
        return list(self.fold.finish("t", "r"))


def asked(call_id: str, name: str = "look", arguments: str = "{}") -> Message:
    return Message("assistant", "", function_call=FunctionCall(name, arguments), extra={"function_id": call_id})


def result_of(call_id: str, **more: Any) -> ToolFinished:
    message = Message("function", "seen", name="look", extra={"function_id": call_id})
    return ToolFinished(0, call_id, message, 0.1, **more)


def turn(*messages: Message) -> TurnFinished:
    return TurnFinished(1, messages, Usage())


def only(wires: list[Wire], kind: str) -> list[Wire]:
    return [wire for wire in wires if wire["type"] == kind]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (RunFinished("finished", (), Usage()), {"outcome": {"type": "success"}}),
        (RunFinished("empty_reply", (), Usage()), {"outcome": {"type": "success"}}),
        (RunFinished("approval_needed", (), Usage()), {"outcome": {"type": "suspended"}}),
        (RunFinished("input_needed", (), Usage()), {"outcome": {"type": "suspended"}}),
        (RunFinished("turn_limit", (), Usage()), {"code": "turn_limit"}),
        (RunFinished("cancelled", (), Usage()), {"code": "cancelled"}),
        (RunFailed("sk-secret", "ZeroDivisionError"), {"code": "server_error"}),
        (None, {"code": "interrupted"}),
    ],
    ids=lambda end: getattr(end, "stop_reason", None) or type(end).__name__,
)
def test_a_nested_agent_ends_as_its_run_does(end: Any, expected: dict[str, Any]) -> None:
    feed = Feed().begin()
    feed(TextDelta("Hm"), run="below", depth=1)
    events = feed(end, run="below", depth=1) if end else feed.end()
    kind = "SUBAGENT_FINISHED" if "outcome" in expected else "SUBAGENT_ERROR"
    [ended] = only(events, kind)
    assert ended["subagentRunId"] == "below"
    assert expected.items() <= ended.items()
    assert "sk-secret" not in str(ended)
    assert only(feed.end(), kind) == []
    feed(TextDelta("Again"), run="below", depth=1)
    assert [wire["subagentRunId"] for wire in only(feed.wires, "SUBAGENT_STARTED")] == ["below"] * 2


def test_nested_agents_name_the_one_above_and_end_from_the_inside() -> None:
    feed = Feed().begin()
    for depth, run in enumerate(("a", "b", "c"), start=1):
        feed(TextDelta(run), run=run, depth=depth)
    begun = only(feed.wires, "SUBAGENT_STARTED")
    assert [(one["name"], one.get("parentSubagentRunId")) for one in begun] == [("a", None), ("b", "a"), ("c", "b")]
    assert [one["subagentRunId"] for one in only(feed.end(), "SUBAGENT_ERROR")] == ["c", "b", "a"]


def test_only_nested_agents_and_those_that_took_over_are_named() -> None:
    feed = Feed().begin()
    feed(TextDelta("Hi"), turn(Message("assistant", "Hi")), HandedOff("root", "clerk"), TextDelta("Ho"))
    feed(TextDelta("Hm"), run="below", depth=1)
    assert [one.get("name") for one in only(feed.wires, "TEXT_MESSAGE_START")] == [None, "clerk", "below"]


def test_progress_belongs_to_its_call_and_its_agent() -> None:
    feed = Feed().begin()
    feed(turn(asked("c1")), ToolStarted(0, "c1", FunctionCall("look", "{}")))
    [call] = only(feed.wires, "TOOL_CALL_START")
    [shown] = feed(ToolProgress(0, "c1", "half"))
    assert (shown["type"], shown["name"]) == ("CUSTOM", "jackfield.progress")
    assert shown["value"] == {"toolCallId": call["toolCallId"], "text": "half"}
    assert "subagentRunId" not in shown
    step = PreparationProgress("reading", 1, 3, "a.pdf")
    shown = feed(step, run="below", depth=1)[-1]
    assert (shown["type"], shown["value"], shown["subagentRunId"]) == ("CUSTOM", {"text": step.text}, "below")


def test_a_medium_that_was_withdrawn_is_taken_back() -> None:
    feed = Feed().begin()
    first, second = (ContentItem(image=f"https://example.org/{name}.png") for name in "ab")
    feed(MediaDelta(first), StreamReset("again"), MediaDelta(second), turn(Message("assistant", [second])))
    assert [one["content"] for one in feed.fold.messages[1:]] == ["![image](https://example.org/b.png)"]
    assert len(only(feed.wires, "MESSAGES_SNAPSHOT")) == 1
    assert feed(StreamReset("before anything was shown")) == []


def test_the_ids_of_a_turn_count_only_its_own_withdrawn_attempts() -> None:
    feed = Feed().begin()
    feed(TextDelta("Hm"), StreamReset("again"), TextDelta("Ha"), StreamReset("again"))
    feed(TextDelta("Hi"), turn(Message("assistant", "Hi")), TextDelta("Ho"))
    assert [one["messageId"] for one in only(feed.wires, "TEXT_MESSAGE_START")] == [
        "message_0_0.root", "message_0_0r1.root", "message_0_0r2.root", "message_1_0.root",
    ]  # fmt: skip


def test_the_usage_names_the_model_that_answered_last() -> None:
    for names, expected in ((("a", "b", ""), "b"), (("",), None)):
        feed = Feed().begin()
        feed(*(ModelFinished("stop", name) for name in names), RunFinished("finished", (), Usage(prompt_tokens=3)))
        assert feed.end()[-1]["usage"][0].get("model") == expected


def test_the_names_of_a_changed_state_are_escaped_as_paths() -> None:
    feed = Feed().begin()
    feed(turn(asked("c1"), asked("c2")), result_of("c1", metadata={STATE: {"a": 1}}))
    feed(result_of("c2", metadata={STATE: {"~1/": 2}}))
    assert only(feed.wires, "STATE_SNAPSHOT") == [{"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}]
    [changed] = only(feed.wires, "STATE_DELTA")
    assert changed["delta"] == [{"op": "add", "path": "/~01~1", "value": 2}]
    assert feed.fold.state == {"a": 1, "~1/": 2}


def test_only_the_run_itself_pauses_and_a_call_of_two_agents_of_one_name_is_uncertain() -> None:
    needed = ApprovalNeeded((FunctionCall("pay", "{}"),), ("b/c1",), agents=("clerk",))
    for twins in (["x"], ["x", "y"]):
        feed = Feed().begin()
        for run in twins:
            feed(turn(asked("c1", "pay")), needed, run=run, depth=1, agent="clerk")
        assert feed.fold.waiting == {}
        feed(needed)
        [waiting] = feed.fold.waiting.values()
        assert waiting.interrupt["id"] == "b/c1.1.root"
        assert ("toolCallId" in waiting.interrupt) == (len(twins) == 1)
        feed.fold.answer({"i": {"id": "m", "role": "tool", "content": "paid"}})
        assert (feed.fold.waiting, feed.fold.end, feed.fold.messages[-1]["id"]) == ({}, None, "m")


def test_a_result_that_the_client_gave_is_not_shown_to_it() -> None:
    feed = Feed().begin()
    feed(turn(asked("c1"), asked("c2"), asked("c3")))
    first, second, third = (one["toolCallId"] for one in only(feed.wires, "TOOL_CALL_START"))
    for identity, call in (("m1", first), ("m3", third)):
        feed.fold.answer({call: {"id": identity, "role": "tool", "toolCallId": call, "content": "seen"}})
    feed(result_of("c1"), result_of("c2", error="Denied"), result_of("c3"), result_of("unknown"))
    [result] = only(feed.wires, "TOOL_CALL_RESULT")
    assert (result["toolCallId"], result["metadata"]) == (second, {"error": "Denied"})
    assert [one["id"] for one in feed.fold.messages if one["role"] == "tool"] == ["m1", "m3", f"result_{second}"]


def test_a_part_of_a_run_counts_what_was_used_since_its_pause() -> None:
    feed = Feed().begin()
    feed.fold.begin_part()
    feed(RunFinished("approval_needed", (), Usage(prompt_tokens=3)))
    feed.fold.begin_part()
    feed.fold.answer({})
    assert feed.end()[-1]["type"] == "RUN_ERROR", "it has no end until it ends again"
    feed(RunFinished("finished", (), Usage(prompt_tokens=5)))
    assert feed.end()[-1]["usage"] == [{"inputTokens": 2, "totalTokens": 2}]


def test_calls_that_no_delta_showed_follow_those_that_were_shown_and_all_end() -> None:
    feed = Feed().begin()
    feed(FunctionCallDelta(0, "c0", "look", "{}"), FunctionCallDelta(1, "c1", "look", "{}"))
    feed(turn(*(asked(f"c{number}") for number in range(3))))
    begun = [one["toolCallId"] for one in only(feed.wires, "TOOL_CALL_START")]
    assert [one["toolCallId"] for one in only(feed.wires, "TOOL_CALL_END")] == begun
    assert len(begun) == 3
    # A call that the agent makes without its model is shown when it starts.
    feed(ToolStarted(0, "own", FunctionCall("look", '{"a": 1}')))
    assert [one["type"] for one in feed.wires[-3:]] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
    [result] = only(feed(result_of("own")), "TOOL_CALL_RESULT")
    assert result["toolCallId"] == feed.wires[-2]["toolCallId"]


def test_a_call_of_a_second_attempt_is_found_in_a_replay_that_has_no_first_one() -> None:
    """The record omits withdrawn attempts, so the ids of a replay have no number of the attempt."""
    needed = ApprovalNeeded((FunctionCall("pay", "{}"),), ("c1",))
    live, again = Feed().begin(), Feed().begin()
    live(FunctionCallDelta(0, "c1", "pay"), StreamReset("again"), FunctionCallDelta(0, "c1", "pay", "{}"))
    for feed in (live, again):
        feed(turn(asked("c1", "pay")), needed)
    (shown,), (own,) = live.fold.waiting, again.fold.waiting
    assert shown != own
    for feed in (live, again):
        for identity in (shown, own):
            found = feed.fold.find_waiting(identity)
            assert found is not None
            assert found[1].call_id == "c1"
    assert live.fold.find_waiting("call_1_0.root") is None


def test_a_nested_agent_with_two_that_could_have_asked_it_names_none() -> None:
    feed = Feed().begin()
    for run, depth in (("a", 1), ("b", 1), ("c", 2)):
        feed(TextDelta(run), run=run, depth=depth)
    assert ["parentSubagentRunId" in one for one in only(feed.wires, "SUBAGENT_STARTED")] == [False] * 3


def test_a_call_that_starts_again_after_a_pause_still_runs_once() -> None:
    feed = Feed().begin()
    started = ToolStarted(0, "c1", FunctionCall("clerk", "{}"))
    feed(turn(asked("c1", "clerk")), started, started)
    [call] = only(feed.wires, "TOOL_CALL_START")
    [begun] = only(feed(TextDelta("Hm"), run="below", depth=1), "SUBAGENT_STARTED")
    assert begun["parentToolCallId"] == call["toolCallId"]
    feed(RunFinished("finished", (), Usage()), run="below", depth=1)
    feed(result_of("c1"))
    [begun] = only(feed(TextDelta("Ha"), run="other", depth=1), "SUBAGENT_STARTED")
    assert "parentToolCallId" not in begun, "its call has ended"


def test_a_result_belongs_to_the_latest_call_of_its_id() -> None:
    """Models use ids of calls again in later turns."""
    feed = Feed().begin()
    for _ in range(2):
        feed(turn(asked("c1")), ToolStarted(0, "c1", FunctionCall("look", "{}")), result_of("c1"))
    begun = [one["toolCallId"] for one in only(feed.wires, "TOOL_CALL_START")]
    assert len({*begun}) == 2
    assert [one["toolCallId"] for one in only(feed.wires, "TOOL_CALL_RESULT")] == begun


def test_a_state_of_the_client_that_has_no_names_is_replaced() -> None:
    for state in ([1], "page", 0):
        feed = Feed()
        note = {"id": "m", "state": state, "context": [], "system": []}
        feed(RunStarted((Message("user", "Hi", extra={NOTE: note}),)))
        feed(turn(asked("c1")), result_of("c1", metadata={STATE: {"a": 1}}))
        assert only(feed.wires, "STATE_SNAPSHOT") == [{"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}]
        assert feed.fold.state == {"a": 1}


def test_an_interrupt_names_the_nested_agent_that_makes_the_call_and_no_other() -> None:
    feed = Feed().begin()
    feed(turn(asked("c1", "pay")))
    feed(turn(asked("c1", "pay")), run="below", depth=1, agent="middle")
    feed(turn(asked("c1", "pay")), run="deep", depth=2, agent="clerk")
    pay = FunctionCall("pay", "{}")
    feed(ApprovalNeeded((pay, pay, pay), ("c1", "a/c1", "a/b/c1"), agents=("", "middle", "middle/clerk")))
    makers = [one.interrupt.get("subagentRunId") for one in feed.fold.waiting.values()]
    assert makers == [None, "below", "deep"]
    begun = [one["toolCallId"] for one in only(feed.wires, "TOOL_CALL_START")]
    assert [one.interrupt["toolCallId"] for one in feed.fold.waiting.values()] == begun


def test_a_person_in_a_group_may_send_several_messages_at_once() -> None:
    feed = Feed().begin()
    texts = ("Hi", "Who pays?", "I do.", "Now.")
    roles = ("user", "assistant", "user", "user")
    said = [Message(role, text) for role, text in zip(roles, texts, strict=True)]
    feed(turn(said[1]), RunFinished("input_needed", (), Usage()), RunStarted(tuple(said)))
    assert [one["content"] for one in feed.fold.messages] == list(texts)
    assert len({one["id"] for one in feed.fold.messages}) == 4


def test_the_last_of_several_messages_of_a_response_may_grow() -> None:
    feed = Feed().begin()
    for texts in (["One."], ["One.", "Tw"], ["One.", "Two."]):
        feed(ResponseReplaced(tuple(Message("assistant", text) for text in texts)))
    feed.end()
    assert [one["content"] for one in feed.fold.messages[1:]] == ["One.", "Two."]
    assert [one["delta"] for one in only(feed.wires, "TEXT_MESSAGE_CONTENT")] == ["One.", "o."]


def test_a_withdrawn_thought_is_refilled_once_and_only_in_its_turn() -> None:
    feed = Feed().begin()
    feed(ReasoningDelta("Hm"), StreamReset("again"), ReasoningDelta("So"), TextDelta("Hi"), ReasoningDelta("Ah"))
    withdrawn, refilled, new = (one["messageId"] for one in only(feed.wires, "REASONING_START"))
    assert withdrawn == refilled != new
    feed = Feed().begin()
    feed(ReasoningDelta("Hm"), StreamReset("again"), turn(Message("assistant", "Hi")), ReasoningDelta("Ah"))
    withdrawn, new = (one["messageId"] for one in only(feed.wires, "REASONING_START"))
    assert withdrawn != new


def test_a_text_after_a_thought_is_a_message_of_its_own() -> None:
    feed = Feed().begin()
    feed(TextDelta("Hi"), ReasoningDelta("Hm"), TextDelta(" again"))
    feed.end()
    assert [(one["role"], one["content"]) for one in feed.fold.messages[1:]] == [
        ("assistant", "Hi"), ("reasoning", "Hm"), ("assistant", " again"),
    ]  # fmt: skip
    assert len({one["id"] for one in feed.fold.messages}) == 4


@pytest.mark.parametrize("streamed", range(4))
def test_media_that_were_not_streamed_follow_those_that_were(streamed: int) -> None:
    feed = Feed().begin()
    items = [ContentItem(image=f"https://example.org/{name}.png") for name in "abc"]
    feed(*map(MediaDelta, items[:streamed]), turn(Message("assistant", items)))
    shown = "".join(one["delta"] for one in only(feed.wires, "TEXT_MESSAGE_CONTENT"))
    assert [shown.count(f"{name}.png") for name in "abc"] == [1, 1, 1]


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([TextDelta("Hallo")], Message("assistant", "Hello")),
        (
            [TextDelta("Ha"), ReasoningDelta("Hm"), TextDelta("llo")],
            Message("assistant", "Hello", reasoning_content="Hm"),
        ),
        ([TextDelta("Hallo")], Message("assistant", [ContentItem(text="Hello"), IMAGE])),
        ([TextDelta("Hallo"), MediaDelta(IMAGE)], Message("assistant", [ContentItem(text="Hello"), IMAGE])),
        ([FunctionCallDelta(0, "c1", "look", '{"a": 1}')], asked("c1", arguments='{"a": 2}')),
    ],
    ids=["text", "two texts", "a medium that was not streamed", "a medium that was", "arguments"],
)
def test_an_answer_that_differs_from_its_pieces_replaces_them(pieces: list[Any], whole: Message) -> None:
    live, again = Feed().begin(), Feed().begin()
    live(*pieces, turn(whole))
    again(turn(whole))
    [snapshot] = only(live.wires, "MESSAGES_SNAPSHOT")
    assert snapshot["messages"] == live.fold.messages
    shown, expected = (
        [content_of(one) for one in feed.fold.messages if one["role"] == "assistant"] for feed in (live, again)
    )
    assert shown == expected


def test_calls_that_are_streamed_out_of_order_keep_their_arguments() -> None:
    feed = Feed().begin()
    feed(FunctionCallDelta(1, "c1", "look", "[1]"), FunctionCallDelta(0, "c0", "look", "[0]"))
    feed(turn(asked("c0", arguments="[0]"), asked("c1", arguments="[1]")))
    assert only(feed.wires, "MESSAGES_SNAPSHOT") == []
    later, earlier = (one["toolCallId"] for one in only(feed.wires, "TOOL_CALL_START"))
    feed(result_of("c0"), result_of("c1"))
    assert [one["toolCallId"] for one in only(feed.wires, "TOOL_CALL_RESULT")] == [earlier, later]


def test_a_state_that_a_nested_agent_changes_names_the_agent() -> None:
    feed = Feed().begin()
    feed(turn(asked("c1"), asked("c2")), run="below", depth=1)
    for call_id in ("c1", "c2"):
        feed(result_of(call_id, metadata={STATE: {call_id: 1}}), run="below", depth=1)
    for kind in ("STATE_SNAPSHOT", "STATE_DELTA"):
        assert [one["subagentRunId"] for one in only(feed.wires, kind)] == ["below"]
