"""The agent that real clients ask. Its model follows a script."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield import FnCallAgent, tool
from jackfield.events import ModelEvent
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolResult


@tool
def look_up() -> str:
    """Look something up."""
    return "It is in the book."


@tool
def paint() -> ToolResult:
    """Paint the page."""
    return ToolResult("It is red.", metadata={"ag_ui_state": {"color": "red"}})


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    return f"paid {amount}"


def script(request: ChatRequest) -> Sequence[ModelEvent]:
    """Call a tool of the client or of the agent, or another agent, or repeat the question."""
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}")
    if "weather" in text:
        return calls(("weather", {"city": "Bonn"}))
    if "pay" in text:
        return calls(("pay", {"amount": 3}))
    if "paint" in text:
        return calls(("paint", {}))
    if "delegate" in text:
        return calls(("clerk", {"request": "Hi"}))
    if "tides" in text:
        return calls(("read_file", {"path": "tides.md"}))
    if "terminal" in text:
        return calls(("shell", {"command": "echo in the terminal"}))
    if "book" in text:
        return calls(("look_up", {}))
    return answer(f"You said: {text}", reasoning="Let me think.")


clerk = FnCallAgent(llm=ScriptedModel(script), name="clerk", description="Does errands.")
SHELL = {"name": "shell", "approval": "never", "sandbox": "none"}
TOOLS = [look_up, paint, pay, clerk.as_tool(), "read_file", SHELL]
helper = FnCallAgent(TOOLS, llm=ScriptedModel(script), name="helper")
