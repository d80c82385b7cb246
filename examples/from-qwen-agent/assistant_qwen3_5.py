"""Qwen3.5: one model that sees, thinks and calls tools, over the server's own tool calls.

OPENAI_BASE_URL=http://localhost:8000/v1 python assistant_qwen3_5.py "How many sides has the roof?" harbour.png
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import ContentItem, FnCallAgent, Message

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:Qwen/Qwen3.5-35B-A3B")
HARBOUR = Path(__file__).parent / "files" / "harbour.png"
NOTES: list[str] = []


def note(text: str) -> str:
    """Write something down for the user."""
    NOTES.append(text)
    return f"noted, {len(NOTES)} in all"


def main(question: str = "Look at the picture, and note what stands in it.", image: str = str(HARBOUR)) -> None:
    """Ask about a picture, without thoughts, and with calls as the server has them."""
    agent = FnCallAgent(
        [note, "image_zoom_in_tool"],
        llm=MODEL,
        extra_generate_cfg={
            "use_raw_api": True,  # the default; it is here because Qwen-Agent's script has it
            "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
        },
    )
    print(agent.ask(Message("user", [ContentItem(image=image), ContentItem(text=question)])).text)
    print("Notes:", *NOTES)


if __name__ == "__main__":
    main(*sys.argv[1:])
