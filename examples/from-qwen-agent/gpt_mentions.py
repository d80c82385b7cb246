"""Several assistants in one conversation: whom you mention with `@name` answers, with everything in view.

python gpt_mentions.py "@historian When was the tower built?" "@poet Make a line of that."
"""

from __future__ import annotations

import os
import sys

from jackfield import BasicAgent, FnCallAgent, Message
from jackfield_multi_agent import GroupChat

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")


def main(*turns: str) -> None:
    """One answer to each turn: from who is mentioned, or else from whom the model chooses."""
    historian = FnCallAgent(llm=MODEL, name="historian", description="Knows when and why things were built.")
    poet = BasicAgent(llm=MODEL, name="poet", description="Answers in one line of verse.")
    chat = GroupChat([historian, poet], llm=MODEL, max_round=1)
    history: tuple[Message, ...] = ()
    for said in turns or ("@poet Greet me.",):
        result = chat.ask(said, history=history)
        history = result.history
        for message in result.messages:
            print(f"{message.name}: {message.content}")


if __name__ == "__main__":
    main(*sys.argv[1:])
