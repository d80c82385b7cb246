"""Tools in the files and terminals of an editor, with the client side of the ACP SDK."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, connect_to_agent, text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

from jackfield import FnCallAgent
from jackfield.events import ModelEvent
from jackfield.request import ChatRequest
from jackfield.servers import StdioServer, load_server
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_serving import Serving
from jackfield_testkit.installed import plain_host

LIMIT_S = 60
SHELL = {"name": "shell", "sandbox": "none"}


def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:
    """Make the call that the question describes in JSON, and answer with its result."""
    last = request.messages[-1]
    text = last.get_text_content()
    return answer(text) if last.role == "function" else calls(tuple(json.loads(text)))


class Editor:
    """An editor with buffers that are not saved, and terminals.

    Attributes:
        buffers: The texts of open files, by their paths.
        updates, asked: The updates, and the calls for which permission was asked, as JSON.
        released: The terminals that were released.
    """

    def __init__(self, buffers: dict[Path, str] | None = None) -> None:
        self.buffers = {str(path): text for path, text in (buffers or {}).items()}
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.terminals: dict[str, asyncio.subprocess.Process] = {}
        self.outputs: dict[str, str] = {}
        self.released: list[str] = []
        self.is_running = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        self.asked.append(tool_call.model_dump(mode="json", by_alias=True, exclude_none=True))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="allow"))

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        if path in self.buffers:
            return ReadTextFileResponse(content=self.buffers[path])
        try:
            return ReadTextFileResponse(content=Path(path).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise RequestError(-32603, str(error)) from None

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.buffers[path] = content

    async def create_terminal(
        self, session_id: str, command: str, args: list[str], env: list[Any], cwd: str, **_: Any
    ) -> CreateTerminalResponse:
        variables = os.environ | {"EDITOR_SECRET": "key"} | {one.name: one.value for one in env}
        name = f"terminal{len(self.terminals)}"
        self.terminals[name] = await asyncio.create_subprocess_exec(
            command, *args, env=variables, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        self.is_running.set()
        return CreateTerminalResponse(terminal_id=name)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> WaitForTerminalExitResponse:
        output, _none = await self.terminals[terminal_id].communicate()
        self.outputs[terminal_id] = output.decode()
        return WaitForTerminalExitResponse(exit_code=self.terminals[terminal_id].returncode)

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> TerminalOutputResponse:
        return TerminalOutputResponse(output=self.outputs.get(terminal_id, ""), truncated=False)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        if self.terminals[terminal_id].returncode is None:
            self.terminals[terminal_id].kill()

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        await self.kill_terminal(session_id, terminal_id)
        self.released.append(terminal_id)

    def on_connect(self, conn: Any) -> None:
        pass

    def text(self) -> str:
        texts = [one["content"]["text"] for one in self.updates if one["sessionUpdate"] == "agent_message_chunk"]
        return "".join(texts)

    def contents(self) -> list[dict[str, Any]]:
        calls = [one for one in self.updates if one["sessionUpdate"] in ("tool_call", "tool_call_update")]
        return [content for call in calls for content in call.get("content", ())]


ALL = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True)


def ask(
    editor: Editor,
    workspace: Path,
    name: str,
    *,
    abilities: ClientCapabilities | None = ALL,
    nested: bool = False,
    cancels: bool = False,
    **arguments: Any,
) -> str:
    """Let an agent make one call, and return the reason why the prompt ended."""
    agent = FnCallAgent(
        ["files", SHELL], ScriptedModel(script), name="helper", description="Helps.", workspace=workspace
    )
    question = json.dumps([name, arguments])
    if nested:
        helper = agent.as_tool()
        agent = FnCallAgent([helper], ScriptedModel(script), name="head", workspace=workspace)
        question = json.dumps(["helper", {"request": question}])

    async def run() -> str:
        face = load_server("acp", plain_host())
        assert isinstance(face, StdioServer)
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        their_reader, their_writer = await asyncio.open_connection(sock=theirs)
        async with asyncio.timeout(LIMIT_S), Serving({"agent": agent}) as serving:
            talking = asyncio.ensure_future(face.talk(serving, their_reader, their_writer))
            connection: Any = connect_to_agent(editor, writer, reader)  # type: ignore[arg-type]
            await connection.initialize(protocol_version=1, client_capabilities=abilities)
            session = (await connection.new_session(cwd=str(workspace), mcp_servers=[])).session_id
            prompt = asyncio.ensure_future(connection.prompt(session_id=session, prompt=[text_block(question)]))
            if cancels:
                await editor.is_running.wait()
                await connection.cancel(session_id=session)
            reply = await prompt
            for process in editor.terminals.values():
                await process.wait()
                process._transport.close()  # type: ignore[attr-defined]  # the loop ends before it is collected
            await connection.close()
            writer.close()
            await talking
            their_writer.close()
            return str(reply.stop_reason)

    return asyncio.run(run())


@pytest.mark.parametrize("nested", [False, True])
def test_reading_sees_changes_that_are_not_saved(tmp_path: Path, nested: bool) -> None:
    file = tmp_path / "tides.md"
    file.write_text("low at six\n")
    editor = Editor({file: "first\nlow at seven\n"})
    ask(editor, tmp_path, "read_file", path="tides.md", start_line=2, nested=nested)
    assert editor.text() == "2\tlow at seven"


def test_editing_changes_the_text_in_the_editor(tmp_path: Path) -> None:
    file = tmp_path / "tides.md"
    file.write_text("low at six\n")
    editor = Editor({file: "low at seven\n"})
    edits = [{"old_text": "seven", "new_text": "eight"}]
    ask(editor, tmp_path, "edit_file", path="tides.md", edits=edits)
    assert editor.buffers == {str(file): "low at eight\n"}
    assert file.read_text() == "low at six\n"
    diff = {"type": "diff", "path": str(file), "oldText": "seven", "newText": "eight"}
    assert editor.asked[0]["content"] == [diff]


@pytest.mark.parametrize("buffer", [None, "unsaved\n"])
def test_writing_shows_the_change_from_the_text_in_the_editor(tmp_path: Path, buffer: str | None) -> None:
    file = tmp_path / "new" / "notes.md"
    editor = Editor({file: buffer} if buffer else {})
    ask(editor, tmp_path, "write_file", path="new/notes.md", content="text\n")
    assert editor.buffers == {str(file): "text\n"}
    assert editor.asked[0]["content"][0].get("oldText") == buffer
    assert {one["newText"] for one in editor.contents()} == {"text\n"}
    assert editor.asked[0]["locations"] == [{"path": str(file)}]


def test_the_workspace_bounds_the_editor_as_well(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.md"
    inside.mkdir()
    (inside / "link.md").symlink_to(outside)
    editor = Editor({outside: "secret"})
    for path in ("../outside.md", "link.md", str(outside)):
        ask(editor, inside, "read_file", path=path)
        ask(editor, inside, "write_file", path=path, content="x")
    assert "secret" not in f"{editor.text()}{editor.asked}{editor.updates}"
    assert editor.buffers == {str(outside): "secret"}


def test_the_tools_do_themselves_what_the_editor_cannot(tmp_path: Path) -> None:
    file = tmp_path / "tides.md"
    file.write_bytes("Ebbe um sieben, Flut später\n".encode("cp1252"))  # no editor of this test reads it
    editor = Editor()
    ask(editor, tmp_path, "edit_file", path="tides.md", edits=[{"old_text": "sieben", "new_text": "acht"}])
    assert file.read_bytes() == "Ebbe um acht, Flut später\n".encode("cp1252")
    editor = Editor({file: "unsaved"})
    for abilities in (None, ClientCapabilities()):
        ask(editor, tmp_path, "write_file", path="tides.md", content="text", abilities=abilities)
        ask(editor, tmp_path, "shell", command="cat tides.md", abilities=abilities)
    assert (file.read_text(), editor.buffers[str(file)], editor.terminals) == ("text", "unsaved", {})
    assert editor.text().endswith("text")


def test_commands_run_in_a_terminal_that_the_call_shows(tmp_path: Path) -> None:
    editor = Editor()
    ask(editor, tmp_path, "shell", command="pwd; echo $HOME $EDITOR_SECRET; exit 3")
    assert editor.text() == f"{tmp_path}\n{tmp_path}\n[exit code 3]"
    assert {"type": "terminal", "terminalId": "terminal0"} in editor.contents()
    last = [one for one in editor.updates if one["sessionUpdate"] == "tool_call_update"][-1]
    assert (last["status"], "content" in last) == ("completed", False)  # so that the terminal stays to be seen
    assert editor.released == ["terminal0"]


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    editor = Editor()
    ask(editor, tmp_path, "shell", command="sleep 60", timeout_s=1)
    assert "[terminated after 1 s" in editor.text()
    assert editor.terminals["terminal0"].returncode == -9


def test_cancelling_ends_the_command_in_the_terminal(tmp_path: Path) -> None:
    editor = Editor()
    assert ask(editor, tmp_path, "shell", command="sleep 60", cancels=True) == "cancelled"
    assert editor.released == ["terminal0"]
