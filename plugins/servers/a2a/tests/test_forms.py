"""Messages, tasks, cards and errors in the form of A2A, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Message as A2AMessage
from google.protobuf.json_format import ParseDict

from jackfield.events import MediaDelta, ResponseReplaced, RunEvent, RunFinished, StreamReset, TextDelta, TurnFinished
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.servers import Refusal, RequestRefusedError
from jackfield.tools import Denial
from jackfield_a2a.card import card_of, check_version
from jackfield_a2a.messages import NOTE, history_of, messages_of, question_of, read_answers, read_message, show_part
from jackfield_a2a.rpc import error_of, read_rpc
from jackfield_a2a.tasks import answer_parts, listed_task, state_of, status_of, task_object, timestamp_of
from jackfield_a2a.updates import AnswerFold
from jackfield_serving import INPUT, AgentInfo, WaitingCall

PDF = "data:application/pdf;name=a%20b.pdf;base64,JVBERi0="


def message_of(*parts: Any, **more: Any) -> A2AMessage:
    return ParseDict({"messageId": "m1", "role": "ROLE_USER", "parts": list(parts), **more}, A2AMessage())


def run_of(**more: Any) -> Any:
    """Return a run as the service shows it."""
    about = {
        "run_id": "r", "session": "s", "number": 7, "agent": "clerk", "phase": "ended", "stop_reason": "finished",
        "changed": 1.5, "waiting": (), "error": "", "error_kind": "", "messages": (Message("user", "Hi"),),
        "response": (Message("assistant", "Hello."),),
    }  # fmt: skip
    return SimpleNamespace(**{**about, **more})


def waiting_for(*names: str, kind: str = "approval", **more: Any) -> Any:
    waits = tuple(
        WaitingCall(call_id=f"c{n}", call=FunctionCall(name, '{"n": 1}'), kind=kind, **more)  # type: ignore[arg-type]
        for n, name in enumerate(names)
    )
    return run_of(phase="waiting", waiting=waits)


# --- what a client sends ---


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"text": "Hi"}, "Hi"),
        ({"data": {"b": 1, "a": "é"}}, None),
        (
            {"raw": "iVBO", "mediaType": "image/png", "filename": "a.png"},
            ContentItem(image="data:image/png;base64,iVBO"),
        ),
        ({"raw": "UklG", "mediaType": "AUDIO/wav"}, ContentItem(audio="data:AUDIO/wav;base64,UklG")),
        (
            {"url": "https://example.org/a.mp4", "mediaType": "video/mp4"},
            ContentItem(video="https://example.org/a.mp4"),
        ),
        ({"url": "https://example.org/a"}, ContentItem(file="https://example.org/a")),
    ],
    ids=["text", "data", "image", "audio", "video", "an address"],
)
def test_each_part_of_a_message_is_read_as_its_kind(part: Any, expected: Any) -> None:
    message = read_message(message_of(part))
    if expected is None:
        assert isinstance(message.content, str)
        assert '"é"' in message.content
    else:
        assert message.content == (expected if isinstance(expected, str) else [expected])
    assert message.extra == {NOTE: {"id": "m1", "answers": False}}


def test_a_message_of_several_texts_keeps_each() -> None:
    texts = [ContentItem(text="Hi"), ContentItem(text="again")]
    assert read_message(message_of({"text": "Hi"}, {"text": "again"})).content == texts


def test_a_file_keeps_its_name_and_type_and_an_answer_is_noted() -> None:
    file = read_message(message_of({"raw": "JVBERi0=", "filename": "a b.pdf"}, taskId="t")).items[0].value
    assert isinstance(file, str)
    assert "application/octet-stream" in file
    assert "a%20b.pdf" in file
    assert read_message(message_of({"text": "Hi"}, taskId="t")).extra == {NOTE: {"id": "m1", "answers": True}}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (message_of({"url": "/etc/passwd"}), "message.parts.0.url must be an https:"),
        (message_of({"text": "Hi"}, {"url": "file:///etc/passwd"}), "message.parts.1.url must be an https:"),
        (message_of({}), "message.parts.0 is empty"),
        (message_of({"raw": ""}), "message.parts.0 is empty"),
        (message_of({"text": "Hi"}, role="ROLE_AGENT"), "must be ROLE_USER"),
        (message_of({"text": "Hi"}, role="ROLE_UNSPECIFIED"), "must be ROLE_USER"),
        (message_of({"text": "Hi"}, referenceTaskIds=["t"]), "referenceTaskIds is not supported"),
    ],
    ids=["a path", "a file address", "empty", "no bytes", "an agent", "no role", "references"],
)
def test_a_message_that_cannot_be_read_is_refused(message: A2AMessage, reason: str) -> None:
    with pytest.raises(RequestRefusedError, match=reason):
        read_message(message)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [("yes", True), ("YES.", True), (" ok! ", True), ("approve", True), ("no", False), ("Reject.", False)],
)
def test_a_word_decides_all_calls(text: str, allowed: bool) -> None:
    assert read_answers(message_of({"text": text}), waiting_for("pay", "send")) == {"c0": allowed, "c1": allowed}


def test_a_data_part_decides_each_call_by_its_id_and_pause() -> None:
    answers = {"approvals": {"c0@7": True, "c1@7": "no money"}}
    assert read_answers(message_of({"data": answers}), waiting_for("pay", "send")) == {
        "c0": True,
        "c1": Denial("no money"),
    }
    turn = read_answers(message_of({"text": "yes"}), waiting_for(INPUT, kind="input"))
    assert [message.content for message in turn[INPUT]] == ["yes"]


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([{"text": "maybe"}], "invalid_params"),
        ([{"text": "yes"}, {"data": {}}], "invalid_params"),
        ([{"data": {"approvals": {}}}], "invalid_params"),
        ([{"data": {"approvals": {"c0@7": 1}}}], "invalid_params"),
        ([{"data": {"approvals": {"c0@7": True}}}, {"data": {"approvals": {"c1@7": True}}}], "invalid_params"),
        ([{"data": {"approvals": {"c0@6": True}}}], "not_waiting"),
        ([{"data": {"approvals": {"c0": True}}}], "not_waiting"),
    ],
    ids=["no decision", "both", "nothing", "a number", "two lists", "an earlier pause", "no pause"],
)
def test_an_answer_to_no_open_question_is_refused(parts: list[Any], code: str) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        read_answers(message_of(*parts), waiting_for("pay", "send"))
    assert caught.value.code == code
    assert code != "not_waiting" or "'c0" in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        {"id": 1, "method": "a"},
        {"jsonrpc": "1.0", "id": 1, "method": "a"},
        {"jsonrpc": "2.0", "method": "a"},
        {"jsonrpc": "2.0", "id": True, "method": "a"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "a"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
    ],
)
def test_only_a_request_with_an_id_is_one(table: dict[str, Any]) -> None:
    with pytest.raises(RequestRefusedError):
        read_rpc(table)
    request = read_rpc({"jsonrpc": "2.0", "id": "x", "method": "a"})
    assert (request.id, request.method, request.params) == ("x", "a", {})
    for params in (None, [], 0):
        assert read_rpc({"jsonrpc": "2.0", "id": "x", "method": "a", "params": params}).params == params


# --- what a client gets ---


@pytest.mark.parametrize(
    ("item", "part"),
    [
        (ContentItem(text="Hi"), {"text": "Hi"}),
        (ContentItem(image="data:image/png;base64,iVBO"), {"raw": "iVBO", "mediaType": "image/png"}),
        (ContentItem(file=PDF), {"raw": "JVBERi0=", "mediaType": "application/pdf", "filename": "a b.pdf"}),
        (ContentItem(image="https://example.org/a.png"), {"url": "https://example.org/a.png"}),
        (ContentItem(file="/srv/private/a.pdf"), {"text": "[file]"}),
    ],
    ids=["text", "image", "file", "an address", "a path"],
)
def test_each_item_is_a_part_and_no_path_is_shown(item: ContentItem, part: Any) -> None:
    assert show_part(item) == part


@pytest.mark.parametrize(
    ("phase", "reason", "state"),
    [
        ("queued", "", "SUBMITTED"),
        ("running", "", "WORKING"),
        ("waiting", "approval_needed", "INPUT_REQUIRED"),
        ("ended", "finished", "COMPLETED"),
        ("ended", "empty_reply", "COMPLETED"),
        ("ended", "cancelled", "CANCELED"),
        ("ended", "time_limit", "FAILED"),
        ("ended", "", "FAILED"),
    ],
)
def test_a_task_has_the_state_of_its_run(phase: str, reason: str, state: str) -> None:
    run = run_of(phase=phase, stop_reason=reason)
    assert state_of(run) == f"TASK_STATE_{state}"
    assert listed_task(run) == {
        "id": "r",
        "contextId": "s",
        "status": {"state": f"TASK_STATE_{state}", "timestamp": "1970-01-01T00:00:01.500Z"},
    }
    assert timestamp_of(1_700_000_000) == "2023-11-14T22:13:20.000Z"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"stop_reason": "time_limit"}, "the run reached a limit: time_limit"),
        ({"stop_reason": "", "error": "sk-secret", "error_kind": "ZeroDivisionError"}, ""),
        ({"stop_reason": "", "error": "sk-secret"}, "the run failed"),
        ({"stop_reason": "", "error_kind": "ZeroDivisionError"}, "the run failed"),
        ({}, None),
    ],
    ids=["a limit", "an error", "without its kind", "without its text", "finished"],
)
def test_only_a_failed_task_names_a_cause_and_no_insides(more: dict[str, Any], text: str | None) -> None:
    status = status_of(run_of(**more))
    assert ("message" in status) is (text is not None)
    if text is not None:
        [part] = status["message"]["parts"]
        assert text in part["text"]
        assert ("reached a limit" in part["text"]) == (more["stop_reason"] != "")
        assert "sk-secret" not in str(status)
        assert status["message"]["messageId"] == "status-r-7"


def test_a_question_names_the_agent_the_call_and_its_id() -> None:
    question = question_of(waiting_for("pay", agent="helper", in_doubt=True))
    text, data = question["parts"]
    assert text["text"].startswith('May helper call pay with {"n": 1}? Answer yes or no. The program stopped')
    assert data == {
        "data": {"approval": {"id": "c0@7", "tool": "pay", "arguments": {"n": 1}, "agent": "helper", "inDoubt": True}}
    }
    as_written = WaitingCall(call_id="c", call=FunctionCall("pay", "{broken"))
    [_, data] = question_of(run_of(phase="waiting", waiting=(as_written,)))["parts"]
    assert data["data"]["approval"]["arguments"] == "{broken", "a person decides about what the model wrote"
    assert question_of(waiting_for("pay"))["parts"][0]["text"] == 'May clerk call pay with {"n": 1}? Answer yes or no.'
    assert question_of(waiting_for(INPUT, kind="input"))["parts"] == [{"text": "It is your turn: enter your message."}]


def sent(text: str, identity: str = "", *, answers: bool = False) -> Message:
    return Message("user", text, extra={NOTE: {"id": identity, "answers": answers}} if identity else None)


def test_a_task_has_its_own_messages_and_as_much_history_as_asked_for() -> None:
    before = (sent("old", "m0"), Message("assistant", "older"), sent("one", "m1"), Message("assistant", "first"))
    run = run_of(messages=(*before, sent("two", "m2", answers=True)), response=(Message("assistant", "second"),))
    assert [message.get_text_content() for message in messages_of(run)] == ["one", "first", "two", "second"]
    history = history_of(run, None)
    assert [(one["messageId"], one["parts"], one["taskId"], one["contextId"]) for one in history] == [
        ("m1", [{"text": "one"}], "r", "s"), ("m2", [{"text": "two"}], "r", "s"),
    ]  # fmt: skip
    assert [len(history_of(run, length)) for length in (0, 1, 2, 9)] == [0, 1, 2, 2]
    assert history_of(run, 1)[0]["messageId"] == "m2"
    task = task_object(run)
    assert task["artifacts"][0]["parts"] == [{"text": "first\n\nsecond"}]
    assert "artifacts" not in task_object(run, has_artifacts=False)
    assert "history" not in task_object(run, history_length=0)
    unknown = run_of(messages=(Message("user", "a"), Message("assistant", "b"), Message("user", "c")), response=())
    assert [one["messageId"] for one in history_of(unknown, None)] == ["r-0"]
    assert task_object(run_of(session=""))["contextId"] == "r"


def test_an_answer_is_its_texts_and_then_its_media() -> None:
    image = ContentItem(image="data:image/png;base64,iVBO")
    messages = (
        Message("assistant", [ContentItem(text="See"), image, ContentItem(text=" this.")]),
        Message("function", [ContentItem(text="hidden"), image], name="t"),
        Message("assistant", ""),
        Message("assistant", "Done."),
    )
    assert answer_parts(messages) == [{"text": "See this.\n\nDone."}, {"raw": "iVBO", "mediaType": "image/png"}]
    assert answer_parts(messages[1:3]) == []


CODES = {
    "invalid_json": (-32700, "JSON_PARSE_ERROR"), "method_not_found": (-32601, "METHOD_NOT_FOUND"),
    "invalid_params": (-32602, "INVALID_PARAMS"), "invalid_request": (-32600, "INVALID_REQUEST"),
    "not_found": (-32001, "TASK_NOT_FOUND"), "not_cancelable": (-32002, "TASK_NOT_CANCELABLE"),
    "no_push_notifications": (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    "unsupported": (-32004, "UNSUPPORTED_OPERATION"), "session_busy": (-32004, "UNSUPPORTED_OPERATION"),
    "not_waiting": (-32004, "UNSUPPORTED_OPERATION"), "conflict": (-32004, "UNSUPPORTED_OPERATION"),
    "content_type": (-32005, "CONTENT_TYPE_NOT_SUPPORTED"),
    "no_extended_card": (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"), "version": (-32009, "VERSION_NOT_SUPPORTED"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), CODES.items())
def test_an_error_has_the_number_and_reason_of_the_protocol(code: str, expected: tuple[int, str]) -> None:
    reply = error_of(Refusal(status=400, code=code, message="no"), "x")
    [data] = reply["error"]["data"]
    assert (reply["id"], reply["error"]["code"], data["reason"]) == ("x", *expected)
    assert (data["domain"], data["metadata"]) == ("a2a-protocol.org", {"code": code})


@pytest.mark.parametrize(
    ("status", "number"), [(400, -32600), (404, -32600), (429, -32603), (500, -32603), (503, -32603)]
)
def test_an_unknown_error_is_the_servers_or_the_requests(status: int, number: int) -> None:
    reply = error_of(Refusal(status=status, code="odd", message="no", retry_after_s=2.5))
    assert (reply["id"], reply["error"]["code"]) == (None, number)
    assert reply["error"]["data"][0]["metadata"] == {"code": "odd", "retryAfterSeconds": "2.5"}


@pytest.mark.parametrize(
    ("takes", "modes"),
    [
        ((), []),
        (("images",), ["image/*"]),
        (("audio",), ["audio/*"]),
        (("video",), ["video/*"]),
        (("files",), ["application/pdf"]),
        (("images", "video", "files"), ["image/*", "video/*", "application/pdf"]),
    ],
)
@pytest.mark.parametrize("has_tokens", [False, True])
def test_a_card_names_what_the_agent_takes_and_whether_a_token_is_needed(
    takes: tuple[str, ...], modes: list[str], has_tokens: bool
) -> None:
    kinds = {kind: kind in takes for kind in ("images", "audio", "video", "files")}
    info: Any = SimpleNamespace(name="clerk", description="", **kinds)
    card = card_of(info, "https://example.org/a2a/clerk", has_tokens=has_tokens)
    assert card["defaultInputModes"] == ["text/plain", "application/json", *modes]
    assert card["description"] == card["skills"][0]["description"] == "The agent clerk."
    assert ("securitySchemes" in card, "securityRequirements" in card) == (has_tokens, has_tokens)
    assert [(one["url"], one["protocolBinding"], one["protocolVersion"]) for one in card["supportedInterfaces"]] == [
        ("https://example.org/a2a/clerk", "JSONRPC", "1.0"), ("https://example.org/a2a/clerk", "HTTP+JSON", "1.0"),
    ]  # fmt: skip
    assert card["capabilities"] == {"streaming": True, "pushNotifications": False, "extendedAgentCard": False}


@pytest.mark.parametrize("header", ["1.0", "1", "1.9"])
def test_versions_of_the_same_number_are_spoken(header: str) -> None:
    check_version(header)


@pytest.mark.parametrize(
    ("header", "shown"), [(None, "0.3"), ("", "0.3"), ("0.3", "0.3"), ("2.0", "2.0"), ("10.0", "10.0")]
)
def test_any_other_version_is_refused(header: str | None, shown: str) -> None:
    with pytest.raises(RequestRefusedError, match=f"A2A {shown} is not supported: send the header A2A-Version: 1.0"):
        check_version(header)


# --- an answer that grows ---

PIXEL = ContentItem(image="data:image/png;base64,iVBO")
SHOWN = {"raw": "iVBO", "mediaType": "image/png"}
OTHER = ContentItem(image="https://example.org/a.png")
SHOWN_OTHER = {"url": "https://example.org/a.png"}


def fold_of(*events: Any, **options: Any) -> list[tuple[Any, bool]]:
    """Return the parts of each update, and whether they are appended."""
    fold = AnswerFold(**options)
    placed = [event if isinstance(event, RunEvent) else RunEvent("r", 1, "a", 0, event) for event in events]
    updates = [update for event in placed for update in fold.feed(event)]
    assert {update["artifact"]["artifactId"] for update in updates} <= {"answer"}
    return [(update["artifact"]["parts"], update["append"]) for update in updates]


def test_an_answer_grows_by_what_is_new_and_turns_are_apart() -> None:
    assert fold_of(
        TextDelta("See"),
        TextDelta(""),
        RunEvent("below", 1, "b", 1, TextDelta("of a helper")),
        TurnFinished(1, (Message("assistant", "See this."),), Usage()),
        TextDelta("Done."),
        TurnFinished(2, (Message("assistant", "Done."),), Usage()),
        RunFinished("finished", (Message("assistant", "See this."),), Usage()),
    ) == [
        ([{"text": "See"}], False), ([{"text": " this."}], True), ([{"text": "\n\nDone."}], True),
    ]  # fmt: skip
    before = [Message("assistant", "Before.")]
    assert fold_of(TextDelta("More"), TextDelta("."), messages=before) == [
        ([{"text": "\n\nMore"}], True), ([{"text": "."}], True),
    ]  # fmt: skip
    image = [Message("assistant", [PIXEL])]
    assert fold_of(TextDelta("More."), messages=image) == [([{"text": "More."}], True)], "it exists already"


def test_media_belong_to_their_turn_and_those_that_were_not_streamed_follow() -> None:
    first, second = (Message("assistant", [ContentItem(text="See"), *media]) for media in ([PIXEL, OTHER, PIXEL], []))
    assert fold_of(
        TextDelta("See"), MediaDelta(PIXEL), TurnFinished(1, (first,), Usage()),
        TextDelta("See"), TurnFinished(2, (second,), Usage()),
    ) == [
        ([{"text": "See"}], False), ([SHOWN], True), ([SHOWN_OTHER], True), ([SHOWN], True),
        ([{"text": "\n\nSee"}], True),
    ]  # fmt: skip


def test_media_that_turn_out_otherwise_are_replaced() -> None:
    whole = (Message("assistant", [ContentItem(text="See"), OTHER]),)
    *_, replaced, appended = fold_of(
        TextDelta("See"), MediaDelta(PIXEL), TurnFinished(1, whole, Usage()), TextDelta("More.")
    )
    assert replaced == ([{"text": "See"}, SHOWN_OTHER], False)
    assert appended == ([{"text": "\n\nMore."}], True)


@pytest.mark.parametrize(
    ("shown", "whole"),
    [
        ([TextDelta("Se")], [{"text": ""}]),
        ([MediaDelta(PIXEL)], [{"text": ""}]),
        ([TextDelta("Se"), MediaDelta(PIXEL)], [{"text": ""}]),
    ],
    ids=["text", "an image", "both"],
)
def test_an_attempt_that_failed_is_withdrawn_whatever_it_has_shown(shown: list[Any], whole: list[Any]) -> None:
    assert fold_of(StreamReset("broken")) == []
    *_, (parts, appended) = fold_of(*shown, StreamReset("broken"))
    assert (parts, appended) == (whole, False)


def test_an_answer_that_turns_out_otherwise_replaces_what_was_shown_with_all_before_it() -> None:
    first = (Message("assistant", [ContentItem(text="See"), PIXEL]),)
    updates = fold_of(
        TextDelta("See"), MediaDelta(PIXEL), TurnFinished(1, first, Usage()),
        TextDelta("Don"), TurnFinished(2, (Message("assistant", "Other."),), Usage()),
    )  # fmt: skip
    assert updates[:3] == [([{"text": "See"}], False), ([SHOWN], True), ([{"text": "\n\nDon"}], True)]
    assert updates[3:] == [([{"text": "See\n\nOther."}, SHOWN], False)]


def test_an_agent_that_does_not_stream_has_its_answer_at_the_end() -> None:
    answer = (Message("assistant", "All."),)
    assert fold_of(ResponseReplaced(answer), RunFinished("finished", answer, Usage())) == [([{"text": "All."}], False)]
    assert fold_of(RunFinished("finished", answer, Usage()), has_turns=True) == []


@pytest.mark.parametrize(("description", "shown"), [("Pays bills.", "Pays bills."), ("", "The agent clerk.")])
def test_a_card_describes_its_agent_and_its_only_skill(description: str, shown: str) -> None:
    card = card_of(AgentInfo(name="clerk", description=description), "https://example.org/a2a/clerk", has_tokens=False)
    assert (card["description"], card["skills"][0]["description"]) == (shown, shown)
