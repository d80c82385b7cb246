"""Two models in one conversation: one that sees pictures, and one that does not and goes on with the text.

    python llm_vl_mix_text.py "What is in the picture?" "Write a rhyme about it." harbour.png

`SEEING_MODEL` names the model that sees.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import ContentItem, Message, get_chat_model

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
SEEING_MODEL = os.environ.get("SEEING_MODEL", MODEL)
HARBOUR = Path(__file__).parent / "files" / "harbour.png"


def main(
    question: str = "What is in the picture?", then: str = "Write a rhyme about it.", image: str = str(HARBOUR)
) -> None:
    """Ask the first model about a picture, and the second one about its answer."""
    backend, _, name = MODEL.partition(":")
    seeing = get_chat_model(SEEING_MODEL)
    # Pictures of the history become notes with their names, for a model without eyes.
    notes = {"name": "multimodal", "unsupported": "note"}
    writing = get_chat_model({"model_type": backend, "model": name, "images": False, "processors": [notes]})
    seen = seeing.ask(Message("user", [ContentItem(text=question), ContentItem(image=image)]))
    print(seen.text)
    print(writing.ask(then, history=seen.history).text)


if __name__ == "__main__":
    main(*sys.argv[1:])
