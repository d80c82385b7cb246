"""Qwen3: thinking on or off by an option of the server's template, tools, and the thoughts shown apart from the answer.

    OPENAI_BASE_URL=http://localhost:8000/v1 python assistant_qwen3.py "How much is 17% of 2349?" think

The server is vLLM or SGLang; DashScope takes `enable_thinking` without `chat_template_kwargs`.
"""

from __future__ import annotations

import os
import sys

from jackfield import create_agent
from jackfield.events import ReasoningDelta, TextDelta, ToolFinished, ToolStarted

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:Qwen/Qwen3-8B")


def main(question: str = "How much is 17% of 2349?", thinking: str = "think") -> None:
    """Show what the model thinks, calls and says, as it comes."""
    template = {"chat_template_kwargs": {"enable_thinking": thinking == "think"}}
    agent = create_agent(
        "assistant",
        llm=MODEL,
        function_list=["code_interpreter"],
        extra_generate_cfg={"extra_body": template},
    )
    for event in agent.stream(question):
        match event:
            case ReasoningDelta(text):
                print(f"[thinks: {text}]", end="", flush=True)
            case TextDelta(text):
                print(text, end="", flush=True)
            case ToolStarted():
                print(f"\n[calls {event.call.name}]")
            case ToolFinished():
                print(f"[{event.message.name} is done]")
            case _:
                pass
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
