"""Calls, texts and errors in the form of the protocol, for every way in which a run can go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from acp import RequestError
from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    ClientCapabilities,
    EmbeddedResourceContentBlock,
    FileSystemCapabilities,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from jackfield.errors import RateLimitedError, ToolServiceError
from jackfield.events import (
    MediaDelta,
    ReasoningDelta,
    RunEvent,
    StopReason,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.servers import RequestRefusedError
from jackfield_acp_server import workplace as workplace_module
from jackfield_acp_server.editor import EditorAgent, _Session
from jackfield_acp_server.errors import errors_of_protocol
from jackfield_acp_server.lines import Lines
from jackfield_acp_server.prompts import read_prompt
from jackfield_acp_server.toolcalls import TextBefore, kind_of, replaced_file, show_call
from jackfield_acp_server.updates import Updates, media_block, user_updates
from jackfield_acp_server.workplace import Workplace
from jackfield_serving import WaitingCall

PIXEL = "data:image/png;base64,iVBO"
SOUND = "data:audio/wav;base64,UklG"
KINDS = {
    "edit_file": "edit", "write_file": "edit", "delete_file": "delete", "rename_file": "move", "grep": "search",
    "retrieval": "search", "code_interpreter": "execute", "run-shell": "execute", "web_search": "fetch",
    "read_file": "read", "doc_parser": "read", "think": "think", "File.Save": "edit", "threaded": "other", "": "other",
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_the_first_known_word_of_a_name_is_the_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


TITLES: list[tuple[str, str]] = [
    ('{"word": "oak", "other": "elm"}', "look_up oak"),
    ('{"number": 7, "blank": " ", "word": " oak\\nelm "}', "look_up oak"),
    (json.dumps({"word": "x" * 200}), f"look_up {'x' * 200}"),
    (json.dumps({"word": "x" * 201}), f"look_up {'x' * 200}…"),
    ("{}", "look_up"),
    ("no JSON", "look_up"),
    ('["a"]', "look_up"),
    ("[" * 100_000, "look_up"),
]


@pytest.mark.parametrize(("arguments", "title"), TITLES, ids=lambda text: text[:40])
def test_a_title_is_the_name_and_the_first_short_argument(arguments: str, title: str) -> None:
    shown = show_call(FunctionCall("look_up", arguments), "/work")
    assert shown.title == title
    assert show_call(FunctionCall("look_up", arguments), "/work", agent="clerk").title == f"clerk: {title}"
    assert shown.arguments == (json.loads(arguments) if arguments.endswith(("}", "]")) else arguments)


PLACES: list[tuple[str, dict[str, Any], tuple[str, int | None] | None]] = [
    ("read_file", {"path": "a.txt", "start_line": 3}, ("a.txt", 3)),
    ("read_file", {"path": "a.txt", "start_line": "3"}, ("a.txt", None)),
    ("grep", {"path": "sub"}, ("sub", None)),
    ("delete_file", {"path": "a.txt"}, ("a.txt", None)),
    ("move_file", {"path": "a.txt"}, ("a.txt", None)),
    ("fetch", {"path": "a.txt"}, None),
    ("think", {"path": "a.txt"}, None),
    ("read_file", {"path": "../a.txt"}, None),
    ("read_file", {"path": 7}, None),
    ("read_file", {}, None),
]


@pytest.mark.parametrize(("name", "arguments", "place"), PLACES, ids=str)
def test_a_call_shows_the_file_of_the_workspace_that_it_touches(
    name: str, arguments: dict[str, Any], place: tuple[str, int | None] | None, tmp_path: Path
) -> None:
    call = FunctionCall(name, json.dumps(arguments))
    locations = [(one.path, one.line) for one in show_call(call, str(tmp_path)).locations]
    assert locations == ([] if place is None else [(str(tmp_path.resolve() / place[0]), place[1])])
    assert show_call(call, "").locations == []  # no tool of the agent has a workspace
    assert replaced_file(call, str(tmp_path)) is None


def test_only_a_call_that_writes_a_whole_text_replaces_a_file(tmp_path: Path) -> None:
    file = tmp_path.resolve() / "a.txt"
    unusable = [{"old_text": 1, "new_text": "b"}, {"old_text": "a"}, {"old_text": "a", "new_text": 1}, {}, "x"]
    edit = {"path": "a.txt", "edits": [{"old_text": "a", "new_text": "b"}, *unusable]}
    for name, arguments, is_whole in (
        ("write_file", {"path": "a.txt", "content": "x"}, True),
        ("write_file", {"path": "a.txt", "content": 7}, False),
        ("edit_file", edit, False),
        ("delete_file", {"path": "a.txt", "content": "x"}, False),
    ):
        call = FunctionCall(name, json.dumps(arguments))
        assert replaced_file(call, str(tmp_path)) == (file if is_whole else None)
    (change,) = show_call(FunctionCall("edit_file", json.dumps(edit)), str(tmp_path)).changes
    assert (change.path, change.old_text, change.new_text) == (str(file), "a", "b")  # type: ignore[union-attr]


class Feed:
    """Feeds one run's events, and keeps its updates as JSON."""

    def __init__(self, workspace: str = "") -> None:
        self.updates = Updates(workspace)

    def __call__(self, event: Any, depth: int = 0, run_id: str = "r") -> list[dict[str, Any]]:
        updates = self.updates.feed(RunEvent(run_id, 1, "clerk" if depth else "helper", depth, event))
        return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in updates]


