"""Requests, answers and ends of AG-UI, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.events import ApprovalNeeded, RunFailed, RunFinished
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.servers import RequestRefusedError
from jackfield.tools import Denial
from jackfield_ag_ui.ending import end_events, error_event, input_wanted, read_answer, waiting_calls
from jackfield_ag_ui.face import _capabilities
from jackfield_ag_ui.history import NOTE, note_of, show_message, show_messages
from jackfield_ag_ui.request import read_request, read_thread
from jackfield_serving import INPUT, AgentInfo

HEAD = {"threadId": "t", "runId": "r"}
PAY, LOOK = FunctionCall("pay", '{"amount": 3}'), FunctionCall("look", "{}")
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    asked = list(messages) or [{"id": "m", "role": "user", "content": "Hi"}]
    return {
        "threadId": "t", "runId": "r", "state": {}, "messages": asked, "tools": [], "context": [],
        "forwardedProps": {}, **more,
    }  # fmt: skip


# --- requests ---


def test_the_context_and_the_state_come_first_and_are_kept() -> None:
    context = [{"description": "Page", "value": "tides"}, {"description": "User", "value": "Ada"}]
    question = read_request(body(state={"page": "é"}, context=context, parentRunId="p"))
    assert question.messages[0] == Message(
        "system", 'Page:\ntides\n\nUser:\nAda\n\nState of the application, as JSON:\n{"page":"é"}'
    )
    assert question.note == {"state": {"page": "é"}, "context": context}
    assert (question.thread, question.run, question.parent, question.message_ids) == ("t", "r", "p", ["m"])
    plain = read_request(body())
    assert [message.role for message in plain.messages] == ["user"]
    assert (plain.parent, plain.note) == ("", {"state": None, "context": []})
    for empty, text in (([], "[]"), (0, "0"), (False, "false")):
        asked = read_request(body(state=empty))
        assert asked.note["state"] == empty
        assert asked.messages[0] == Message("system", f"State of the application, as JSON:\n{text}")


def test_a_tool_without_parameters_takes_none() -> None:
    tools = [
        {"name": "a", "description": "A.", "parameters": None},
        {"name": "b", "description": "B.", "parameters": {"type": "object", "properties": {"n": {"type": "number"}}}},
    ]
    none, some = read_request(body(tools=tools)).client_tools
    assert none == {"name": "a", "description": "A.", "parameters": {"type": "object", "properties": {}}}
    assert some == tools[1]


@pytest.mark.parametrize(
    ("field", "length", "is_taken"), [("threadId", 200, True), ("runId", 201, False), ("runId", 0, False)]
)
def test_ids_have_at_most_200_characters(field: str, length: int, is_taken: bool) -> None:
    table = body(**{field: "x" * length})
    if is_taken:
        read_request(table)
    else:
        with pytest.raises(RequestRefusedError, match=f"{field} must consist of 1 to 200 printable characters"):
            read_request(table)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"threadId": "a\nb"}, "threadId must consist"),
        ({"parentRunId": ""}, "parentRunId must consist"),
        ({"forwardedProps": {"a": 1}}, "forwardedProps is not supported"),
        ({"colour": "red"}, "colour is not supported: AG-UI does not define this field"),
        (
            {"messages": [{"id": "a", "role": "assistant", "toolCalls": [{**CALL, "colour": "red"}]}]},
            r"^messages\.0\.toolCalls\.0\.colour is not supported",
        ),
        *(
            (
                {"tools": [{"name": "a", "description": "", "parameters": parameters}]},
                r"tools\.0\.parameters must be a JSON Schema",
            )
            for parameters in ([1], [], "", 0, False)
        ),
        ({"resume": [{"interruptId": "i", "status": "resolved"}]}, r"resume\.0\.payload is missing"),
        *(
            (
                {"resume": [{"interruptId": "i", "status": "cancelled", "payload": payload}]},
                r"resume\.0\.payload: must be omitted for a cancelled interrupt",
            )
            for payload in (1, 0, "", False)
        ),
        (
            {"resume": [{"interruptId": "i", "status": "resolved", "payload": 1}] * 2},
            r"resume\.1\.interruptId: an earlier entry already answers this interrupt",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_request_that_does_not_fit_is_refused_by_its_field(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(RequestRefusedError, match=reason):
        read_request(body(**more))


def test_answers_to_interrupts_are_read_by_their_ids() -> None:
    resume = [
        {"interruptId": "a", "status": "resolved", "payload": {"approved": True}},
        {"interruptId": "b", "status": "cancelled"},
        *(
            {"interruptId": str(index), "status": "resolved", "payload": one}
            for index, one in enumerate(("", 0, False))
        ),
    ]
    assert read_request(body(resume=resume)).resume == {"a": {"approved": True}, "b": None, "0": "", "1": 0, "2": False}


@pytest.mark.parametrize(
    ("last", "results", "has_news"),
    [
        ([], [], True),
        ([{"id": "r1", "role": "tool", "toolCallId": "c1", "content": "seen"}], ["c1"], False),
        (
            [
                {"id": "t", "role": "reasoning", "content": "Hm"},
                {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "seen"},
            ],
            ["c1"],
            False,
        ),
        ([{"id": "r1", "role": "tool", "toolCallId": "c1", "content": "seen", "subagentRunId": "x"}], [], True),
        (
            [
                {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "seen"},
                {"id": "n", "role": "user", "content": "And?"},
            ],
            [],
            True,
        ),
    ],
    ids=["no result", "a result", "after reasoning", "of a nested agent", "a question after it"],
)
def test_only_results_at_the_end_continue_a_run(last: list[Any], results: list[str], has_news: bool) -> None:
    asked = [{"id": "m", "role": "user", "content": "Hi"}, {"id": "a", "role": "assistant", "toolCalls": [CALL]}]
    question = read_request(body(*asked, *last))
    assert (list(question.results), question.has_news) == (results, has_news)
    assert all(result["toolCallId"] == call_id for call_id, result in question.results.items())


@pytest.mark.parametrize("table", [{}, {"threadId": 5}, {"threadId": "t", "runId": "r"}, {"threadId": ""}])
def test_a_request_to_stop_names_one_conversation(table: dict[str, Any]) -> None:
    assert read_thread({"threadId": "t"}) == "t"
    with pytest.raises(RequestRefusedError):
        read_thread(table)


# --- messages ---


def test_a_message_has_its_role_its_call_and_its_error() -> None:
    shown = [
        show_message(message, "i")
        for message in (
            Message("user", "Hi"),
            Message("function", "no", name="look", extra={"function_id": "c1", "error": "E"}),
            Message("function", "yes", name="look", extra={"function_id": "c1"}),
            Message("assistant", "", reasoning_content="Hm"),
            Message("assistant", "Hello.", reasoning_content="Hm"),
            Message("assistant", "", function_call=LOOK, extra={"function_id": "c1"}),
            Message(
                "assistant",
                [ContentItem(text=""), ContentItem(text="See "), ContentItem(image="https://example.org/a.png")],
            ),
        )
    ]
    assert shown == [
        {"id": "i", "role": "user", "content": "Hi"},
        {"id": "i", "role": "tool", "toolCallId": "c1", "content": "no", "error": "E"},
        {"id": "i", "role": "tool", "toolCallId": "c1", "content": "yes"},
        {"id": "i", "role": "reasoning", "content": "Hm"},
        {"id": "i", "role": "assistant", "content": "Hello."},
        {"id": "i", "role": "assistant", "toolCalls": [CALL]},
        {"id": "i", "role": "assistant", "content": "See ![image](https://example.org/a.png)"},
    ]


def test_no_path_of_the_server_is_shown_in_a_question() -> None:
    items = [ContentItem(image="/srv/a.png"), ContentItem(file="data:application/pdf;name=a.pdf;base64,JVBERi0=")]
    assert show_message(Message("user", items), "i")["content"] == [
        {"type": "text", "text": "[image]"},
        {
            "type": "document",
            "source": {"type": "data", "value": "JVBERi0=", "mimeType": "application/pdf"},
            "metadata": {"filename": "a.pdf"},
        },
    ]


def test_the_messages_of_a_client_come_back_as_it_sent_them() -> None:
    sent = [
        {"id": "s", "role": "system", "content": "Be brief."},
        {"id": "m", "role": "user", "content": "Hi"},
        {"id": "t", "role": "reasoning", "content": "Hm"},
        {"id": "a", "role": "assistant", "content": "See.", "toolCalls": [CALL, {**CALL, "id": "c2"}]},
        {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "seen"},
    ]
    question = read_request(body(*sent))
    shown = show_messages((Message("system", "The agent's own."), *question.messages), "r")
    assert [{key: value for key, value in one.items() if value is not None} for one in shown] == sent
    assert NOTE in (question.messages[1].extra or {})


NESTED = {**CALL, "id": "n1"}


def test_activities_and_nested_agents_are_no_part_of_what_the_model_reads() -> None:
    sent = [
        {"id": "p", "role": "activity", "activityType": "PLAN", "content": {}},
        {"id": "m", "role": "user", "content": "Hi", "name": "Ada"},
        {"id": "x", "role": "assistant", "toolCalls": [NESTED], "subagentRunId": "below"},
        {"id": "y", "role": "tool", "toolCallId": "n1", "content": "seen"},
        {"id": "s", "role": "system", "content": "Be brief."},
        {"id": "t", "role": "reasoning", "content": "Hm"},
        {"id": "a", "role": "assistant", "toolCalls": [CALL], "name": "Bo"},
        {"id": "r", "role": "tool", "toolCallId": "c1", "content": "no", "error": "E"},
        {"id": "e", "role": "assistant", "name": "Bo"},
    ]
    question = read_request(body(*sent))
    read = [(message.role, message.name, message.content, bool(message.function_call)) for message in question.messages]
    assert read == [
        ("user", "Ada", "Hi", False), ("system", None, "Be brief.", False), ("assistant", None, "", False),
        ("assistant", None, "", True), ("function", "look", "no", False), ("assistant", "Bo", "", False),
    ]  # fmt: skip
    assert (question.messages[4].function_id, question.messages[4].error) == ("c1", "E")
    assert question.message_ids == ["m", "y", "s", "a", "r", "e"]
    assert [one["id"] for one in show_messages(question.messages, "run")] == ["m", "s", "t", "a", "r", "e"]


@pytest.mark.parametrize(
    ("part", "kind"), [("image", "image"), ("audio", "audio"), ("video", "video"), ("document", "file")]
)
def test_a_part_of_a_question_comes_back_as_it_was_sent(part: str, kind: str) -> None:
    sources = [
        {"type": "url", "value": "https://example.org/a"},
        {"type": "data", "value": "JVBERi0=", "mimeType": "application/pdf"},
    ]
    parts = [{"type": part, "source": source} for source in sources]
    named = {**parts[1], "metadata": {"filename": "a b.pdf"}}
    unnamed = {**parts[1], "metadata": {"filename": 5}}
    [message] = read_request(body({"id": "m", "role": "user", "content": [*parts, named, unnamed]})).messages
    assert [item.type for item in message.items] == [kind] * 4
    assert show_message(message, "i")["content"] == [*parts, named if part == "document" else parts[1], parts[1]]


def test_messages_from_elsewhere_get_ids_of_their_places() -> None:
    kept = Message("user", "Hi", extra={NOTE: {"id": "m"}})
    call = Message("assistant", "", function_call=LOOK, extra={"function_id": "c1"})
    shown = show_messages([Message("system", "Be secret."), kept, call, call], "run")
    assert [one["id"] for one in shown] == ["m", "input_2.run", "input_3.run"]
    assert note_of([kept]) == {}


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_conversation_may_begin_with_any_role_and_repeat_an_id(role: str) -> None:
    sent = [{"id": "m", "role": role, "content": text} for text in ("Hi", "Ho")]
    system = {"id": "s", "role": "system", "content": "Be kind."}
    question = read_request(body(system, *sent, state={"page": 1}))
    said = [message for message in question.messages if message.role != "system"]
    assert note_of(said)["state"] == {"page": 1}
    assert show_messages(said, "run") == [system, *sent]


ENCRYPTED: list[tuple[dict[str, Any], str]] = [
    ({"id": "a", "role": "assistant", "content": "Hi", "encryptedValue": "x"}, "messages.0.encryptedValue"),
    (
        {"id": "a", "role": "assistant", "toolCalls": [{**CALL, "encryptedValue": "x"}]},
        "messages.0.toolCalls.0.encryptedValue",
    ),
    (
        {"id": "a", "role": "assistant", "toolCalls": [CALL, {**CALL, "id": "c2", "encryptedValue": "x"}]},
        "messages.0.toolCalls.1.encryptedValue",
    ),
]


@pytest.mark.parametrize(("message", "path"), ENCRYPTED, ids=["a message", "a call", "its second call"])
def test_what_another_agent_has_encrypted_is_refused(message: dict[str, Any], path: str) -> None:
    with pytest.raises(RequestRefusedError, match=f"{path} is not supported"):
        read_request(body(message))


def test_a_value_that_does_not_fit_is_named_by_its_whole_path() -> None:
    part = {"type": "image", "source": {"type": "data", "value": "AA=="}}
    with pytest.raises(RequestRefusedError, match=r"^messages\.0\..*content.*0.*source.*mimeType: Field required"):
        read_request(body({"id": "m", "role": "user", "content": [part]}))


@pytest.mark.parametrize(
    ("facts", "paths"),
    [
        ({}, set()),
        ({"images": True}, {"multimodal.input.image"}),
        ({"audio": True}, {"multimodal.input.audio"}),
        ({"video": True}, {"multimodal.input.video"}),
        ({"files": True}, {"multimodal.input.pdf", "multimodal.input.file"}),
        ({"takes_client_tools": True}, {"tools.clientProvided"}),
    ],
    ids=lambda value: next(iter(value), "nothing") if isinstance(value, dict) else "",
)
def test_the_facts_of_an_agent_are_capabilities_of_their_names(facts: dict[str, bool], paths: set[str]) -> None:
    info = AgentInfo(name="helper", description="Helps.", **{"takes_client_tools": False, **facts})
    abilities = _capabilities(info)
    assert abilities["identity"] == {"name": "helper", "type": "jackfield", "description": "Helps."}
    varied = {f"multimodal.input.{name}": value for name, value in abilities["multimodal"]["input"].items()}
    varied["tools.clientProvided"] = abilities["tools"]["clientProvided"]
    assert {path for path, value in varied.items() if value} == paths


# --- ends ---


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        ("approval", None, False),
        ("approval", {"approved": True}, True),
        ("approval", {"approved": False}, False),
        ("approval", {"approved": False, "reason": "no money"}, Denial("no money")),
        ("input", "My turn.", "My turn."),
        ("input", None, None),
    ],
)
def test_an_answer_has_the_form_that_its_interrupt_asks_for(kind: Any, payload: Any, expected: Any) -> None:
    assert read_answer(_waiting(kind), payload, "resume.0") == expected


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("approval", True),
        ("approval", {"approved": 1}),
        ("approval", {"approved": True, "reason": "why"}),
        ("approval", {"approved": True, "more": 1}),
        ("approval", {"approved": False, "reason": 5}),
        ("approval", {"approved": False, "reason": "no money", "more": 1}),
        ("approval", {}),
        ("input", " "),
        ("input", {"text": "x"}),
    ],
)
def test_any_other_answer_is_refused(kind: Any, payload: Any) -> None:
    with pytest.raises(RequestRefusedError, match=r"resume\.0\.payload does not match"):
        read_answer(_waiting(kind), payload, "resume.0")


def _waiting(kind: str) -> Any:
    if kind == "input":
        return next(iter(input_wanted("1.r").values()))
    needed = ApprovalNeeded((PAY,), ("c1",))
    return next(iter(waiting_calls(needed, lambda call_id, _: (call_id, ""), (), "1.r").values()))


def test_a_call_waits_for_the_front_end_or_for_a_person() -> None:
    needed = ApprovalNeeded((PAY, LOOK, LOOK, PAY), ("c1", "c2", "c3", "c4"), ("c1",), ("", "", "helper", ""))
    seen = {"c1": ("c1", ""), "c2": ("c2", ""), "c3": ("shown3", "below"), "c4": ("", "")}
    waiting = waiting_calls(needed, lambda call_id, _: seen[call_id], {"look"}, "7.r")
    assert {key: (one.call_id, one.kind) for key, one in waiting.items()} == {
        "c1": ("c1", "approval"),
        "c2": ("c2", "client_tool"),
        "c3.7.r": ("c3", "approval"),
        "c4.7.r": ("c4", "approval"),
    }
    first, nested, unseen = (waiting[key].interrupt for key in ("c1", "c3.7.r", "c4.7.r"))
    assert waiting["c2"].interrupt == {}
    assert (first["id"], first["toolCallId"], first["reason"]) == ("c1", "c1", "tool_call")
    assert first["message"].startswith("May the agent call pay? The program stopped during this call")
    assert first["metadata"] == {"jackfield": {"tool": "pay", "arguments": PAY.arguments, "inDoubt": True}}
    assert (nested["message"], nested["toolCallId"], nested["subagentRunId"]) == (
        "May helper call look?", "shown3", "below",
    )  # fmt: skip
    assert "toolCallId" not in unseen
    assert "subagentRunId" not in first
    [(identity, turn)] = input_wanted("7.r").items()
    assert (identity, turn.call_id, turn.kind, turn.interrupt["reason"]) == (
        f"{INPUT}.7.r", INPUT, "input", "input_required",
    )  # fmt: skip


USED = Usage(prompt_tokens=10, completion_tokens=5, reasoning_tokens=2, cached_tokens=4)


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("finished", {"type": "success"}),
        ("empty_reply", {"type": "success"}),
        ("cancelled", {"type": "cancelled"}),
    ],
)
@pytest.mark.parametrize(
    ("spent", "counts"),
    [
        (
            Usage(),
            {"inputTokens": 10, "outputTokens": 5, "reasoningTokens": 2, "cachedInputTokens": 4, "totalTokens": 15},
        ),
        (
            Usage(prompt_tokens=4, completion_tokens=5, reasoning_tokens=2, cached_tokens=4),
            {"inputTokens": 6, "totalTokens": 6},
        ),
        (USED, None),
    ],
    ids=["all", "what is new", "nothing new"],
)
def test_a_run_ends_with_its_outcome_and_what_it_has_used_since_it_was_continued(
    reason: Any, outcome: Any, spent: Usage, counts: Any
) -> None:
    [event] = end_events(RunFinished(reason, (), USED), {}, HEAD, model="m", spent=spent)
    usage = {} if counts is None else {"usage": [{"model": "m", **counts}]}
    assert event == {"type": "RUN_FINISHED", **HEAD, "outcome": outcome, **usage}


@pytest.mark.parametrize("reason", ["approval_needed", "input_needed"])
def test_a_pause_names_its_interrupts_or_the_calls_of_the_front_end(reason: Any) -> None:
    needed = ApprovalNeeded((PAY, LOOK), ("c1", "c2"))
    waiting = waiting_calls(needed, lambda call_id, _: (call_id, ""), {"look"}, "7.r")
    [event] = end_events(RunFinished(reason, (), Usage()), waiting, HEAD, model="", spent=Usage())
    assert event["outcome"] == {"type": "interrupt", "interrupts": [waiting["c1"].interrupt]}
    of_client = {"c2": waiting["c2"]}
    [event] = end_events(RunFinished(reason, (), Usage()), of_client, HEAD, model="", spent=Usage())
    assert event["outcome"] == {"type": "success", "pendingToolCallIds": ["c2"]}


@pytest.mark.parametrize(
    ("end", "code", "has_usage"),
    [
        (None, "server_error", False),
        (RunFinished("time_limit", (), USED), "time_limit", True),
        (RunFailed("sk-secret", "ZeroDivisionError"), None, False),
    ],
    ids=["lost", "a limit", "a failure"],
)
def test_any_other_end_is_an_error_without_insides(end: Any, code: str | None, has_usage: bool) -> None:
    [event] = end_events(end, {}, HEAD, model="", spent=Usage())
    assert event["type"] == "RUN_ERROR"
    assert code is None or event["code"] == code
    assert ("usage" in event) is has_usage
    assert "sk-secret" not in str(event)
    refused = error_event(RequestRefusedError("no", status=429, code="busy"))
    assert refused == {"type": "RUN_ERROR", "message": "no", "code": "busy"}
