"""The face as the client side of the ACP SDK sees it."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, connect_to_agent, spawn_agent_process, text_block
from acp.helpers import embedded_text_resource, image_block, resource_block, resource_link_block
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from jackfield import FnCallAgent, ToolContext, tool
from jackfield.agents import Agent, Event, Run
from jackfield.errors import RateLimitedError
from jackfield.events import ModelEvent, RunFinished, StreamReset, TextDelta
from jackfield.messages import Message, Usage
from jackfield.request import ChatRequest, ModelFacts
from jackfield.servers import StdioServer, load_server
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolResult
from jackfield_acp_server.editor import EditorAgent
from jackfield_multi_agent import GroupChat, UserAgent
from jackfield_serving import RunInfo, Serving
from jackfield_testkit.growth import Growth
from jackfield_testkit.installed import plain_host

LIMIT_S = 60
paid: list[int] = []
PIXEL = "iVBORw0KGgo="


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay somebody."""
    print("this line must not get into the protocol")
    paid.append(amount)
    return f"paid {amount}"


@tool
def look_up(context: ToolContext) -> ToolResult:
    """Look something up."""
    context.report("turning pages")
    return ToolResult("It is in the book.", metadata={"sources": ["https://example.org/book", "/srv/secret/notes.pdf"]})


@tool
def break_down() -> str:
    """Fail."""
    raise ValueError("broken")


@tool
async def confirm(context: ToolContext) -> str:
    """Ask a person during the call."""
    return f"confirmed: {await context.ask({'message': 'Go on?'})}"


class Patient(ScriptedModel):
    """Sends a word and then waits until it is cancelled."""

    began = threading.Event()
    cancelled = threading.Event()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("one moment")
        self.began.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.cancelled.set()


def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:  # noqa: C901 - a table
    """Answer by the first word of the question."""
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}")
    match text.split()[0]:
        case "pay":
            return calls(("pay", {"amount": 3}))
        case "write":
            return calls(("write_file", {"path": "notes.md", "content": "new\n"}))
        case "edit":
            edits = [{"old_text": "low", "new_text": "high"}, {"old_text": "six", "new_text": "seven"}]
            return calls(("edit_file", {"path": "tides.md", "edits": edits}))
        case "escape":
            return calls(("write_file", {"path": "../outside.md", "content": "x"}))
        case "read":
            return calls(("read_file", {"path": "tides.md", "start_line": 1}))
        case "book":
            return calls(("look_up", {}))
        case "broken":
            return calls(("break_down", {}))
        case "confirm":
            return calls(("confirm", {}))
        case "delegate":
            return calls(("clerk", {"request": "pay"}))
        case "think":
            return answer("Done.", reasoning="Let me see.")
        case "again":
            return [TextDelta("The answ"), StreamReset("broken"), *answer("The answer.")]
        case "other":
            return [TextDelta("The answ"), StreamReset("broken"), *answer("Another.")]
        case "busy":
            return [RateLimitedError("acme")]
        case "count":
            return answer(f"{sum(message.role == 'user' for message in request.messages)} questions")
    return answer(f"You said: {text}")


def make_agents(workspace: Path | str = ".") -> dict[str, FnCallAgent[Any]]:
    clerk = FnCallAgent([pay], ScriptedModel(script), name="clerk", description="Pays.")
    tools = [pay, look_up, break_down, confirm, "files", clerk.as_tool()]
    model = ScriptedModel(script, facts=ModelFacts(native_tools=True, images=True))
    return {
        "helper": FnCallAgent(tools, model, name="helper", description="Helps.", workspace=workspace),
        "patient": FnCallAgent(llm=Patient([]), name="patient"),
    }


def make_group() -> Any:
    """Return a group chat in which a person takes turns."""

    def member(name: str, *texts: str) -> FnCallAgent[Any]:
        return FnCallAgent(llm=ScriptedModel([answer(text) for text in texts]), name=name, description="Talks.")

    members = [member("Ann", "Who pays?", "Thanks, Cy."), UserAgent(name="Cy", description="Pays.")]
    return GroupChat(members, agent_selection_method="round_robin", name="group")


