"""QwQ: a model that thinks inside its text. The thoughts become reasoning, and are not part of the answer.

OPENAI_BASE_URL=http://localhost:8000/v1 python assistant_qwq.py "How many r are in strawberry?"
"""

from __future__ import annotations

import os
import sys

from jackfield import FnCallAgent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:Qwen/QwQ-32B")


def count(text: str, letter: str) -> int:
    """Count a letter in a text."""
    return text.count(letter)


def main(question: str = "How many r are in strawberry?") -> None:
    """Ask, with calls as text, which is how QwQ was trained."""
    agent = FnCallAgent(
        [count],
        llm=MODEL,
        extra_generate_cfg={"thought_in_content": True, "fncall_prompt_type": "nous"},
    )
    result = agent.ask(question)
    for message in result.messages:
        if message.reasoning_content:
            print("Thought:", message.reasoning_content)
    print("Answer:", result.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
