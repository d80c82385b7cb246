"""Events, files and conversations as the page gets them, without a browser."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from jackfield import FnCallAgent, tool
from jackfield.citations import CITATIONS
from jackfield.errors import RunNotFoundError
from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    FunctionCallDelta,
    HandedOff,
    HistoryTrimmed,
    MediaDelta,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RetryScheduled,
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
from jackfield.messages import ContentItem, FunctionCall, Message, Usage, name_in_file
from jackfield.request import ModelFacts
from jackfield.servers import RequestRefusedError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_serving import QUESTION, Serving, ServingLimits, WaitingCall
from jackfield_web import files
from jackfield_web.api import Api
from jackfield_web.carrying import ExportedConversation, ExportedMessage, export_conversation, import_conversation
from jackfield_web.wire import item_as_wire, message_as_wire, question_in, wire_of

PIXEL = "data:image/png;base64,iVBO"
CALL = FunctionCall("pay", '{"amount": 3}')
USAGE = Usage(prompt_tokens=3, completion_tokens=5, cost=Decimal("0.5"), currency="EUR")
USED = {"prompt": 3, "completion": 5, "cost": {"amount": "0.5", "currency": "EUR"}}
CITED = {
    "mark": "1", "location": "/srv/docs/a.pdf", "part": "", "page": 2, "headings": ["Tides"],
    "passage": "low at six", "quote": "six", "start": 7, "end": 10, "answer_ranges": [[0, 3]],
}  # fmt: skip
SHOWN = {"name": "a.pdf", "page": 2, "url": "", "mark": "1", "headings": ("Tides",), "passage": "low at six"}
EVENTS: list[tuple[Any, Mapping[str, Any] | None]] = [
    (TextDelta("Hi"), {"type": "text", "text": "Hi"}),
    (ReasoningDelta("Hm"), {"type": "reasoning", "text": "Hm"}),
    (
        FunctionCallDelta(2, "c", "pay", '{"am'),
        {"type": "call", "index": 2, "name": "pay", "arguments": '{"am'},
    ),
    (MediaDelta(ContentItem(image=PIXEL)), {"type": "media", "item": {"type": "image", "address": PIXEL}}),
    (StreamReset("broken at /srv/x"), {"type": "reset"}),
    (TurnStarted(3), {"type": "turn_started", "turn": 3}),
    (
        TurnFinished(3, (Message("assistant", "Hi", reasoning_content="Hm"),), USAGE, 1.5),
        {
            "type": "turn_finished",
            "messages": [
                {"role": "assistant", "items": [{"type": "text", "text": "Hi"}], "reasoning": "Hm", "call": None}
            ],
            "seconds": 1.5,
            "usage": USED,
        },
    ),
    (
        TurnFinished(
            4, (Message("assistant", "Hi", reasoning_content=[ContentItem(text="Hm")]),), Usage(cost=Decimal(0))
        ),
        {
            "type": "turn_finished",
            "messages": [
                {"role": "assistant", "items": [{"type": "text", "text": "Hi"}], "reasoning": "", "call": None}
            ],
            "seconds": 0.0,
            "usage": {"prompt": 0, "completion": 0, "cost": {"amount": "0", "currency": None}},
        },
    ),
    (
        ToolStarted(0, "c", CALL),
        {"type": "tool_started", "call_id": "c", "name": "pay", "arguments": '{"amount": 3}'},
    ),
    (ToolProgress(0, "c", "half"), {"type": "tool_progress", "call_id": "c", "text": "half"}),
    (
        ToolFinished(
            0, "c", Message("function", "paid", name="pay"), 0.5, "E",
            {"sources": ["/srv/docs/a.pdf", "https://example.org/b/c", "http://example.org/d"]},
        ),
        {
            "type": "tool_finished", "call_id": "c", "name": "pay", "items": [{"type": "text", "text": "paid"}],
            "seconds": 0.5, "error": "E",
            "sources": [
                {"name": "a.pdf", "page": None, "url": ""},
                {"name": "https://example.org/b/c", "page": None, "url": "https://example.org/b/c"},
                {"name": "http://example.org/d", "page": None, "url": "http://example.org/d"},
            ],
        },
    ),
    (RunFinished("finished", (), Usage()), {
        "type": "finished", "reason": "finished", "usage": {"prompt": 0, "completion": 0, "cost": None},
    }),
    (ApprovalDecided("c", CALL, False, "person", "no money"), {
        "type": "decided", "call_id": "c", "allowed": False, "reason": "no money",
    }),
    (RetryScheduled(1, 0.5, "busy"), {"type": "retry", "delay_s": 0.5, "error": "busy"}),
    (HistoryTrimmed(3, 1, 900, 400), {"type": "trimmed", "dropped": 3, "shortened": 1}),
    (HandedOff("a", "b"), {"type": "handed_off", "to": "b"}),
    (
        PluginEvent(QUESTION, {"call_id": "c?1", "name": "ask", "arguments": "{}", "more": 1}),
        {"type": "question", "call_id": "c?1", "name": "ask", "arguments": "{}"},
    ),
    (PluginEvent(QUESTION, {}), {"type": "question", "call_id": "", "name": "", "arguments": ""}),
    (PluginEvent("n", {"note": "kept"}), {"type": "note", "text": "kept", "sources": [], "citations": None}),
    (PluginEvent("n", {CITATIONS: [CITED, {**CITED, "quote": "", "end": 8}, {**CITED, "part": "b.txt"}]}), {
        "type": "note", "text": "", "sources": [],
        "citations": [
            {**SHOWN, "start": 7, "end": 10}, {**SHOWN, "start": 0, "end": 10},
            {**SHOWN, "name": name_in_file("a.pdf", "b.txt"), "start": 7, "end": 10},
        ],
    }),
    (PluginEvent("n", {CITATIONS: []}), {"type": "note", "text": "", "sources": [], "citations": []}),
    (PluginEvent("n", {"note": 5}), None),
    (PluginEvent("n", {}), None),
    (RunStarted(()), None),
    (ApprovalNeeded((CALL,), ("c",)), None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("event", "expected"), EVENTS, ids=[f"{type(event).__name__} {n}" for n, (event, _) in enumerate(EVENTS)]
)
def test_each_event_is_an_object_of_what_the_page_shows(event: Any, expected: Mapping[str, Any] | None) -> None:
    wire = wire_of(7, RunEvent("r", 99, "helper", 1, event))
    place = {"number": 7, "run": "r", "agent": "helper", "depth": 1}
    assert wire == (None if expected is None else {**place, **expected})


def test_a_failure_is_shown_without_its_insides_and_work_with_its_text() -> None:
    wire = wire_of(1, RunEvent("r", 1, "a", 0, RunFailed("sk-secret at /srv/x", "ZeroDivisionError")))
    assert wire is not None
    assert (wire["type"], "sk-secret" in str(wire)) == ("failed", False)
    progress = PreparationProgress("reading files", 1, 2, "a.md")
    wire = wire_of(1, RunEvent("r", 1, "a", 0, progress))
    assert wire is not None
    assert (wire["type"], wire["text"]) == ("progress", progress.text)


def test_messages_have_their_call_and_media_their_address() -> None:
    message = Message("assistant", "", function_call=CALL, extra={"function_id": "c"})
    assert message_as_wire(message)["call"] == {"id": "c", "name": "pay", "arguments": '{"amount": 3}'}
    assert item_as_wire(ContentItem(text="")) == {"type": "text", "text": ""}
    assert item_as_wire(ContentItem(file="https://example.org/a.pdf")) == {
        "type": "file",
        "address": "https://example.org/a.pdf",
    }
    for path in ("/srv/private/a.pdf", "file:///srv/private/a.pdf", "C:\\private\\a.pdf"):
        assert item_as_wire(ContentItem(file=path)) == {"type": "file", "address": "a.pdf"}
    asked = (Message("user", "one"), Message("assistant", "two"), Message("user", "three"), Message("user", "four"))
    assert [item["text"] for item in question_in(asked)] == ["three", "four"]
    assert question_in(asked[:2]) == []


# --- the files of the page ---


def get(path: str | None, **headers: str) -> Any:
    """Return the answer to a request for a file; None for the page."""
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": encoded, "path_params": {"path": path}}
    return asyncio.run((files.page if path is None else files.static_file)(Request(scope)))


def name_of_a_script() -> str:
    return next(path for path in sorted(files._paths_below(files._STATIC)) if path.endswith(".js"))


@pytest.mark.parametrize(
    ("before", "caching"),
    [
        ("", "no-cache"),
        ("{version}/", "public, max-age=31536000, immutable"),
        ("v-0123456789abcdef/", "no-store"),
    ],
    ids=["without a version", "this version", "another version"],
)
def test_a_file_is_kept_only_under_the_address_of_its_version(before: str, caching: str) -> None:
    reply = get(before.format(version=files._version()) + name_of_a_script())
    assert (reply.status_code, reply.headers["cache-control"]) == (200, caching)
    assert reply.headers["content-type"] == "text/javascript; charset=utf-8"
    assert reply.headers["vary"] == "accept-encoding"


def test_the_page_names_its_files_by_their_version_and_allows_nothing_from_elsewhere() -> None:
    reply = get(None)
    assert f'"static/{files._version()}/' in reply.body.decode()
    assert reply.headers["cache-control"] == "no-cache"
    policy = dict(one.split(" ", 1) for one in reply.headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self' data: blob:",
        "media-src": "data: blob:", "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'",
        "frame-ancestors": "'none'",
    }  # fmt: skip
    assert (reply.headers["referrer-policy"], reply.headers["x-content-type-options"]) == ("no-referrer", "nosniff")


def test_a_file_is_zipped_for_those_who_can_read_it_and_not_sent_again() -> None:
    plain, zipped = get(name_of_a_script()), get(name_of_a_script(), accept_encoding="br, gzip")
    assert "content-encoding" not in plain.headers
    assert (zipped.headers["content-encoding"], gzip.decompress(zipped.body)) == ("gzip", plain.body)
    again = get(name_of_a_script(), if_none_match=f'"x", {plain.headers["etag"]}')
    assert (again.status_code, again.body) == (304, b"")
    assert again.headers["etag"] == plain.headers["etag"]
    assert get(name_of_a_script(), if_none_match='"x"').status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "../wire.py",
        "py.typed",
        "index",
        "index.htm",
        "a/../index.html",
        "./index.html",
        "",
        "no-such-file.js",
        "..\\wire.js",
        "a\0.js",
        "/etc/passwd.js",
    ],
)
def test_only_files_of_the_page_are_sent(path: str) -> None:
    with pytest.raises(HTTPException) as caught:
        get(path)
    assert caught.value.status_code == 404


# --- conversations as files ---


def run_of(run_id: str, phase: str = "ended", **more: Any) -> Any:
    return SimpleNamespace(
        run_id=run_id,
        phase=phase,
        request=more.get("request", {}),
        agent="helper",
        messages=more.get("messages", (Message("system", "Be brief."), Message("user", "Hi"))),
        response=more.get("response", (Message("assistant", "Hello."),)),
    )


def test_an_export_has_the_runs_that_have_ended_with_their_question_and_all_of_the_answer() -> None:
    response = (
        Message("assistant", "", function_call=CALL, extra={"function_id": "c"}, reasoning_content="Hm"),
        Message("function", "no", name="pay", extra={"function_id": "c", "error": "E"}),
        Message("assistant", [ContentItem(image=PIXEL), ContentItem(image="https://example.org/a.png")]),
    )
    runs = [
        run_of("r1"),
        run_of("r2", request={"continues": "r1"}, response=response),
        run_of("r3", "running"),
        run_of("r4", messages=(Message("system", "Be brief."),)),
    ]
    exported = export_conversation("Tides", runs)
    assert [(run.id, run.continues, run.agent) for run in exported.runs] == [
        ("r1", "", "helper"),
        ("r2", "r1", "helper"),
    ]
    assert [message.role for message in exported.runs[1].messages] == ["user", "assistant", "function", "assistant"]
    asked, wanted, failed, shown = exported.runs[1].messages
    assert wanted.call is not None
    assert (wanted.call.id, wanted.call.name, wanted.call.arguments, wanted.call_id) == ("c", "pay", CALL.arguments, "")
    assert (wanted.reasoning, failed.name, failed.call_id, failed.error) == ("Hm", "pay", "c", "E")
    assert [item.model_dump(exclude_none=True) for item in shown.content] == [{"image": PIXEL}, {"text": "[image]"}]  # type: ignore[union-attr]
    assert [message.as_message() for message in (asked, failed)] == [
        Message("user", [ContentItem(text="Hi")]),
        Message("function", [ContentItem(text="no")], name="pay", extra={"function_id": "c", "error": "E"}),
    ]
    again = wanted.as_message()
    assert (again.function_call, again.function_id, again.reasoning_content) == (CALL, "c", "Hm")
    with pytest.raises(RequestRefusedError, match="no answers to export yet"):
        export_conversation("Tides", runs[2:])


@pytest.mark.parametrize(
    "content",
    [
        [{"image": "/etc/passwd"}],
        [{"file": "https://example.org/a.pdf"}],
        [{"text": "a", "image": PIXEL}],
        [{}],
        [{"text": "a", "path": "/etc/passwd"}],
    ],
)
def test_an_imported_message_has_no_address_that_the_server_would_read(content: Any) -> None:
    with pytest.raises(ValidationError):
        ExportedMessage(role="user", content=content)


def test_only_the_assistant_makes_calls() -> None:
    message = ExportedMessage.model_validate(
        {"role": "user", "content": "Hi", "call": {"id": "c", "name": "pay", "arguments": "{}"}, "call_id": "d"}
    ).as_message()
    assert (message.function_call, message.function_id) == (None, "d")


def conversation(*runs: Mapping[str, Any], title: str = "") -> ExportedConversation:
    return ExportedConversation.model_validate(
        {"format": "jackfield-conversation", "version": 1, "title": title, "runs": list(runs)}
    )


def asked(run_id: str, text: str = "Hi", reply: str = "Hello.", **more: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
    return {"id": run_id, "messages": messages, **more}


def served(**limits: Any) -> Serving:
    return Serving(
        {
            "helper": FnCallAgent(llm=ScriptedModel([]), name="helper"),
            "clerk": FnCallAgent(llm=ScriptedModel([]), name="clerk"),
        },
        limits=ServingLimits(**limits),
    )


def test_an_import_is_a_conversation_of_its_owner_whose_runs_continue_each_other() -> None:
    async def main() -> None:
        async with served() as serving:
            file = conversation(
                asked("a", "One?", "First.", agent="clerk"),
                asked("b", "Two?", "Second.", agent="gone", continues="a"),
                asked("c", "Three?", "Third.", continues="elsewhere"),
                title="  Tides ",
            )
            session = await import_conversation(serving, file, owner="ada")
            [one] = await serving.sessions(owner="ada")
            assert (one.session, one.runs, one.title) == (session, 3, "Tides")
            assert await serving.sessions(owner="eve") == []
            runs = [await serving.run(one.run_id, owner="ada") for one in await serving.runs(owner="ada")][::-1]
            assert [run.agent for run in runs] == ["clerk", "helper", "helper"]
            texts = [[m.get_text_content() for m in run.messages] for run in runs]
            assert [text[-1] for text in texts] == ["One?", "Two?", "Three?"]
            assert ["First." in text for text in texts] == [False, True, False]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([asked("a"), asked("a")], "the file contains run 'a' twice"),
        (
            [asked("a"), {"id": "b", "messages": [{"role": "assistant", "content": "x"}]}],
            "does not start with a question",
        ),
        ([asked("a"), asked("b", "x" * 3000, continues="a")], "the conversation would take"),
    ],
    ids=["an id twice", "no question", "too large"],
)
def test_an_import_that_is_refused_leaves_nothing(runs: list[dict[str, Any]], reason: str) -> None:
    async def main() -> None:
        async with served(history_bytes=2000) as serving:
            with pytest.raises(RequestRefusedError, match=reason):
                await import_conversation(serving, conversation(*runs), owner="ada")
            assert await serving.runs(owner="ada") == []

    asyncio.run(main())


def test_runs_before_one_that_the_service_refuses_are_deleted() -> None:
    async def main() -> None:
        async with served(input_bytes=1000) as serving:
            file = conversation(asked("a"), asked("b"), asked("c", "x" * 2000))
            with pytest.raises(Exception, match="1000"):
                await import_conversation(serving, file, owner="ada")
            assert await serving.runs(owner="ada") == []

    asyncio.run(main())


def test_an_import_may_be_as_large_as_the_limit_and_needs_no_title() -> None:
    file = conversation(asked("a"), asked("b", continues="a"), title=" ")
    sizes = [len(run.model_dump_json()) for run in file.runs]

    async def imports(limit: int) -> bool:
        async with served(history_bytes=limit) as serving:
            try:
                session = await import_conversation(serving, file, owner="ada")
            except RequestRefusedError:
                return False
            [one] = await serving.sessions(owner="ada")
            assert (one.session, one.title) == (session, "Hi")
            return True

    most = 2 * sizes[0] + sizes[1]
    assert [asyncio.run(imports(limit)) for limit in (most - 1, most)] == [False, True]


# --- the requests of the page ---


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    return f"paid {amount}"


def request(body: object = None, *, query: str = "", **params: Any) -> Request:
    scope = {
        "type": "http", "method": "POST", "path": "/", "headers": [], "path_params": params,
        "query_string": query.encode(),
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    return Request(scope, receive)


def asking(**more: Any) -> dict[str, Any]:
    return {"agent": "helper", "text": "Hi", "conversation": "talk", **more}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (asking(text=" "), "the question is empty"),
        (asking(conversation=""), "conversation"),
        (asking(conversation="x" * 101), "conversation"),
        (asking(files=[{"kind": "file", "address": "/etc/passwd"}]), "files.0.address"),
        (asking(files=[{"kind": "code", "address": PIXEL}]), "files.0.kind"),
        (asking(settings={"temperature": 1}), "does not allow changes to temperature"),
        (asking(owner="eve"), "owner"),
    ],
    ids=["empty", "no conversation", "a long id", "a path", "a kind", "settings", "an owner"],
)
def test_a_question_that_does_not_fit_is_refused_by_its_name(body: dict[str, Any], reason: str) -> None:
    async def main() -> None:
        async with served() as serving:
            with pytest.raises(RequestRefusedError, match=reason):
                await Api(serving).start(request(body))
            assert serving.active == 0

    asyncio.run(main())


def test_a_conversation_is_read_in_parts_decided_and_deleted() -> None:
    def script(asked: Any) -> Any:
        last = asked.messages[-1]
        wants = last.role == "user" and "pay" in last.get_text_content()
        return calls(("pay", {"amount": 3})) if wants else answer("Done.")

    async def main() -> None:
        model = ScriptedModel(script, facts=ModelFacts(native_tools=True, images=True))
        agent = FnCallAgent([pay], model, name="helper")
        async with Serving({"helper": agent}) as serving:
            api, ids = Api(serving), list[str]()
            for text in ("one", "two", "three", "pay"):
                more = {"continues": ids[-1]} if ids else {}
                reply = await api.start(request(asking(text=text, files=[{"kind": "image", "address": PIXEL}], **more)))
                ids.append(json.loads(reply.body)["run"])  # type: ignore[union-attr]
                async for _ in serving.attach(ids[-1]):
                    pass

            async def read(query: str) -> Any:
                return json.loads((await api.conversation(request(query=query, conversation="talk"))).body)

            whole = await read("")
            assert ([run["id"] for run in whole["runs"]], whole["earlier"]) == (ids, 0)
            assert [run["continues"] for run in whole["runs"]] == ["", *ids[:-1]]
            assert [run["phase"] for run in whole["runs"]] == ["ended", "ended", "ended", "waiting"]
            assert whole["runs"][0]["question"] == [
                {"type": "text", "text": "one"}, {"type": "image", "address": PIXEL},
            ]  # fmt: skip
            assert whole["runs"][0]["events"][-1]["type"] == "finished"
            assert whole["runs"][3]["events"] == [], "its events are followed"
            part = await read(f"limit=1&before={ids[2]}")
            assert ([run["id"] for run in part["runs"]], part["earlier"]) == ([ids[1]], 1)
            for limit in ("0", "1001", "-1", "x", ""):
                with pytest.raises(RequestRefusedError, match="`limit` must be a number from 1 to 1000"):
                    await read(f"limit={limit}")
            for after in ("-1", "x", "²", "1" * 21):
                with pytest.raises(RequestRefusedError, match="`after` must be an event number"):
                    await api.events(request(query=f"after={after}", run_id=ids[0]))
            [waits] = whole["runs"][3]["waiting"]
            exported = json.loads((await api.export_conversation(request(conversation="talk"))).body)
            assert exported["title"] == "one"
            assert [run["id"] for run in exported["runs"]] == ids[:-1]
            assert (waits["kind"], waits["name"], waits["arguments"], waits["in_doubt"], waits["agent"]) == (
                "approval", "pay", '{"amount": 3}', False, "",
            )  # fmt: skip
            shown = json.loads((await api.run(request(run_id=ids[3]))).body)
            assert shown == {"phase": "waiting", "waiting": [waits["call_id"]]}
            denied = {"answers": {waits["call_id"]: {"denied": "no money"}}}
            assert (await api.answer(request(denied, run_id=ids[3]))).status_code == 204
            async for _ in serving.attach(ids[3]):
                pass
            results = [message for message in (await serving.run(ids[3])).response if message.role == "function"]
            assert "no money" in results[0].get_text_content()
            record = json.loads((await api.record(request(run_id=ids[3]))).body)["events"]
            assert [one["reason"] for one in record if one["type"] == "decided"] == [
                "The user did not allow this call and said: no money"
            ]
            listed = json.loads((await api.conversations(request())).body)["conversations"]
            assert [(one["id"], one["title"], one["agent"]) for one in listed] == [("talk", "one", "helper")]
            assert (await api.delete_conversation(request(conversation="talk"))).status_code == 204
            assert json.loads((await api.conversations(request())).body) == {"conversations": []}

    asyncio.run(main())


def test_only_a_run_that_rests_has_a_record_and_an_unknown_one_no_events() -> None:
    async def main() -> None:
        for phase in ("queued", "running", "waiting", "ended"):

            async def run(run_id: str, *, owner: str) -> Any:
                if run_id != "r":
                    raise RunNotFoundError("no such run")
                return SimpleNamespace(run_id=run_id, phase=phase)  # noqa: B023 - called in the same step

            async def attach(*_: Any, **__: Any) -> Any:
                yield 1, RunEvent("r", 1, "a", 0, TextDelta("Hi"))

            serving: Any = SimpleNamespace(run=run, attach=attach)
            if phase in ("queued", "running"):
                with pytest.raises(RequestRefusedError, match="the run has not finished yet"):
                    await Api(serving).record(request(run_id="r"))
            else:
                record = json.loads((await Api(serving).record(request(run_id="r"))).body)
                assert [one["text"] for one in record["events"]] == ["Hi"]
            with pytest.raises(RunNotFoundError):
                await Api(serving).events(request(run_id="other"))

    asyncio.run(main())


@pytest.mark.parametrize("phase", ["queued", "running", "waiting", "ended"])
def test_a_run_that_has_not_ended_is_cancelled_before_it_is_deleted(phase: str) -> None:
    steps: list[str] = []

    class Runs:
        async def runs(self, **_: Any) -> list[Any]:
            return [SimpleNamespace(run_id="r", phase=phase)]

        async def cancel(self, _run_id: str, *, owner: str) -> None:
            steps.append("cancel")

        async def attach(self, _run_id: str, *, owner: str) -> Any:
            steps.append("wait")
            yield 1, None

        async def delete(self, _run_id: str, *, owner: str) -> None:
            steps.append("delete")

    serving: Any = Runs()
    asyncio.run(Api(serving).delete_conversation(request(conversation="talk")))
    assert steps == (["delete"] if phase == "ended" else ["cancel", "wait", "delete"])


def test_a_search_is_as_long_as_the_page_allows_and_its_own() -> None:
    searched: list[Any] = []

    async def search(text: str, *, owner: str, limit: int) -> list[Any]:
        searched.append((text, owner, limit))
        return []

    serving: Any = SimpleNamespace(search=search)
    asyncio.run(Api(serving).search(request(query=f"text={'x' * 300}")))
    assert searched == [("x" * 200, "", 30)]


def test_only_conversations_are_listed_and_each_is_exported_whatever_it_says() -> None:
    async def sessions(**_: Any) -> list[Any]:
        return [SimpleNamespace(session=one, title="T", agent="a", changed=1.0) for one in ("talk", "")]

    async def runs(**_: Any) -> list[Any]:
        return [SimpleNamespace(run_id="r", title="half \ud83d")]

    async def run(run_id: str, **_: Any) -> Any:
        odd = "x" * 300  # a model may make up any name
        wanted = Message("assistant", "", function_call=FunctionCall(odd, "{}"), extra={"function_id": odd})
        failed = Message("function", "no", name=odd, extra={"function_id": odd, "error": odd})
        return run_of(run_id, messages=(Message("user", "\ud83d"),), response=(wanted, failed))

    api = Api(SimpleNamespace(sessions=sessions, runs=runs, run=run))  # type: ignore[arg-type]
    listed = json.loads(asyncio.run(api.conversations(request())).body)["conversations"]
    assert [one["id"] for one in listed] == ["talk"]
    exported = json.loads(asyncio.run(api.export_conversation(request(conversation="talk"))).body)
    [_, wanted, failed] = exported["runs"][0]["messages"]
    assert (exported["title"], wanted["call"]["name"], wanted["call"]["id"]) == ("half ?", "x" * 200, failed["call_id"])
    assert ExportedConversation.model_validate(exported)


def test_a_question_may_change_the_settings_that_its_agent_allows_and_no_other() -> None:
    started: dict[str, Any] = {}

    async def start(*_: Any, **options: Any) -> str:
        started.update(options)
        return "r"

    serving: Any = SimpleNamespace(agents={"helper": SimpleNamespace(adjustable={"temperature": None})}, start=start)
    with pytest.raises(RequestRefusedError, match="does not allow changes to top_p"):
        asyncio.run(Api(serving).start(request(asking(settings={"temperature": 1, "top_p": 0.5}))))
    asyncio.run(Api(serving).start(request(asking(settings={"temperature": 1}, continues="before"))))
    assert started["config"] == {"temperature": 1}
    assert (started["takes_questions"], started["continues"], started["session"]) == (True, "before", "talk")


def test_the_end_of_a_stream_has_its_error_and_what_waits_with_its_preview() -> None:
    async def attach(*_: Any, **__: Any) -> Any:
        yield 1, RunEvent("r", 1, "a", 0, TextDelta("Hi"))

    async def run(*_: Any, **__: Any) -> Any:
        waiting = [WaitingCall(call_id=one, call=CALL, kind="approval", in_doubt=one == "c1") for one in ("c1", "c2")]
        return SimpleNamespace(
            phase="waiting", stop_reason="failed", error="sk-x", error_kind="OSError", waiting=waiting
        )

    async def previews(_: Any) -> dict[str, str]:
        return {"c2": "+new"}

    async def read() -> list[Any]:
        api: Any = Api(SimpleNamespace(attach=attach, run=run, previews=previews))  # type: ignore[arg-type]
        return [json.loads(one.removeprefix(b"data: ")) async for one in api._stream(attach(), "r", "")]

    text, end = asyncio.run(read())
    assert (text["type"], end["type"], end["phase"], end["reason"]) == ("text", "end", "waiting", "failed")
    assert end["error"]
    assert "sk-x" not in end["error"]
    assert [(one["in_doubt"], one["diff"]) for one in end["waiting"]] == [(True, ""), (False, "+new")]


def test_a_file_that_is_no_conversation_is_refused_in_plain_words() -> None:
    run = {"id": "a", "messages": [{"role": "robot", "content": "Hi"}]}
    body = {"format": "jackfield-conversation", "version": 1, "runs": [run]}
    serving: Any = None
    with pytest.raises(RequestRefusedError, match=r"^runs\.0\.messages\.0\.role: Input should be 'user', 'assistant'"):
        asyncio.run(Api(serving).import_conversation(request(body)))


def test_a_file_of_another_kind_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_STATIC", tmp_path)
    for name in ("sent_by_test.txt", "not_sent_by_test.exe"):
        (tmp_path / name).write_text("x")
    assert get("sent_by_test.txt").body == b"x"
    with pytest.raises(HTTPException):
        get("not_sent_by_test.exe")