class Editor:
    """An editor whose person answers each request for permission with the same option.

    Attributes:
        updates: The updates that came, as JSON.
        asked: The tool calls for which permission was asked, as JSON, with the options.
    """

    def __init__(self, option: str | None = "allow") -> None:
        self.option = option
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.is_asked = asyncio.Event()
        self.keeps_waiting = False

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        shown = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.asked.append({**shown, "options": [one.option_id for one in options]})
        self.is_asked.set()
        if self.keeps_waiting:
            await asyncio.sleep(LIMIT_S)
        if self.option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.option))

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.of(kind))


Work = Callable[[Any, Editor], Awaitable[Any]]


def talk(
    work: Work, editor: Editor | None = None, *, workspace: Path | str = ".", serving: Serving | None = None
) -> Any:
    async def run() -> Any:
        face = load_server("acp", plain_host())
        assert isinstance(face, StdioServer)
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        their_reader, their_writer = await asyncio.open_connection(sock=theirs)
        async with asyncio.timeout(LIMIT_S), serving or Serving(make_agents(workspace)) as served:
            talking = asyncio.ensure_future(face.talk(served, their_reader, their_writer))
            connection = connect_to_agent(editor or Editor(), writer, reader)  # type: ignore[arg-type]
            try:
                await connection.initialize(protocol_version=1)
                return await work(connection, editor or Editor())
            finally:
                await connection.close()
                writer.close()
                await talking
                their_writer.close()

    return asyncio.run(run())


def ask(text: str, editor: Editor, **more: Any) -> str:
    async def work(connection: Any, _: Editor) -> str:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        reply = await connection.prompt(session_id=session.session_id, prompt=[text_block(text)])
        return str(reply.stop_reason)

    return str(talk(work, editor, **more))


# --- sessions ---


def test_the_agent_says_what_it_can() -> None:
    async def work(connection: Any, _: Editor) -> Any:
        return await connection.initialize(protocol_version=1)

    reply = talk(work)
    abilities = reply.agent_capabilities
    assert (reply.protocol_version, reply.agent_info.name, abilities.load_session) == (1, "jackfield", True)
    assert (abilities.prompt_capabilities.image, abilities.prompt_capabilities.audio) == (True, False)


def test_each_agent_is_a_mode() -> None:
    async def work(connection: Any, _: Editor) -> tuple[Any, str]:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        with pytest.raises(RequestError) as caught:
            await connection.set_session_mode(session_id=session.session_id, mode_id="nobody")
        return session.modes, str(caught.value)

    modes, message = talk(work)
    assert [(mode.id, mode.description) for mode in modes.available_modes] == [("helper", "Helps."), ("patient", None)]
    assert modes.current_mode_id == "helper"
    assert "'nobody'" in message


def test_a_session_is_one_conversation() -> None:
    async def work(connection: Any, editor: Editor) -> None:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        for text in ("Hi", "count"):
            await connection.prompt(session_id=session.session_id, prompt=[text_block(text)])

    editor = Editor()
    talk(work, editor)
    assert editor.text() == "You said: Hi2 questions"
    assert len({update["messageId"] for update in editor.of("agent_message_chunk")}) == 2