def texts(*updates: list[dict[str, Any]]) -> list[str]:
    return [one["content"]["text"] for some in updates for one in some]


def test_texts_are_chunks_of_one_message_in_each_turn() -> None:
    feed = Feed()
    assert not feed.updates.has_text
    ids = []
    for turn in (1, 2):
        assert feed(TurnStarted(turn)) == []
        chunks = [*feed(ReasoningDelta("hm")), *feed(TextDelta("a")), *feed(MediaDelta(ContentItem(image=PIXEL)))]
        assert [one["sessionUpdate"] for one in chunks] == [
            "agent_thought_chunk", "agent_message_chunk", "agent_message_chunk",
        ]  # fmt: skip
        assert len({one["messageId"] for one in chunks}) == 1
        ids.append(chunks[0]["messageId"])
    assert ids[0] != ids[1]
    assert feed(ReasoningDelta("")) == []
    assert feed(MediaDelta(ContentItem(image="https://example.org/a.png"))) == []
    assert feed(TextDelta("inner"), depth=1) == []
    assert feed.updates.has_text


@pytest.mark.parametrize(
    ("pieces", "new", "is_same"),
    [
        (["The ", "answer."], ["answer."], True),
        (["The answer."], ["answer."], True),
        (["T", "he", " "], [], True),
        (["The ", "end."], ["end."], True),
        (["An", "other."], ["An", "other."], False),
        (["Then", " more"], ["Then", " more"], False),
    ],
)
def test_a_turn_that_begins_again_shows_only_what_is_new(pieces: list[str], new: list[str], is_same: bool) -> None:
    feed = Feed()
    feed(TurnStarted(1))
    feed(TextDelta("Well. "))
    feed(StreamReset("broken"))
    feed(TurnStarted(2))
    assert texts(feed(ReasoningDelta("hm"))) == ["hm"]
    (first,) = feed(TextDelta("The "))
    feed(StreamReset("broken"))
    assert feed(ReasoningDelta("again")) == []  # thoughts were shown
    chunks = [chunk for piece in pieces for chunk in feed(TextDelta(piece))]
    assert texts(chunks) == new
    assert all((chunk["messageId"] == first["messageId"]) == is_same for chunk in chunks)
    feed(StreamReset("broken again"))
    assert [chunk for piece in pieces for chunk in feed(TextDelta(piece))] == []


def finished(call_id: str, *items: ContentItem, error: str = "", metadata: Any = None) -> ToolFinished:
    message = Message("function", list(items), name="look_up", extra={"function_id": call_id})
    return ToolFinished(0, call_id, message, 0.1, error, metadata or {})


CALL = FunctionCall("look_up", '{"word": "oak"}')


