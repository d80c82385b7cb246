"""One answer with several calls: an agent makes them at the same time, and their results keep the order of the calls.

python function_calling_in_parallel.py "Where is it warmest: in Hamburg, Bonn or Munich?"
"""

from __future__ import annotations

import os
import sys

from jackfield import FnCallAgent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
TEMPERATURES = {"Hamburg": 12, "Bonn": 15, "Munich": 9}


def temperature(city: str) -> str:
    """Look up the temperature in a city."""
    return f"{TEMPERATURES[city]} °C in {city}"


def main(question: str = "Where is it warmest: in Hamburg, Bonn or Munich?") -> None:
    """Ask; `parallel_function_calls` says that one answer may have several calls."""
    agent = FnCallAgent([temperature], llm=MODEL, extra_generate_cfg={"parallel_function_calls": True})
    result = agent.ask(question)
    for message in result.messages:
        print(message.function_call or message.content)


if __name__ == "__main__":
    main(*sys.argv[1:])
