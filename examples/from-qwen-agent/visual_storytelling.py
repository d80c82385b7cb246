"""Two agents, one after the other: one describes a picture, the other writes a story about it by a document's rules.

    python visual_storytelling.py harbour.png

`SEEING_MODEL` names the model that sees.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import BasicAgent, ContentItem, Message, create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
SEEING_MODEL = os.environ.get("SEEING_MODEL", MODEL)
FILES = Path(__file__).parent / "files"


def main(image: str = str(FILES / "harbour.png")) -> None:
    """Describe, and then write; each agent does the one thing that it is good at."""
    sees = BasicAgent(llm=SEEING_MODEL, name="eyes", system_message="Describe the picture: places, people, mood.")
    writes = create_agent(
        "assistant",
        llm=MODEL,
        name="pen",
        system_message="Write a short story about the scene. Keep to the rules in the knowledge base.",
        files=[str(FILES / "stories.md")],
    )
    scene = sees.ask(Message("user", [ContentItem(image=image)]))
    print(f"Scene: {scene.text}\n")
    print(writes.ask(scene.text).text)


if __name__ == "__main__":
    main(*sys.argv[1:])