def test_a_session_is_loaded_with_all_that_it_showed() -> None:
    first, second = Editor(), Editor()

    async def work(connection: Any, _: Editor) -> str:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        for text in ("think", "book"):
            await connection.prompt(session_id=session.session_id, prompt=[text_block(text)])
        return str(session.session_id)

    async def load(connection: Any, _: Editor) -> tuple[Any, str]:
        listed = await connection.list_sessions()
        await connection.load_session(cwd="/", session_id=listed.sessions[0].session_id, mcp_servers=[])
        shown = second.text()
        await connection.prompt(session_id=listed.sessions[0].session_id, prompt=[text_block("count")])
        return listed.sessions, shown

    class Kept(Serving):
        async def __aexit__(self, *_: object) -> None:
            """Serve the next editor, too."""

    serving = Kept(make_agents())
    session_id = talk(work, first, serving=serving)
    sessions, shown = talk(load, second, serving=serving)
    assert [(one.session_id, one.cwd, one.title) for one in sessions] == [(session_id, str(Path.cwd()), "think")]
    assert sessions[0].updated_at.endswith("+00:00")
    assert second.text("user_message_chunk") == "thinkbook"
    assert shown == first.text()
    assert second.text("agent_thought_chunk") == "Let me see."
    assert [update.get("status") for update in second.of("tool_call_update")][-1:] == ["completed"]
    assert second.text().endswith("3 questions")


def test_a_group_that_waited_for_a_person_goes_on_in_another_editor() -> None:
    serving = Serving({"group": make_group()})

    async def work(connection: Any, _: Editor) -> None:
        left = await serving.start("group", "Lunch!", session="s")
        async for _event in serving.attach(left):
            pass
        await connection.load_session(cwd="/", session_id="s", mcp_servers=[])
        await connection.prompt(session_id="s", prompt=[text_block("I do.")])
        assert [run.run_id for run in await serving.runs()] == [left]

    editor = Editor()
    talk(work, editor, serving=serving)
    assert editor.text() == "Who pays?Thanks, Cy.", "each text once"
    assert editor.text("user_message_chunk") == "Lunch!"


def test_a_session_that_is_open_stays_as_it_is_when_it_is_loaded_again() -> None:
    serving = Serving(make_agents())

    async def work(connection: Any, _: Editor) -> None:
        session = (await connection.new_session(cwd="/", mcp_servers=[])).session_id
        for _time in range(2):
            await connection.prompt(session_id=session, prompt=[text_block("pay")])
            await connection.load_session(cwd="/", session_id=session, mcp_servers=[])
            assert editors_of(serving) == [session]

    editor = Editor("always")
    talk(work, editor, serving=serving)
    assert len(editor.asked) == 1


def test_sessions_are_those_of_the_folder_that_the_program_works_in() -> None:
    async def work(connection: Any, _: Editor) -> list[int]:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        await connection.prompt(session_id=session.session_id, prompt=[text_block("think")])
        folders = (None, str(Path.cwd()), "/no/such/folder")
        return [len((await connection.list_sessions(cwd=folder)).sessions) for folder in folders]

    assert talk(work) == [1, 1, 0]


def test_a_session_of_an_agent_that_is_gone_goes_on_with_the_first_one(tmp_path: Path) -> None:
    store = {"name": "sqlite", "path": str(tmp_path / "runs.sqlite")}

    async def before() -> None:
        gone = FnCallAgent(llm=ScriptedModel([answer("Goodbye.")]), name="gone")
        async with Serving({"gone": gone}, store=store) as serving:
            run_id = await serving.start("gone", "Hi.", session="old")
            assert [one async for one in serving.attach(run_id)]

    async def work(connection: Any, _: Editor) -> Any:
        loaded = await connection.load_session(cwd="/", session_id="old", mcp_servers=[])
        await connection.prompt(session_id="old", prompt=[text_block("count")])
        return loaded.modes.current_mode_id

    asyncio.run(before())
    editor = Editor()
    assert talk(work, editor, serving=Serving(make_agents(), store=store)) == "helper"
    assert editor.text() == "Goodbye.2 questions"


def test_a_session_goes_on_with_the_agent_that_answered_last() -> None:
    serving = Serving({**make_agents(), "group": make_group()})

    async def work(connection: Any, _: Editor) -> str:
        for agent in ("helper", "group"):
            run_id = await serving.start(agent, "Hi", session="s")
            assert [one async for one in serving.attach(run_id)]
        loaded = await connection.load_session(cwd="/", session_id="s", mcp_servers=[])
        return str(loaded.modes.current_mode_id)

    assert talk(work, serving=serving) == "group"


