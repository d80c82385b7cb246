"""A conversation longer than the model's context: what was said before the last exchange is searched, not sent.

python long_dialogue.py "How many lamps did we count in hall 17?"
"""

from __future__ import annotations

import os
import sys

from jackfield import Message
from jackfield_assistant import DialogueRetrievalAgent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")


def main(question: str = "How many lamps did we count in hall 17?") -> None:
    """Ask about a long walk through a hundred halls."""
    history: list[Message] = []
    for hall in range(100):
        history.append(Message("user", f"In hall {hall} there are {3 * hall + 1} lamps, and the floor is wooden."))
        history.append(Message("assistant", f"Noted: hall {hall}."))
    # Of the passages that fit, as many as 200 tokens hold.
    rag_cfg = {"max_ref_token": 200, "parser_page_size": 50}
    agent = DialogueRetrievalAgent(llm=MODEL, rag_cfg=rag_cfg, workspace="dialogue")
    print(agent.ask(question, history=history).text)


if __name__ == "__main__":
    main(*sys.argv[1:])
