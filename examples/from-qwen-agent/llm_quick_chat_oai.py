"""Ask in the form of OpenAI's clients: messages and tools as they have them, and answers that grow as dicts.

python llm_quick_chat_oai.py "Name three rivers in Germany."
"""

from __future__ import annotations

import os
import sys

from jackfield import get_chat_model

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")


def main(question: str = "Name three rivers in Germany.") -> None:
    """Print each piece of the answer as it comes, and what it has cost."""
    model = get_chat_model(MODEL)
    shown = ""
    response = {}
    for response in model.quick_chat_oai([{"role": "user", "content": question}]):
        so_far = response["choices"][0]["message"]["content"]
        print(so_far.removeprefix(shown), end="", flush=True)
        shown = so_far
    print(f"\n{response['usage']['total_tokens']} tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
