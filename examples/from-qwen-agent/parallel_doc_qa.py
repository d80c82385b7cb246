"""A document of any length: a model reads each part, many at a time, and answers from what the parts say.

python parallel_doc_qa.py "When do runs end?" ../documents-and-code/documents/field-guide.pdf
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield.events import PluginEvent
from jackfield_assistant import ParallelDocQA

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
FAIR = Path(__file__).parent / "files" / "fair.md"


def main(question: str = "When is the fair closed?", file: str = str(FAIR), part_tokens: str = "1000") -> None:
    """Ask, and say how far the reading is."""
    agent = ParallelDocQA(llm=MODEL, files=[file], part_tokens=int(part_tokens))
    stream = agent.stream(question)
    for event in stream:
        if isinstance(event, PluginEvent) and event.name == "jackfield-assistant.parts_read":
            print(f"{event.data['done']} of {event.data['of']} parts")
    print(stream.result.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
