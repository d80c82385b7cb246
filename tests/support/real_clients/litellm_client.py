"""LiteLLM as a client of our server; it runs in an environment of its own."""

from __future__ import annotations

import sys
from typing import Any

import litellm  # type: ignore[import-not-found]

SERVER: dict[str, Any] = {"model": "openai/helper", "api_base": sys.argv[1], "api_key": "none"}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]


def check(value: object, expected: object) -> None:
    """Exit with an error if a value is another one."""
    if value != expected:
        sys.exit(f"{value!r} is not {expected!r}")


def main() -> None:
    """Ask all that LiteLLM can ask."""
    hello: list[Any] = [{"role": "user", "content": "Hi"}]
    message = litellm.completion(**SERVER, messages=hello, temperature=0.2).choices[0].message
    check((message.content, message.reasoning_content), ("You said: Hi", "Let me think."))
    chunks = litellm.completion(**SERVER, messages=hello, stream=True)
    check("".join(chunk.choices[0].delta.content or "" for chunk in chunks), "You said: Hi")
    messages: list[Any] = [{"role": "user", "content": "weather"}]
    message = litellm.completion(**SERVER, messages=messages, tools=TOOLS).choices[0].message
    messages.append(message.model_dump())
    messages += [
        {"role": "tool", "tool_call_id": call.id, "name": "weather", "content": "rain"} for call in message.tool_calls
    ]
    done = litellm.completion(**SERVER, messages=messages, tools=TOOLS)
    check(done.choices[0].message.content, "It says: rain")
    response = litellm.responses(**SERVER, input="Hi")
    check(response.output[-1].content[0].text, "You said: Hi")
    try:
        litellm.completion(**{**SERVER, "model": "openai/nobody"}, messages=hello)
    except litellm.NotFoundError:
        return
    sys.exit("an unknown model is no error")


main()