@pytest.mark.parametrize(("error", "status"), [("", "completed"), ("RuntimeError", "failed")])
def test_a_call_has_one_id_from_its_start_to_its_result_and_another_one_next_time(error: str, status: str) -> None:
    feed = Feed()
    ids = []
    for _ in range(2):
        (start,) = feed(ToolStarted(0, "c1", CALL))
        (progress,) = feed(ToolProgress(0, "c1", "half"))
        sources = {"sources": ["https://example.org/a", "http://example.org/b", "/srv/secret.pdf"]}
        items = (
            ContentItem(text=""),
            ContentItem(text="A tree."),
            ContentItem(image=PIXEL),
            ContentItem(file="/srv/secret.pdf"),
        )
        (end,) = feed(finished("c1", *items, error=error, metadata=sources))
        assert [start["sessionUpdate"], progress["sessionUpdate"]] == ["tool_call", "tool_call_update"]
        assert (start["status"], start["title"], start["rawInput"]) == ("in_progress", "look_up oak", {"word": "oak"})
        assert (progress["content"][0]["content"]["text"], end["status"]) == ("half", status)
        shown = [one["content"].get("text") or one["content"].get("uri", "image") for one in end["content"]]
        assert shown == ["A tree.", "image", "https://example.org/a", "http://example.org/b"]
        ids.append({one["toolCallId"] for one in (start, progress, end)})
    assert [len(one) for one in ids] == [1, 1]
    assert ids[0] != ids[1]


def test_calls_of_two_runs_with_one_id_are_two_calls_and_those_of_nested_agents_are_named() -> None:
    feed = Feed()
    (outer,), (inner,) = feed(ToolStarted(0, "c1", CALL)), feed(ToolStarted(0, "c1", CALL), 1, "nested")
    assert outer["toolCallId"] != inner["toolCallId"]
    assert (outer["title"], inner["title"]) == ("look_up oak", "clerk: look_up oak")


def test_a_call_that_was_never_begun_is_shown_with_what_the_model_wanted() -> None:
    feed = Feed()
    wanted = {"c1": FunctionCall("look_up", '{"word": "oak"}'), "c2": FunctionCall("look_up", '{"word": "elm"}')}
    calls = [Message("assistant", "", function_call=call, extra={"function_id": one}) for one, call in wanted.items()]
    assert feed(TurnFinished(1, tuple(calls), Usage())) == []
    for call_id, word in (("c1", "oak"), ("c2", "elm")):
        start, end = feed(finished(call_id, ContentItem(text="No."), error="Denied"))
        assert (start["title"], start["sessionUpdate"], end["status"]) == (f"look_up {word}", "tool_call", "failed")
    start, _ = feed(finished("c3", ContentItem(text="No."), error="Denied"))
    assert start["title"] == "look_up"


def test_the_change_of_a_file_stays_to_be_seen_unless_the_call_failed(tmp_path: Path) -> None:
    call = FunctionCall("write_file", '{"path": "a.txt", "content": "new"}')
    for error, is_kept in (("", True), ("OSError", False)):
        feed = Feed(str(tmp_path))
        (start,) = feed(ToolStarted(0, "c1", call))
        assert [one["type"] for one in start["content"]] == ["diff"]
        (end,) = feed(finished("c1", ContentItem(text="ok"), error=error))
        assert ("content" not in end) == is_kept
        feed(ToolStarted(0, "c1", CALL))  # the next call of this id changes no file
        assert "content" in feed(finished("c1", ContentItem(text="ok")))[0]
        # It is shown from the text that the editor had before this call alone.
        feed.updates.texts_before["r", "c1"] = TextBefore("old")
        (start,) = feed(ToolStarted(0, "c1", call))
        assert start["content"][0]["oldText"] == "old"
        feed(finished("c1", ContentItem(text="ok"), error=error))
        (start,) = feed(ToolStarted(0, "c1", call))
        assert "oldText" not in start["content"][0]


def test_a_terminal_belongs_to_one_call_while_it_runs() -> None:
    feed, key = Feed(), ("r", "c1")
    for _ in range(2):
        (start,) = feed(ToolStarted(0, "c1", CALL))
        assert start["content"] == []
        feed.updates.terminals[key] = "t"
        (shown,) = feed.updates.show_terminal(key)
        assert shown.tool_call_id == start["toolCallId"]  # type: ignore[union-attr]
        assert "content" not in feed(finished("c1", ContentItem(text="ok")))[0]
        assert key not in feed.updates.terminals
        feed.updates.terminals[key] = "t"
        assert list(feed.updates.show_terminal(key)) == [], "the next call of this id has not begun"
        del feed.updates.terminals[key]


def test_a_call_that_was_proposed_keeps_its_entry_when_it_starts() -> None:
    feed = Feed()
    call_id, _ = feed.updates.propose("r", "c1", CALL, "")
    (start,) = feed(ToolStarted(0, "c1", CALL))
    assert (start["sessionUpdate"], start["toolCallId"]) == ("tool_call_update", call_id)


