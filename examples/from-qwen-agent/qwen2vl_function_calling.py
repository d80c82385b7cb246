"""A model that sees fills in the arguments of a function from a picture; the loop without an agent.

JACKFIELD_MODEL=qwenvl_dashscope:qwen-vl-max python qwen2vl_function_calling.py "When does it open?" harbour.png
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import ContentItem, Message, call_tool, get_chat_model, tool

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
HARBOUR = Path(__file__).parent / "files" / "harbour.png"


@tool
def opening_hours(harbour: int) -> str:
    """Look up when a harbour is open.

    Args:
        harbour: Its number.
    """
    return f"Harbour {harbour} is open from 6 to 22."


def main(question: str = "When does this harbour open?", image: str = str(HARBOUR)) -> None:
    """Ask with a picture, make the call, and ask again with its result."""
    model = get_chat_model(MODEL)
    messages = [Message("user", [ContentItem(image=image), ContentItem(text=question)])]
    functions = [opening_hours.function]
    answer = model.chat(messages, functions, stream=False)
    messages += answer
    for message in answer:
        if call := message.function_call:
            result = call_tool(opening_hours, call.arguments)
            given = {"function_id": message.function_id}
            messages.append(Message("function", result, name=call.name, extra=given))
    messages += model.chat(messages, functions, stream=False)
    print(messages[-1].content)


if __name__ == "__main__":
    main(*sys.argv[1:])