def test_an_unknown_session_is_an_error() -> None:
    async def work(connection: Any, _: Editor) -> list[int]:
        codes = []
        for request in (
            connection.prompt(session_id="x", prompt=[text_block("Hi")]),
            connection.load_session(cwd="/", session_id="x", mcp_servers=[]),
            connection.load_session(cwd="/", session_id="", mcp_servers=[]),
            connection.set_session_mode(session_id="x", mode_id="helper"),
        ):
            with pytest.raises(RequestError) as caught:
                await request
            codes.append(caught.value.code)
        return codes

    assert talk(work) == [-32602] * 4


def editors_of(serving: Serving) -> list[str]:
    return [session for _, session in serving._driver.editors]


def test_of_many_sessions_those_used_least_recently_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_acp_server.editor._MOST_SESSIONS", 3)
    serving = Serving(make_agents())

    async def work(connection: Any, editor: Editor) -> None:
        editor.keeps_waiting = True

        async def new_session() -> str:
            return str((await connection.new_session(cwd="/", mcp_servers=[])).session_id)

        busy, used, *others = [await new_session() for _ in range(3)]
        asking = asyncio.ensure_future(connection.prompt(session_id=busy, prompt=[text_block("pay")]))
        await editor.is_asked.wait()
        growth = Growth({"editors": serving._driver.editors}, beyond=(Serving,))
        for _ in range(5):
            await connection.prompt(session_id=used, prompt=[text_block("Hi")])
            others.append(await new_session())
            assert sorted(editors_of(serving)) == sorted([busy, used, others[-1]])
        assert growth.grown(by=1) == []
        await connection.prompt(session_id=others[-1], prompt=[text_block("Hi")])
        first = await new_session()
        with pytest.raises(RequestError, match="start or load a session"):
            await connection.prompt(session_id=used, prompt=[text_block("count")])
        await connection.load_session(cwd="/", session_id=used, mcp_servers=[])
        assert sorted(editors_of(serving)) == sorted([busy, used, first])
        editor.updates.clear()
        await connection.prompt(session_id=used, prompt=[text_block("count")])
        assert editor.text() == "6 questions"
        await connection.cancel(session_id=busy)
        assert (await asking).stop_reason == "cancelled"

    editor = Editor()
    talk(lambda connection, _: work(connection, editor), editor, serving=serving)
    assert editors_of(serving) == [], "the editor has left"


def test_a_session_keeps_no_text_of_files_after_its_answer(tmp_path: Path) -> None:
    (tmp_path / "tides.md").write_text("low at six")
    agents: list[EditorAgent] = []

    class Noted(EditorAgent):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            agents.append(self)

    async def work(connection: Any, _: Editor) -> list[object]:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        await connection.prompt(session_id=session.session_id, prompt=[text_block("edit")])
        return [one.updates for one in agents[0]._sessions.values()]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jackfield_acp_server.face.EditorAgent", Noted)
        assert talk(work, workspace=tmp_path) == [None]
    assert agents[0]._sessions == {}


# --- prompts ---


def test_thoughts_and_texts_are_chunks() -> None:
    editor = Editor()
    assert ask("think", editor) == "end_turn"
    assert (editor.text("agent_thought_chunk"), editor.text()) == ("Let me see.", "Done.")


def test_an_answer_that_begins_again_is_shown_once_if_it_is_the_same() -> None:
    editor = Editor()
    ask("again", editor)
    assert editor.text() == "The answer."
    editor = Editor()
    ask("other", editor)
    ids = [update["messageId"] for update in editor.of("agent_message_chunk")]
    assert (editor.text(), len(set(ids))) == ("The answAnother.", 2)


