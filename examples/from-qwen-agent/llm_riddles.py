"""A game in a conversation with a model alone: the program keeps the history, and says when the game is won.

    python llm_riddles.py "Let us begin." "Is it a river?" "Is it the Rhine?"

Each argument is what the player says in one turn.
"""

from __future__ import annotations

import os
import sys

from jackfield import get_chat_model

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
RULES = (
    "You lead a guessing game. Think of a well-known place and keep it to yourself. The player asks questions that "
    "you answer with yes or no, and nothing else. When the player names the place, say WON and the name."
)


def main(*turns: str) -> None:
    """Play until the place is found, or the player has said everything."""
    model = get_chat_model(MODEL)
    history: list[dict[str, str]] = [{"role": "system", "content": RULES}]
    for said in turns or ("Let us begin.",):
        history.append({"role": "user", "content": said})
        history += model.chat(history, stream=False)
        print(f"> {said}\n{history[-1]['content']}")
        if "WON" in history[-1]["content"]:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
