"""A model without tool calls of its own analyses a table: it writes `Action:` and code, and reads `Observation:`.

python react_data_analysis.py "In which month were most ships here?" ships.csv
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
SHIPS = Path(__file__).parent / "files" / "ships.csv"


def main(question: str = "In which month were most ships here?", table: str = str(SHIPS)) -> None:
    """Ask about a table, which the code finds in its folder under its own name."""
    agent = create_agent("react", llm=MODEL, function_list=["code_interpreter"], files=[table])
    result = agent.ask(f"{question} The data is in {Path(table).name}.")
    for message in result.messages:
        if message.reasoning_content:
            print("Thought:", message.reasoning_content)
        elif message.role == "function":
            print(message.content)
    print(result.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
