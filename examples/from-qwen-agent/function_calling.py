"""A model asks for a function, gets its result, and answers: the loop that an agent runs, written out.

    python function_calling.py "What is the weather like in Hamburg?" native

The second argument is the way in which calls are written: `native` is the server's own, `nous` and `qwen` are texts.
"""

from __future__ import annotations

import os
import sys

from jackfield import Message, call_tool, get_chat_model, tool

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")


@tool
def current_weather(city: str, unit: str = "celsius") -> str:
    """Look up the weather in a city.

    Args:
        city: Its name.
        unit: `celsius` or `fahrenheit`.
    """
    temperature = {"celsius": "12 °C", "fahrenheit": "54 °F"}[unit]
    return f"{temperature} and rain in {city}"


def main(question: str = "What is the weather like in Hamburg?", call_format: str = "native") -> None:
    """Ask, make the calls of each answer, and ask again until an answer has none."""
    model = get_chat_model(MODEL)
    messages = [Message("user", question)]
    while True:
        answer = model.chat(
            messages,
            functions=[current_weather.function],
            stream=False,
            extra_generate_cfg={"fncall_prompt_type": call_format},
        )
        messages += answer
        calls = [message for message in answer if message.function_call]
        if not calls:
            break
        for message in calls:
            call = message.function_call
            result = call_tool(current_weather, call.arguments)
            print(f"{call.name} {call.arguments} -> {result}")
            given = {"function_id": message.function_id}
            messages.append(Message("function", result, name=call.name, extra=given))
    print(messages[-1].content)


if __name__ == "__main__":
    main(*sys.argv[1:])
