"""A document that the model looks into by itself: what it has found stands in its system message, and makes room for more.

python virtual_memory_qa.py "May I put up a stand on a Monday?" fair.md
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
FAIR = Path(__file__).parent / "files" / "fair.md"


def main(question: str = "May I put up a stand on a Monday?", file: str = str(FAIR)) -> None:
    """Ask, and show what was looked up."""
    agent = create_agent("virtual_memory", llm=MODEL, files=[file])
    result = agent.ask(question)
    for message in result.messages:
        if message.function_call:
            print(message.function_call.name, message.function_call.arguments)
    print(result.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
