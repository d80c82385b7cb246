"""The commands as people type them: in an environment with the core and this distribution, beside fake plugins."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.forks import shared_forks
from tests.support.command_line import (
    IMPORTED_BY_COMMANDS,
    CommandLine,
    bare_environment,
    command_line,
    open_terminal,
)
from tests.support.site import FakeSite, site

__all__ = ["command_line", "open_terminal", "site"]

BACKEND = """
import asyncio, time
from jackfield.errors import ModelRequestError
from jackfield.events import FunctionCallDelta, ModelFinished, PluginEvent, ReasoningDelta, TextDelta, UsageReported
from jackfield.messages import Usage
from jackfield.models import BaseChatModel
from jackfield.request import ModelFacts

class Echo(BaseChatModel):
    backend = "echo"
    facts = ModelFacts(images=True, files=True)

    async def stream(self, request):
        last = request.messages[-1]
        said = last.get_text_content()
        if said == "wait":
            yield TextDelta("I begin")
            await asyncio.sleep(60)
        if said == "stuck":
            yield TextDelta("I hang")
            time.sleep(3)
        if said == "markdown":
            yield TextDelta("# Title\\n\\nsome **bold** text\\n\\n- one\\n- two\\x1b[31m\\n")
            yield ModelFinished("stop")
            return
        if last.role == "user" and not isinstance(last.content, str):
            said += " + " + ", ".join(f"{item.type}:{str(item.value)[:40]}" for item in last.content if not item.text)
        if last.role == "user" and request.functions and said in ("use it", "break it"):
            yield FunctionCallDelta(0, id="c1", name=request.functions[0]["name"], arguments="{}")
            yield ModelFinished("tool_calls")
            return
        if last.role == "function" and "break it" in [message.content for message in request.messages[-3:]]:
            yield FunctionCallDelta(0, id="c2", name=request.functions[0]["name"], arguments='{"half')
            raise ModelRequestError("it broke", backend="echo")
        yield PluginEvent("acme.found", {"sources": ["guide.pdf", "b\\x1b[31m.md"]})
        yield ReasoningDelta("let me see")
        yield TextDelta(f"you said: {said}\\x1b[31m ({len(request.messages)} messages)")
        yield UsageReported(Usage(prompt_tokens=7, completion_tokens=3))
        yield ModelFinished("stop")
"""
BACKEND_HOOK = """
from jackfield.plugins import LLMSpec, ToolSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="echo", target="echo_backend:Echo", summary="says it again", secrets=("ECHO_KEY",))]

@hook.tools
def tools():
    return [
        ToolSpec(name="clock", target="echo_clock:Clock", description="Tells the time."),
        ToolSpec(name="paint", target="echo_clock:Paint", description="Paints.", effects={"files"}, file_access=True),
        ToolSpec(name="look", target="echo_clock:Look", description="Looks.", effects={"files"}, read_only=True),
    ]
"""
CLOCK = """
import shutil, tempfile
from logging import warning
from pathlib import Path
from jackfield.messages import ContentItem
from jackfield.tools import BaseTool, ToolResult

class Clock(BaseTool):
    def call(self, params, *, context=None):
        return "noon"

class Look(BaseTool):
    effects, read_only = frozenset({"files"}), True
    def call(self, params, *, context=None):
        return "seen"

class Paint(BaseTool):
    async def call(self, params, *, context=None):
        folder = await context.resources.get("paint", opened)
        (folder.path / "table.csv").write_text("1,2")
        warning("it is painted\\x1b[31m")
        metadata = {"files": [str(folder.path / "table.csv")], "files_are_temporary": True, "isolation": "none: a test"}
        picture = ContentItem(image="data:image/png;base64,iVBORw0KGgo=")
        return ToolResult([ContentItem(text="painted"), picture], metadata)

class Folder:
    # As the code interpreter's: it goes with the run.
    def __init__(self):
        self.path = Path(tempfile.mkdtemp())
    async def aclose(self):
        shutil.rmtree(self.path)

async def opened():
    return Folder()
"""


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that sees the core and this distribution: nobody asks about what is new."""
    return bare_environment(
        tmp_path_factory.mktemp("terminal"), ["jackfield", "jackfield-documents", "jackfield-terminal"]
    )


@pytest.fixture
def echo(site: FakeSite) -> None:
    """A backend that says again what was asked, and a tool."""
    modules = {"echo_plugin": BACKEND_HOOK, "echo_backend": BACKEND, "echo_clock": CLOCK}
    site.add(
        "acme-echo",
        dict.fromkeys(("llm.echo", "tool.clock", "tool.look", "tool.paint"), "echo_plugin"),
        modules=modules,
    )


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory, bare_python: str) -> Path:
    """A folder with `jackfield` as a command: a fork of a process that has imported what it imports."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "jackfield"
    forks = shared_forks(IMPORTED_BY_COMMANDS, bare_python)
    if forks:
        forks.write_command(command, "import runpy; runpy.run_module('jackfield', run_name='__main__', alter_sys=True)")
    else:
        command.write_text(f'#!/bin/sh\nexec "{bare_python}" -m jackfield "$@"\n')
        command.chmod(0o755)
    return folder


@pytest.fixture
def shell(command_line: CommandLine, commands: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a line of a shell in which `jackfield` is the command."""

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=command_line.folder,
            env={**command_line.env, "PATH": os.pathsep.join([str(commands), command_line.env["PATH"]])},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run


Chat = Callable[..., Any]


@pytest.fixture
def open_chat(command_line: CommandLine, echo: None, open_terminal: Callable[..., Any]) -> Chat:
    """Opens a chat with `echo` in a terminal, with more options; gives it at its first prompt."""

    def opened(*options: str, term: str = "xterm-256color") -> Any:
        words = ["chat", "-m", "echo:m", "-t", "clock", *options]
        terminal = open_terminal(words, command_line.folder, {**command_line.env, "TEST_TERM": term})
        # An editor draws its prompt in pieces; before, it asks the terminal to mark what is pasted.
        terminal.prompt = "> " if term == "dumb" else "\x1b[?2004h"
        terminal.wait_for(terminal.prompt)
        return terminal

    return opened


@pytest.fixture(params=["dumb", "xterm-256color"])
def chat(open_chat: Chat, request: pytest.FixtureRequest) -> Any:
    """A chat in a terminal that can do nothing, and in one that edits lines."""
    return open_chat(term=request.param)
