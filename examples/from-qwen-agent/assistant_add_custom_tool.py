"""A tool of your own beside one that is installed: yours knows the tides, and the code interpreter computes with them.

    python assistant_add_custom_tool.py "By how much does the water rise in Husum today?"

The heights are made up; a real tool would ask a service.
"""

from __future__ import annotations

import os
import sys

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
STEPS = "First look the tides up, then compute with the code interpreter. Never compute in your head."
HEIGHTS = {"Husum": [0.4, 3.9, 0.5, 3.7], "Emden": [0.2, 3.4, 0.3, 3.3]}


def tides(harbour: str) -> dict[str, list[float]]:
    """Look up today's low and high water.

    Args:
        harbour: Its name, such as Husum.
    """
    return {"metres": HEIGHTS[harbour]}


def main(question: str = "By how much does the water rise in Husum today, at most?") -> None:
    """Ask an assistant that has both tools."""
    agent = create_agent(
        "assistant",
        llm=MODEL,
        system_message=STEPS,
        function_list=[tides, "code_interpreter"],
    )
    result = agent.ask(question)
    for message in result.messages:
        print(message.function_call or message.content)


if __name__ == "__main__":
    main(*sys.argv[1:])