def test_files_and_images_of_a_prompt_reach_the_agent() -> None:
    async def work(connection: Any, _: Editor) -> None:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        resource = resource_block(embedded_text_resource("file:///a.md", "The tide is low."))
        blocks = [text_block("See "), resource_link_block("b.md", "file:///b.md"), resource]
        await connection.prompt(session_id=session.session_id, prompt=blocks)
        await connection.prompt(
            session_id=session.session_id, prompt=[text_block("Look"), image_block(PIXEL, "image/png")]
        )

    editor = Editor()
    talk(work, editor)
    assert "See [b.md](file:///b.md)" in editor.text()
    assert "The tide is low." in editor.text()
    assert "(Uploaded ![image](inline)) Look" in editor.text()


@pytest.mark.parametrize("blocks", [[], [text_block(" ")], [{"type": "text"}], [{"type": "x"}]])
def test_an_invalid_prompt_is_an_error(blocks: Any) -> None:
    async def work(connection: Any, _: Editor) -> int:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        prompt = [block if isinstance(block, dict) else block.model_dump() for block in blocks]
        with pytest.raises(RequestError) as caught:
            await connection._conn.send_request(  # the SDK itself sends only valid ones
                "session/prompt", {"sessionId": session.session_id, "prompt": prompt}
            )
        return caught.value.code

    assert talk(work) == -32602


def test_a_failure_is_an_error_without_insides() -> None:
    async def work(connection: Any, _: Editor) -> tuple[str, Any]:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        with pytest.raises(RequestError) as caught:
            await connection.prompt(session_id=session.session_id, prompt=[text_block("busy")])
        reply = await connection.prompt(session_id=session.session_id, prompt=[text_block("Hi")])
        assert reply.stop_reason == "end_turn"
        return str(caught.value), caught.value.data

    assert talk(work) == (
        "the agent's model is busy: try again later",
        {"code": "rate_limit_exceeded", "retryAfter": 5},
    )


def test_the_next_prompt_is_the_turn_of_a_person_whom_a_group_waits_for() -> None:
    async def work(connection: Any, _: Editor) -> None:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        for text in ("Lunch!", "I do."):
            await connection.prompt(session_id=session.session_id, prompt=[text_block(text)])

    editor = Editor()
    talk(work, editor, serving=Serving({"group": make_group()}))
    assert editor.text() == "Who pays?Thanks, Cy."


@pytest.mark.parametrize("end", [Serving.cancel, Serving.delete])
def test_a_prompt_begins_a_run_after_another_client_ended_the_one_that_waited(
    end: Callable[[Serving, str], Awaitable[None]],
) -> None:
    serving = Serving({"group": make_group()})

    async def work(connection: Any, _: Editor) -> None:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        prompt = partial(connection.prompt, session_id=session.session_id)
        await prompt(prompt=[text_block("Lunch!")])
        (run,) = await serving.runs()
        await end(serving, run.run_id)
        with pytest.raises(RequestError):
            await prompt(prompt=[text_block("I do.")])
        await prompt(prompt=[text_block("Lunch again!")])
        assert "Lunch again!" in [run.title for run in await serving.runs(session=session.session_id)]

    editor = Editor()
    talk(work, editor, serving=serving)
    assert editor.text() == "Who pays?Thanks, Cy."