@pytest.mark.parametrize(
    ("agent", "kind", "is_settled"), [("", "approval", False), ("clerk", "approval", True), ("", "question", True)]
)
@pytest.mark.parametrize(("is_allowed", "status"), [(True, "completed"), (False, "failed")])
def test_an_answer_that_no_event_shows_ends_its_call(
    agent: str, kind: Any, is_settled: bool, is_allowed: bool, status: str
) -> None:
    updates = Updates("")
    waiting = WaitingCall(call_id="c1", call=CALL, kind=kind, agent=agent)
    call_id, shown = updates.propose("r", "c1", CALL, agent)
    assert shown.title == (f"{agent}: look_up oak" if agent else "look_up oak")
    ends = list(updates.settle("r", waiting, is_allowed))
    assert [(one.tool_call_id, one.status) for one in ends] == ([(call_id, status)] if is_settled else [])  # type: ignore[union-attr]
    if is_settled:
        assert list(updates.settle("r", waiting, is_allowed)) == []


@pytest.mark.parametrize(
    ("kind", "in_doubt", "options"),
    [("approval", False, None), ("approval", True, ["allow", "reject"]), ("question", False, ["allow", "reject"])],
    ids=["an approval", "in doubt", "a question"],
)
def test_only_an_approval_without_doubt_is_given_because_its_tool_is_always_allowed(
    kind: Any, in_doubt: bool, options: list[str] | None
) -> None:
    asked: list[list[str]] = []

    async def request_permission(_session: str, _update: Any, options: list[Any]) -> Any:
        asked.append([one.option_id for one in options])
        return SimpleNamespace(outcome=SimpleNamespace(option_id="reject"))

    agent = EditorAgent(SimpleNamespace(agents={}))  # type: ignore[arg-type]
    agent.on_connect(SimpleNamespace(request_permission=request_permission))  # type: ignore[arg-type]
    session = _Session("s", "helper", allowed={CALL.name})
    waiting = WaitingCall(call_id="c1", call=CALL, kind=kind, in_doubt=in_doubt)
    assert asyncio.run(agent._ask(session, Updates(""), "r", waiting)) is (options is None)
    assert asked == ([] if options is None else [options])


def ask(session: _Session, request_permission: Any, *tools: str) -> list[bool]:
    """Ask for the approval of a call of each tool."""

    async def ask_for_each() -> list[bool]:
        agent = EditorAgent(SimpleNamespace(agents={}))  # type: ignore[arg-type]
        agent.on_connect(SimpleNamespace(request_permission=request_permission))  # type: ignore[arg-type]
        waiting = [WaitingCall(call_id="c1", call=FunctionCall(name, "{}"), kind="approval") for name in tools]
        answers = [await agent._ask(session, Updates(""), "r", one) for one in waiting]
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return answers

    return asyncio.run(ask_for_each())


def test_every_tool_that_is_always_allowed_is_asked_about_once() -> None:
    asked: list[str] = []

    async def request_permission(_session: str, update: Any, _options: list[Any]) -> Any:
        asked.append(update.title)
        return SimpleNamespace(outcome=SimpleNamespace(option_id="always"))

    assert ask(_Session("s", "helper"), request_permission, "pay", "send", "pay", "send") == [True] * 4
    assert asked == ["pay", "send"]


@pytest.mark.parametrize("way", ["cancelled", "refused"])
def test_a_call_without_an_answer_is_rejected_and_its_question_withdrawn(way: str) -> None:
    session, withdrawn = _Session("s", "helper"), []

    async def request_permission(*_: Any) -> Any:
        if way == "refused":
            raise RequestError(1, "cannot ask")
        session.cancelled.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            withdrawn.append(way)
            raise

    assert ask(session, request_permission, "pay") == [False]
    assert withdrawn == (["cancelled"] if way == "cancelled" else [])


def test_only_the_last_message_of_the_person_is_repeated() -> None:
    messages = (
        Message("user", "old"),
        Message("assistant", "answer"),
        Message("user", "one"),
        Message("user", [ContentItem(text="two"), ContentItem(image=PIXEL), ContentItem(file="/srv/a.pdf")]),
    )
    shown = [one.model_dump(mode="json", by_alias=True) for one in user_updates(messages)]
    assert [one["content"].get("text") or one["content"]["mimeType"] for one in shown] == ["one", "two", "image/png"]
    assert list(user_updates((Message("assistant", "answer"),))) == []


