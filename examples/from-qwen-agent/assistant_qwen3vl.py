"""Qwen3-VL: a model that sees looks closely at parts of a picture, as often as it needs.

JACKFIELD_MODEL=qwenvl_dashscope:qwen3-vl-plus python assistant_qwen3vl.py "What number has the harbour?" harbour.png
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import ContentItem, Message, create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
HARBOUR = Path(__file__).parent / "files" / "harbour.png"


def main(question: str = "What number has the harbour?", image: str = str(HARBOUR)) -> None:
    """Ask about a picture, with a tool that enlarges parts of it."""
    agent = create_agent(
        "assistant",
        llm=MODEL,
        system_message="If you cannot read something, zoom in before you answer.",
        function_list=["image_zoom_in_tool"],
    )
    result = agent.ask(Message("user", [ContentItem(image=image), ContentItem(text=question)]))
    for message in result.messages:
        if message.function_call:
            print(message.function_call.name, message.function_call.arguments)
    print(result.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
