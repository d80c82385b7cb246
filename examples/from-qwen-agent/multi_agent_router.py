"""A router hands each conversation to the agent that fits: one that sees pictures, one that runs code.

python multi_agent_router.py "What is in this picture?" harbour.png
python multi_agent_router.py "How many seconds does a leap year have?"
"""

from __future__ import annotations

import os
import sys

from jackfield import BasicAgent, ContentItem, FnCallAgent, Message
from jackfield_multi_agent import Router

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
SEEING_MODEL = os.environ.get("SEEING_MODEL", MODEL)


def main(question: str = "How many seconds does a leap year have?", *images: str) -> None:
    """Ask the router, and show who had the conversation."""
    eyes = BasicAgent(llm=SEEING_MODEL, name="eyes", description="Answers questions about pictures.")
    hands = FnCallAgent(
        ["code_interpreter"], llm=MODEL, name="hands", description="Computes, and answers with the help of code."
    )
    router = Router(llm=MODEL, name="desk", agents=[eyes, hands])
    shown = [*(ContentItem(image=image) for image in images), ContentItem(text=question)]
    result = router.ask(Message("user", shown))
    print(result.text)
    print(" -> ".join(result.path))


if __name__ == "__main__":
    main(*sys.argv[1:])