def test_a_prompt_is_one_text_or_its_parts_in_order() -> None:
    text = TextContentBlock(type="text", text="Look: ")
    link = ResourceContentBlock(type="resource_link", name="a.md", uri="file:///a.md")
    file = EmbeddedResourceContentBlock(
        type="resource", resource=TextResourceContents(uri="file:///b.md", text="inside")
    )
    assert read_prompt([text, link, file]).content == (
        "Look: [a.md](file:///a.md)\n<file address='file:///b.md'>\ninside\n</file>\n"
    )
    image = ImageContentBlock(type="image", mime_type="image/png", data="iVBO")
    sound = AudioContentBlock(type="audio", mime_type="audio/wav", data="UklG")
    assert read_prompt([image, text, sound]).content == [
        ContentItem(image=PIXEL), ContentItem(text="Look: "), ContentItem(audio=SOUND),
    ]  # fmt: skip
    for empty in ([], [TextContentBlock(type="text", text=" \n")]):
        with pytest.raises(RequestRefusedError):
            read_prompt(empty)
    assert read_prompt([image]).content == [ContentItem(image=PIXEL)]


@pytest.mark.parametrize(("kind", "expected"), [("application/pdf", "application/pdf"), (None, "octet-stream")])
def test_an_embedded_file_has_its_type_and_its_name(kind: str | None, expected: str) -> None:
    blob = BlobResourceContents(uri="file:///srv/my%20notes.pdf", blob="JVBERi0=", mime_type=kind)
    [item] = read_prompt([EmbeddedResourceContentBlock(type="resource", resource=blob)]).items
    assert isinstance(item.value, str)
    assert item.type == "file"
    assert expected in item.value
    assert item.value.endswith(";base64,JVBERi0=")
    assert "my%20notes.pdf" in item.value


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (ContentItem(image=PIXEL), ("image", "image/png", "iVBO")),
        (ContentItem(audio=SOUND), ("audio", "audio/wav", "UklG")),
        (ContentItem(image="https://example.org/a.png"), None),
        (ContentItem(file="data:application/pdf;base64,JVBERi0="), None),
        (ContentItem(text="data:image/png;base64,iVBO"), None),
    ],
    ids=["image", "audio", "an address", "a file", "a text"],
)
def test_only_images_and_audio_that_are_here_are_media(item: ContentItem, expected: object) -> None:
    block = media_block(item)
    assert (block and (block.type, block.mime_type, block.data)) == expected


@pytest.mark.parametrize("reason", get_args(StopReason))
def test_only_limits_and_a_cancel_end_a_turn_early(reason: str) -> None:
    expected = {"cancelled": "cancelled", "token_limit": "max_tokens"}
    limits = ("turn_limit", "tool_call_limit", "time_limit", "cost_limit")
    run: Any = SimpleNamespace(error="", text="", stop_reason=reason)
    nobody: Any = None
    ended = asyncio.run(EditorAgent(nobody)._end(nobody, Updates("/srv"), run))
    assert ended == (expected | dict.fromkeys(limits, "max_turn_requests")).get(reason, "end_turn")


# --- lines ---


class Sent:
    """A stream to an editor, which may have left."""

    def __init__(self, error: Exception | None = None) -> None:
        self.data, self.error = b"", error

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        if self.error:
            raise self.error


def received(*pieces: bytes | Exception, most_bytes: int = 1000) -> tuple[list[Any], list[Any]]:
    """Return the messages that come out of these lines until the end, and the replies."""

    async def read() -> tuple[list[Any], list[Any]]:
        reader, writer = asyncio.StreamReader(limit=most_bytes), Sent()
        for piece in pieces:
            if isinstance(piece, Exception):
                reader.set_exception(piece)
            else:
                reader.feed_data(piece)
        reader.feed_eof()
        lines, messages = Lines(reader, writer), []  # type: ignore[arg-type]
        while (message := await lines.receive()) is not None:
            messages.append(message)
        return messages, [json.loads(line) for line in writer.data.splitlines()]

    return asyncio.run(read())


