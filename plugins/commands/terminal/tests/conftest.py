"""The commands as people type them: in an environment with the core and this distribution, beside fake plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jackfield_testkit.command_line import CommandLine, bare_environment, command_line, open_terminal
from jackfield_testkit.site import FakeSite, site

__all__ = ["command_line", "open_terminal", "site"]

BACKEND = """
import asyncio
from jackfield.events import FunctionCallDelta, ModelFinished, ReasoningDelta, TextDelta
from jackfield.models import BaseChatModel

class Echo(BaseChatModel):
    backend = "echo"

    async def stream(self, request):
        last = request.messages[-1]
        said = last.get_text_content()
        if said == "wait":
            yield TextDelta("I begin")
            await asyncio.sleep(60)
        if last.role == "user" and request.functions and said == "use it":
            yield FunctionCallDelta(0, id="c1", name=request.functions[0]["name"], arguments="{}")
            yield ModelFinished("tool_calls")
            return
        yield ReasoningDelta("let me see")
        yield TextDelta(f"you said: {said}\\x1b[31m ({len(request.messages)} messages)")
        yield ModelFinished("stop")
"""
BACKEND_HOOK = """
from jackfield.plugins import LLMSpec, ToolSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="echo", target="echo_backend:Echo", summary="says it again", secrets=("ECHO_KEY",))]

@hook.tools
def tools():
    return [ToolSpec(name="clock", target="echo_clock:Clock", description="Tells the time.")]
"""
CLOCK = """
from jackfield.tools import BaseTool

class Clock(BaseTool):
    def call(self, params, *, context=None):
        return "noon"
"""


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that sees the core and this distribution: nobody asks about what is new."""
    return bare_environment(tmp_path_factory.mktemp("terminal"), ["jackfield", "jackfield-terminal"])


@pytest.fixture
def echo(site: FakeSite) -> None:
    """A backend that says again what was asked, and a tool."""
    modules = {"echo_plugin": BACKEND_HOOK, "echo_backend": BACKEND, "echo_clock": CLOCK}
    site.add("acme-echo", {"llm.echo": "echo_plugin", "tool.clock": "echo_plugin"}, modules=modules)


@pytest.fixture
def chat(command_line: CommandLine, echo: None, open_terminal: Callable[..., Any]) -> Any:
    """A chat with `echo`, at its first prompt."""
    terminal = open_terminal(["chat", "-m", "echo:m", "-t", "clock"], command_line.folder, command_line.env)
    terminal.wait_for("> ")
    return terminal
