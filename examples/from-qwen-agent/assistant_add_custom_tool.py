"""A tool of your own beside one that is installed: the model paints by an address, and the code interpreter looks at it.

    python assistant_add_custom_tool.py "Draw a lighthouse, and tell me how wide the picture is."

The tool only makes an address; a real one would ask a service, as `image_gen` of jackfield-image-gen does.
"""

from __future__ import annotations

import os
import sys
from urllib.parse import quote

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
STEPS = "First draw what is asked for, and then use the address of the picture in your answer."


def draw(description: str) -> dict[str, str]:
    """Draw a picture.

    Args:
        description: What it shows, in detail and in English.
    """
    return {"image_url": f"https://pictures.example/{quote(description)}"}


def main(question: str = "Draw a lighthouse, and tell me how wide the picture is.") -> None:
    """Ask an assistant that has both tools."""
    agent = create_agent(
        "assistant",
        llm=MODEL,
        system_message=STEPS,
        function_list=[draw, "code_interpreter"],
    )
    result = agent.ask(question)
    for message in result.messages:
        print(message.function_call or message.content)


if __name__ == "__main__":
    main(*sys.argv[1:])
