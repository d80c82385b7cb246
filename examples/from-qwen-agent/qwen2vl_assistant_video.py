"""A question about a video: a file, an address, or the pictures that it consists of.

JACKFIELD_MODEL=openai:qwen-vl-max python qwen2vl_assistant_video.py "What happens?" 1.png 2.png 3.png
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import BasicAgent, ContentItem, Message

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:qwen-vl-max")
HARBOUR = str(Path(__file__).parent / "files" / "harbour.png")


def main(question: str = "What happens?", *files: str) -> None:
    """Ask about one file, or about several pictures as one video."""
    backend, _, name = MODEL.partition(":")
    sees = {"video": True} if backend == "openai" else {}
    agent = BasicAgent(llm={"model_type": backend, "model": name, **sees})
    video = files[0] if len(files) == 1 else list(files or (HARBOUR, HARBOUR))
    print(agent.ask(Message("user", [ContentItem(video=video), ContentItem(text=question)])).text)


if __name__ == "__main__":
    main(*sys.argv[1:])
