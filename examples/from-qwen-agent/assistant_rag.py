"""A question about a document.

python assistant_rag.py "When is the fair closed?" fair.md
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
FAIR = Path(__file__).parent / "files" / "fair.md"


def main(question: str = "When is the fair closed?", file: str = str(FAIR)) -> None:
    """Answer from the passages that fit, with the sources."""
    result = create_agent("assistant", llm=MODEL, files=[file]).ask(question)
    print(result.text)
    print("Sources:", *result.sources)


if __name__ == "__main__":
    main(*sys.argv[1:])