REQUESTS = [
    {"id": 1, "method": "a", "params": {}}, {"id": "x", "method": "a", "params": None}, {"id": None, "method": "a"},
    {"method": "a"}, {"id": 1, "result": {}}, {"id": "x", "error": {}},
]  # fmt: skip
NO_REQUESTS: list[dict[str, Any]] = [
    {"id": 1.5, "method": "a"}, {"id": [], "method": "a", "params": {}}, {"id": 1, "method": "a", "params": []},
    {"id": 1, "method": 5}, {"id": None, "result": {}}, {"result": {}}, {"id": {}, "result": {}},
]  # fmt: skip


def test_each_form_of_a_message_is_taken_and_no_other_one() -> None:
    lines = [b" \n", *(json.dumps(one).encode() + b"\n\n" for one in (*REQUESTS, *NO_REQUESTS))]
    messages, replies = received(*lines)
    assert messages == REQUESTS
    assert [(one["id"], one["error"]["code"]) for one in replies] == [(None, -32600)] * len(NO_REQUESTS)


def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_read() -> None:
    messages, replies = received(b'{"method": "' + b"x" * 3000 + b'"}\n', b'{"method": "a"}\n')
    assert messages == [{"method": "a"}]
    assert "the message is too long: send a shorter message" in [one["error"]["message"] for one in replies]


def test_an_editor_that_has_left_ends_the_messages_and_takes_none() -> None:
    assert received(b'{"method": "a"}\n', ConnectionResetError()) == ([], [])
    gone = Sent(BrokenPipeError())
    asyncio.run(Lines(None, gone).send({"data": {"at": Path("/srv/a")}}))  # type: ignore[arg-type]
    assert gone.data == b'{"data":{"at":"/srv/a"}}\n'


# --- the files and the terminal of an editor ---


