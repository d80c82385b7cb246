"""A group chat that a model designs after a wish, and in which you take part.

    python group_chat_demo.py "Two cooks who disagree, and I." "What shall we have tonight?" "And to drink?"

The first argument is the wish, each other one is what you say; then the agents speak.
"""

from __future__ import annotations

import os
import sys

from jackfield import Message
from jackfield_multi_agent import GroupChat, GroupChatCreator, group_config

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")


def main(wish: str = "Two cooks who disagree.", *turns: str) -> None:
    """Design the chat, and hold it."""
    design = group_config(GroupChatCreator(llm=MODEL).ask(wish).messages)
    print("Background:", design["background"])
    for agent in design["agents"]:
        print(f"- {agent['name']}: {agent.get('description', '')}")
    chat = GroupChat(design, llm=MODEL, max_round=2)
    history: tuple[Message, ...] = ()
    for said in turns or ("What shall we have tonight?",):
        result = chat.ask(Message("user", said, name="you"), history=history)
        history = result.history
        print(f"you: {said}")
        for message in result.messages:
            print(f"{message.name}: {message.content}")


if __name__ == "__main__":
    main(*sys.argv[1:])
