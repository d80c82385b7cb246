"""A document becomes a mind map: the outline is data, checked against its form, and this program draws it.

    python cookbook_mind_map.py fair.md map.md

The map is a diagram of Mermaid, which GitHub and many editors show. No server is needed to draw it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic import BaseModel

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
FAIR = Path(__file__).parent / "files" / "fair.md"


class Branch(BaseModel):
    """A topic, and what belongs to it."""

    topic: str
    points: list[str]


class MindMap(BaseModel):
    """What a document is about."""

    subject: str
    branches: list[Branch]


def main(document: str = str(FAIR), save_as: str = "map.md") -> None:
    """Ask for the outline, and draw it."""
    agent = create_agent("assistant", llm=MODEL, files=[document])
    outline = agent.ask("Outline the document as a mind map, in a few words for each point.", output=MindMap).output
    Path(save_as).write_text(drawn(outline), encoding="utf-8")
    print("Saved", save_as)


def drawn(outline: MindMap) -> str:
    """The map as a diagram of Mermaid."""
    lines = ["```mermaid", "mindmap", f"  root(({outline.subject}))"]
    for branch in outline.branches:
        lines += [f"    {branch.topic}", *(f"      {point}" for point in branch.points)]
    return "\n".join([*lines, "```", ""])


if __name__ == "__main__":
    main(*sys.argv[1:])