class Client:
    """An editor that answers each request with a value, or raises it."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, []  # type: tuple[dict[str, Any], list[Any]]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def answer(*values: Any, **named: Any) -> Any:
            self.asked.append((name, values, named))
            answered = self.answers.get(name)
            if isinstance(answered, BaseException):
                raise answered
            if answered == "never":
                await asyncio.sleep(60)
            return answered

        return answer


async def _show(_key: tuple[str, str], _terminal: str) -> None:
    pass


def at(client: Client, abilities: ClientCapabilities | None = None) -> Workplace:
    return Workplace(client, "s", abilities, _show)  # type: ignore[arg-type]


def run_in(client: Client) -> Any:
    terminal = client.answers.setdefault("create_terminal", SimpleNamespace(terminal_id="t"))
    assert terminal is not None
    options: Mapping[str, Any] = {"folder": "/srv", "timeout_s": 0.01, "output_bytes": 7, "run_id": "r", "call_id": "c"}
    return asyncio.run(at(client).run_command(["git", "log", "-1"], env={"A": "b"}, **options))


@pytest.mark.parametrize(
    ("abilities", "expected"),
    [
        (None, (False, False, False)),
        (ClientCapabilities(), (False, False, False)),
        (ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True)), (True, False, False)),
        (ClientCapabilities(fs=FileSystemCapabilities(write_text_file=True)), (False, True, False)),
        (ClientCapabilities(terminal=True), (False, False, True)),
    ],
    ids=["unknown", "none", "reads", "writes", "runs"],
)
def test_tools_use_only_what_the_editor_can_do(
    abilities: ClientCapabilities | None, expected: tuple[bool, bool, bool]
) -> None:
    place = at(Client(), abilities)
    assert (place.reads, place.writes, place.runs_commands) == expected


@pytest.mark.parametrize(
    ("error", "reason"),
    [(RequestError(1, "locked"), "locked"), (ConnectionResetError(), "was closed"), ("never", "timed out waiting")],
    ids=["refuses", "left", "silent"],
)
def test_an_error_of_the_editor_is_one_of_the_tool(error: object, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workplace_module, "_PATIENCE_S", 0.01)
    names = ("read_text_file", "write_text_file", "wait_for_terminal_exit", "kill_terminal")
    client = Client(**dict.fromkeys(names, error))
    with pytest.raises(ToolServiceError, match=rf"the editor cannot read a\.md: .*{reason}"):
        asyncio.run(at(client).read_text(Path("/srv/a.md")))
    with pytest.raises(ToolServiceError, match=rf"the editor cannot write a\.md: .*{reason}"):
        asyncio.run(at(client).write_text(Path("/srv/a.md"), "text"))
    if error != "never":
        with pytest.raises(ToolServiceError, match=f"the editor cannot run the command: .*{reason}"):
            run_in(client)
        assert client.asked[-1] == ("release_terminal", ("s", "t"), {}), "the terminal is released in any case"


@pytest.mark.parametrize("reads", [True, False])
def test_a_file_that_a_call_replaces_is_read_once_and_only_by_an_editor_that_can(reads: bool, tmp_path: Path) -> None:
    client = Client(read_text_file=SimpleNamespace(content="old"))
    abilities = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=reads))
    serving: Any = SimpleNamespace(agents={"helper": SimpleNamespace(workspace=str(tmp_path))})
    session, updates = _Session("s", "helper", workplace=at(client, abilities)), Updates(str(tmp_path))
    call = FunctionCall("write_file", '{"path": "a.txt", "content": "new"}')
    for _ in range(2):
        asyncio.run(EditorAgent(serving)._note_text_before(session, updates, ("r", "c1"), call))
    assert [name for name, *_ in client.asked] == ["read_text_file"] * reads
    assert updates.texts_before == ({("r", "c1"): TextBefore("old")} if reads else {})


@pytest.mark.parametrize(("exit_code", "code"), [(3, 3), (0, 0), (None, 137)])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_command_has_its_arguments_its_output_and_its_end(exit_code: int | None, code: int, is_cut: bool) -> None:
    client = Client(
        wait_for_terminal_exit=SimpleNamespace(exit_code=exit_code),
        terminal_output=SimpleNamespace(output="out", truncated=is_cut),
        release_terminal=RequestError(1, "it is gone"),
    )
    end = run_in(client)
    assert (end.output, end.exit_code, end.timed_out, end.is_cut) == ("out", code, False, is_cut)
    name, values, named = client.asked[0]
    assert (name, values, named["args"], named["cwd"]) == ("create_terminal", ("s", "git"), ["log", "-1"], "/srv")
    assert named["output_byte_limit"] == 7
    assert [(one.name, one.value) for one in named["env"]] == [("A", "b")]
    assert [name for name, *_ in client.asked].count("kill_terminal") == 0


def test_a_command_that_is_late_is_killed_before_its_output_is_read() -> None:
    client = Client(wait_for_terminal_exit="never", terminal_output=SimpleNamespace(output="half", truncated=False))
    end = run_in(client)
    assert (end.output, end.exit_code, end.timed_out) == ("half", 137, True)
    assert [name for name, *_ in client.asked] == [
        "create_terminal", "wait_for_terminal_exit", "kill_terminal", "terminal_output", "release_terminal",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "code", "data", "is_logged"),
    [
        (RequestRefusedError("no", status=404, code="z"), -32602, {"code": "z"}, False),
        (RequestRefusedError("no", status=500, code="z"), -32603, {"code": "z"}, False),
        (RateLimitedError("full", retry_after_s=2.6), -32603, {"retryAfter": 3}, False),
        (RateLimitedError("full", retry_after_s=0.1), -32603, {"retryAfter": 1}, False),
        (ZeroDivisionError("sk-secret"), -32603, {"code": "internal"}, True),
        (ConnectionResetError("sk-secret"), -32603, {}, False),
        (RequestError(7, "own"), 7, {}, False),
    ],
    ids=str,
)
def test_only_unexpected_errors_are_logged_and_none_shows_its_text(
    error: Exception, code: int, data: dict[str, Any], is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RequestError) as caught, errors_of_protocol():
        raise error
    assert caught.value.code == code
    assert data.items() <= (caught.value.data or {}).items()
    assert "sk-secret" not in str(caught.value)
    assert bool(caplog.records) == is_logged


def test_up_to_a_thousand_sessions_are_listed_with_their_times_and_as_many_runs_loaded() -> None:
    asked: list[int] = []

    async def sessions(*, limit: int) -> list[Any]:
        asked.append(limit)
        return [SimpleNamespace(session="s", title="Tides", changed=1.5)]

    async def runs(*, session: str, limit: int) -> list[Any]:
        asked.append(limit)
        return []

    serving: Any = SimpleNamespace(sessions=sessions, runs=runs)
    with pytest.raises(RequestError, match="session 's' not found: start a new one"):
        asyncio.run(EditorAgent(serving).load_session("s"))
    [session] = asyncio.run(EditorAgent(serving).list_sessions()).sessions
    assert (session.session_id, session.title, session.updated_at) == ("s", "Tides", "1970-01-01T00:00:01.500000+00:00")
    assert asked == [1000] * 2
