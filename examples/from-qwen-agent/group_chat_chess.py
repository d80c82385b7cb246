"""A game in a group chat that is one dict: a board, a player who is a model, and a player who is you.

    python group_chat_chess.py "the middle" "top left"

Each argument is a move of yours. Where they end, the chat waits for the next one and says so: it could go on in another
process, or behind a web page.
"""

from __future__ import annotations

import os
import sys

from jackfield import Message
from jackfield_multi_agent import GroupChat

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
GAME = {
    "background": "Noughts and crosses on a board of 3 x 3. Zoe has X and begins, Max has O.",
    "agents": [
        {
            "name": "board",
            "description": "Keeps the board.",
            "instructions": "Draw the board after the last move. Say whether somebody has won; end with [STOP] if so.",
        },
        {"name": "Zoe", "description": "Plays X.", "is_human": True},
        {"name": "Max", "description": "Plays O.", "instructions": "Name the field of your next move, nothing else."},
    ],
}


def main(*moves: str) -> None:
    """Play: in turns, until the game or the moves are over."""
    game = GroupChat(GAME, "round_robin", llm=MODEL, max_round=9)
    result = game.ask("Let us begin.")
    show(result.messages)
    for move in moves:
        if result.stop_reason != "input_needed":
            break
        print(f"Zoe: {move}")
        result = game.ask(Message("user", move, name="Zoe"), history=result.history)
        show(result.messages)
    print("It is your turn." if result.stop_reason == "input_needed" else "The game is over.")


def show(messages: tuple[Message, ...]) -> None:
    """What was said, by whom."""
    for message in messages:
        print(f"{message.name}: {message.content}")


if __name__ == "__main__":
    main(*sys.argv[1:])
