"""The agent that real clients ask. Its model follows a script."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield import FnCallAgent, tool
from jackfield.events import ModelEvent
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls


@tool
def look_up() -> str:
    """Look something up."""
    return "It is in the book."


def script(request: ChatRequest) -> Sequence[ModelEvent]:
    """Call a tool of the client or of the agent, or repeat the question."""
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}")
    if "weather" in text:
        return calls(("weather", {"city": "Bonn"}))
    if "book" in text:
        return calls(("look_up", {}))
    return answer(f"You said: {text}", reasoning="Let me think.")


helper = FnCallAgent([look_up], llm=ScriptedModel(script))
