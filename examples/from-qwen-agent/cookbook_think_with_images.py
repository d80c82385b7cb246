"""Thinking with pictures: the model enlarges parts, measures with code, and answers from what it sees.

    python cookbook_think_with_images.py "How many red stripes does the lighthouse have?" harbour.png

It is given the picture as a file, too, so that its code can read it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import ContentItem, FnCallAgent, Message

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
HARBOUR = Path(__file__).parent / "files" / "harbour.png"
STEPS = (
    "Look at the picture in steps. Zoom in where something is small; count and measure with code, which finds the "
    "picture in its folder under its own name. Say what you see in each step before you answer."
)


def main(question: str = "How many red stripes does the lighthouse have?", image: str = str(HARBOUR)) -> None:
    """Ask about a picture with both tools, and show what was done."""
    agent = FnCallAgent(["image_zoom_in_tool", "code_interpreter"], llm=MODEL, system_message=STEPS, files=[image])
    result = agent.ask(Message("user", [ContentItem(image=image), ContentItem(text=question)]))
    for message in result.messages:
        if message.function_call:
            print(f"> {message.function_call.name}")
        elif message.role == "assistant":
            print(message.content)


if __name__ == "__main__":
    main(*sys.argv[1:])