class Silent(Agent):
    """Answers in a whole message, without pieces."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("finished", (Message("assistant", "Low."),), Usage())


def test_the_answer_of_an_agent_that_does_not_stream_is_shown() -> None:
    editor = Editor()
    assert ask("Tide?", editor, serving=Serving({"silent": Silent(name="silent")})) == "end_turn"
    assert editor.text() == "Low."


# --- tool calls ---


def test_a_tool_call_has_a_kind_its_progress_and_its_result() -> None:
    editor = Editor()
    ask("book", editor)
    (start,) = editor.of("tool_call")
    progress, end = editor.of("tool_call_update")
    assert (start["title"], start["kind"], start["status"]) == ("look_up", "other", "in_progress")
    assert progress["content"][0]["content"]["text"] == "turning pages"
    assert end["status"] == "completed"
    assert [block["content"].get("text") or block["content"]["uri"] for block in end["content"]] == [
        "It is in the book.",
        "https://example.org/book",
    ]
    assert {start["toolCallId"]} == {progress["toolCallId"], end["toolCallId"]}


def test_a_call_that_fails_is_shown_as_failed() -> None:
    editor = Editor()
    ask("broken", editor)
    assert [update["status"] for update in editor.of("tool_call_update")] == ["failed"]


def test_reading_shows_the_file_and_the_line(tmp_path: Path) -> None:
    (tmp_path / "tides.md").write_text("low at six\n")
    editor = Editor()
    ask("read", editor, workspace=tmp_path)
    (start,) = editor.of("tool_call")
    assert (start["kind"], start["title"]) == ("read", "read_file tides.md")
    assert start["locations"] == [{"path": str(tmp_path / "tides.md"), "line": 1}]


@pytest.mark.parametrize("old", [None, "old\n"])
def test_writing_shows_the_change_before_it_is_made(tmp_path: Path, old: str | None) -> None:
    file = tmp_path / "notes.md"
    if old is not None:
        file.write_text(old)
    editor = Editor()
    ask("write", editor, workspace=tmp_path)
    (asked,) = editor.asked
    expected = {"type": "diff", "path": str(file), "newText": "new\n", **({} if old is None else {"oldText": old})}
    assert (asked["kind"], asked["content"]) == ("edit", [expected])
    assert file.read_text() == "new\n"
    assert editor.of("tool_call_update")[-1]["status"] == "completed"
    assert "content" not in editor.of("tool_call_update")[-1]  # so that the change stays to be seen


def test_editing_shows_each_change(tmp_path: Path) -> None:
    file = tmp_path / "tides.md"
    file.write_text("low at six\n")
    editor = Editor()
    ask("edit", editor, workspace=tmp_path)
    assert [(one["oldText"], one["newText"]) for one in editor.asked[0]["content"]] == [
        ("low", "high"),
        ("six", "seven"),
    ]
    assert editor.asked[0]["locations"] == [{"path": str(file)}]
    assert file.read_text() == "high at seven\n"


@pytest.mark.parametrize("content", [b"x" * (1 << 20) + b"x", b"\xff\xfe"])
def test_a_file_that_is_large_or_no_text_is_not_shown_before_it_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.md").write_bytes(content)
    editor = Editor("reject")
    ask("write", editor, workspace=tmp_path)
    assert editor.asked[0]["content"] == [{"type": "diff", "path": str(tmp_path / "notes.md"), "newText": "new\n"}]


def test_a_path_out_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret")
    editor = Editor()
    ask("escape", editor, workspace=tmp_path / "inside")
    assert "secret" not in str(editor.asked) + str(editor.updates)
    assert "locations" not in editor.asked[0]


# --- approvals ---


def test_a_call_waits_for_permission() -> None:
    for option, expected in (("allow", [3]), ("reject", []), (None, []), ("something else", [])):
        paid.clear()
        editor = Editor(option)
        assert ask("pay", editor) == "end_turn"
        (asked,) = editor.asked
        assert (asked["title"], asked["rawInput"]) == ("pay", {"amount": 3})
        assert asked["options"] == ["allow", "always", "reject"]
        assert paid == expected
        end = editor.of("tool_call_update")[-1]
        assert end["toolCallId"] == asked["toolCallId"]
        assert end["status"] == ("completed" if expected else "failed")


def test_always_lasts_for_the_session_and_the_tool() -> None:
    async def work(connection: Any, _: Editor) -> None:
        for session in [await connection.new_session(cwd="/", mcp_servers=[]) for _ in range(2)]:
            for _ in range(2):
                await connection.prompt(session_id=session.session_id, prompt=[text_block("pay")])

    paid.clear()
    editor = Editor("always")
    talk(work, editor)
    assert (len(editor.asked), paid) == (2, [3, 3, 3, 3])


class DoubtfulServing(Serving):
    """Serves runs that may have gone on in another process, which ended during their calls."""

    is_in_doubt = False

    async def run(self, run_id: str, *, owner: str = "") -> RunInfo:
        info = await super().run(run_id, owner=owner)
        return replace(info, waiting=tuple(replace(call, in_doubt=self.is_in_doubt) for call in info.waiting))


def test_a_call_that_may_have_been_made_is_asked_about_also_if_it_is_always_allowed() -> None:
    serving = DoubtfulServing(make_agents())

    async def work(connection: Any, _: Editor) -> None:
        session = await connection.new_session(cwd="/", mcp_servers=[])
        for serving.is_in_doubt in (False, True):
            await connection.prompt(session_id=session.session_id, prompt=[text_block("pay")])

    paid.clear()
    editor = Editor("always")
    talk(work, editor, serving=serving)
    assert [asked["options"] for asked in editor.asked] == [["allow", "always", "reject"], ["allow", "reject"]]
    assert editor.asked[1]["title"] == "pay (may already have been made)"
    assert paid == [3]  # the second answer is no option of its question


@pytest.mark.parametrize(("option", "status"), [("allow", "completed"), ("reject", "failed")])
def test_a_nested_agent_asks_in_its_own_name(option: str, status: str) -> None:
    paid.clear()
    editor = Editor(option)
    ask("delegate", editor)
    (asked,) = editor.asked
    assert asked["title"] == "clerk: pay"
    assert paid == ([3] if option == "allow" else [])
    open_ids = {update["toolCallId"] for update in editor.updates if "toolCallId" in update}
    updates = [one for one in editor.of("tool_call_update") if one.get("status") in ("completed", "failed")]
    assert open_ids | {asked["toolCallId"]} == {one["toolCallId"] for one in updates}
    assert [one["status"] for one in updates if one["toolCallId"] == asked["toolCallId"]][:1] == [status]


def test_a_question_of_a_running_call_reaches_the_person() -> None:
    editor = Editor()
    ask("confirm", editor)
    assert editor.asked[0]["options"] == ["allow", "reject"]
    assert editor.text() == "It says: confirmed: True"


def test_of_two_answers_the_first_counts() -> None:
    serving = Serving(make_agents())

    class Late(Editor):
        """Its person answers after somebody else has."""

        async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
            (run,) = await serving.runs(session=session_id)
            (call,) = (await serving.run(run.run_id)).waiting
            await serving.answer(run.run_id, {call.call_id: True})
            return await super().request_permission(session_id, tool_call, options)

    paid.clear()
    editor = Late("reject")
    assert ask("pay", editor, serving=serving) == "end_turn"
    assert (paid, editor.text()) == ([3], "It says: paid 3")


def test_a_prompt_takes_the_place_of_a_run_that_another_editor_has_left_waiting() -> None:
    serving = Serving(make_agents())

    async def work(connection: Any, _: Editor) -> str:
        left = await serving.start("helper", "pay", session="s")
        async for _event in serving.attach(left):
            pass
        await connection.load_session(cwd="/", session_id="s", mcp_servers=[])
        reply = await connection.prompt(session_id="s", prompt=[text_block("count")])
        assert (await serving.run(left)).stop_reason == "cancelled"
        return str(reply.stop_reason)

    paid.clear()
    editor = Editor()
    assert talk(work, editor, serving=serving) == "end_turn"
    assert (paid, editor.text()) == ([], "2 questions")


# --- editors that cancel and leave ---


def test_a_cancelled_prompt_cancels_the_run_and_the_session_goes_on() -> None:
    async def work(connection: Any, editor: Editor) -> list[str]:
        session = (await connection.new_session(cwd="/", mcp_servers=[])).session_id
        await connection.set_session_mode(session_id=session, mode_id="patient")
        asking = asyncio.ensure_future(connection.prompt(session_id=session, prompt=[text_block("Hi")]))
        assert await asyncio.to_thread(Patient.began.wait, LIMIT_S)
        with pytest.raises(RequestError, match="is already answering"):
            await connection.prompt(session_id=session, prompt=[text_block("Hi")])
        await connection.cancel(session_id=session)
        first = await asking
        await connection.set_session_mode(session_id=session, mode_id="helper")
        second = await connection.prompt(session_id=session, prompt=[text_block("Hi")])
        return [first.stop_reason, second.stop_reason]

    Patient.began.clear()
    Patient.cancelled.clear()
    assert talk(work) == ["cancelled", "end_turn"]
    assert Patient.cancelled.is_set()


def test_a_prompt_that_is_cancelled_before_its_run_has_begun_ends_the_run() -> None:
    async def main() -> Any:
        class Slow(Serving):
            async def start(self, *arguments: Any, **options: Any) -> str:
                with pytest.raises(RequestError, match="is already answering"):
                    await agent.prompt([text_block("Hi")], session)
                await agent.cancel(session)
                return await super().start(*arguments, **options)

        async with asyncio.timeout(LIMIT_S), Slow(make_agents()) as serving:
            agent = EditorAgent(serving)
            agent.on_connect(Editor())  # type: ignore[arg-type]
            session = (await agent.new_session("/")).session_id
            reply = await agent.prompt([text_block("Hi")], session)
            agent.close()
            return reply.stop_reason

    assert asyncio.run(main()) == "cancelled"


def test_a_prompt_can_be_cancelled_while_it_waits_for_permission() -> None:
    paid.clear()
    editor = Editor()
    editor.keeps_waiting = True

    async def work(connection: Any, _: Editor) -> str:
        session = (await connection.new_session(cwd="/", mcp_servers=[])).session_id
        asking = asyncio.ensure_future(connection.prompt(session_id=session, prompt=[text_block("pay")]))
        await editor.is_asked.wait()
        await connection.cancel(session_id=session)
        return str((await asking).stop_reason)

    assert talk(work, editor) == "cancelled"
    assert paid == []


def test_an_editor_that_leaves_ends_its_run() -> None:
    async def work(connection: Any, _: Editor) -> None:
        session = (await connection.new_session(cwd="/", mcp_servers=[])).session_id
        await connection.set_session_mode(session_id=session, mode_id="patient")
        asking = asyncio.ensure_future(connection.prompt(session_id=session, prompt=[text_block("Hi")]))
        assert await asyncio.to_thread(Patient.began.wait, LIMIT_S)
        asking.cancel()

    class Watched(Serving):
        """Sees the end of its run before it closes, which would end the run as well."""

        async def __aexit__(self, *error: object) -> None:
            (run,) = await self.runs()
            with suppress(TimeoutError):
                async with asyncio.timeout(10):
                    ends.extend([one.event.event async for one in self.attach(run.run_id)])
            await super().__aexit__(*error)

    ends: list[Any] = []
    Patient.began.clear()
    talk(work, serving=Watched(make_agents()))
    assert ends[-1:] == [one for one in ends if isinstance(one, RunFinished) and one.stop_reason == "cancelled"] != []


def test_an_editor_starts_the_program() -> None:
    editor = Editor()

    async def run() -> None:
        arguments = ["-m", "jackfield", "serve", "helper=test_editor:helper", "--stdio", "acp"]
        folder = str(Path(__file__).parent)
        async with (
            asyncio.timeout(LIMIT_S),
            spawn_agent_process(editor, sys.executable, *arguments, cwd=folder) as (connection, _),  # type: ignore[arg-type]
        ):
            await connection.initialize(protocol_version=1)
            session = await connection.new_session(cwd=folder, mcp_servers=[])
            assert session.modes is None
            for text in ("Hi 🙂", "pay"):
                await connection.prompt(session_id=session.session_id, prompt=[text_block(text)])

    asyncio.run(run())
    assert editor.text() == "You said: Hi 🙂It says: paid 3"


helper = make_agents()["helper"]
