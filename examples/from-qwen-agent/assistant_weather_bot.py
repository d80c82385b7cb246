"""A tool that asks a service, and a document that says what to do with what it gives.

    AMAP_TOKEN=… python assistant_weather_bot.py "Does the fair in 杭州市 go on today?"

The weather is from Amap, for places in China; it needs a key of Amap's web services.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
RULES = Path(__file__).parent / "files" / "fair.md"


def main(question: str = "Does the fair in 杭州市 go on today?", service: str = "https://restapi.amap.com") -> None:
    """Ask an assistant that has the tool and the document."""
    agent = create_agent(
        "assistant",
        llm=MODEL,
        name="weather",
        function_list=[{"name": "amap_weather", "url": service}],
        files=[str(RULES)],
    )
    result = agent.ask(question)
    print(result.text)
    print("Sources:", *result.sources)


if __name__ == "__main__":
    main(*sys.argv[1:])
