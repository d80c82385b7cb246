"""A question about a recording.

JACKFIELD_MODEL=qwenaudio_dashscope:qwen2-audio-instruct python assistant_audio.py "What is it?" horn.wav
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import BasicAgent, ContentItem, Message

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4o-audio-preview")
HORN = Path(__file__).parent / "files" / "horn.wav"


def main(question: str = "What makes this sound?", audio: str = str(HORN)) -> None:
    """Ask about the recording."""
    backend, _, name = MODEL.partition(":")
    # A backend for many models does not know that this one hears, so the configuration says it.
    hears = {"audio": True} if backend == "openai" else {}
    agent = BasicAgent(llm={"model_type": backend, "model": name, **hears})
    print(agent.ask(Message("user", [ContentItem(audio=audio), ContentItem(text=question)])).text)


if __name__ == "__main__":
    main(*sys.argv[1:])
