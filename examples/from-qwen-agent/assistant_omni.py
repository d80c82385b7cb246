"""Qwen-Omni: it takes text, pictures and sound in one question, and its answer is text and speech.

    OPENAI_BASE_URL=https://dashscope-intl.aliyuncs.com/compatible-mode/v1 python assistant_omni.py "What do you see and hear?" answer.wav

The server is DashScope, at its address for Chat Completions. OpenAI's models that speak have other voices, such as `alloy`.
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

from jackfield import BasicAgent, ContentItem, Message

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:qwen3-omni-flash")
FILES = Path(__file__).parent / "files"


def main(question: str = "What do you see and hear?", save_as: str = "answer.wav") -> None:
    """Ask about a picture and a recording, and save what is said."""
    backend, _, name = MODEL.partition(":")
    speech = {"modalities": ["text", "audio"], "audio_output": {"voice": "Cherry", "format": "wav"}}
    agent = BasicAgent(llm={"model_type": backend, "model": name, "audio": True, **speech})
    shown = [
        ContentItem(image=str(FILES / "harbour.png")),
        ContentItem(audio=str(FILES / "horn.wav")),
        ContentItem(text=question),
    ]
    result = agent.ask(Message("user", shown))
    print(result.text)
    sounds = [item.audio for message in result.messages for item in message.items if item.audio]
    for sound in sounds:  # a data: URI, with the header of a WAV file
        Path(save_as).write_bytes(base64.b64decode(str(sound).partition(",")[2]))
        print("Saved", save_as)


if __name__ == "__main__":
    main(*sys.argv[1:])
