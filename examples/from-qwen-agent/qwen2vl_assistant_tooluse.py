"""Tools that give pictures: the model asks for a crop or a turn of its picture, and sees the result.

JACKFIELD_MODEL=qwenvl_dashscope:qwen-vl-max python qwen2vl_assistant_tooluse.py "What is written there?" harbour.png
"""

from __future__ import annotations

import base64
import io
import os
import sys
from pathlib import Path

from PIL import Image

from jackfield import ContentItem, FnCallAgent, Message, ToolContext

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")
HARBOUR = Path(__file__).parent / "files" / "harbour.png"


def crop(left: int, top: int, right: int, bottom: int, context: ToolContext) -> list[ContentItem]:
    """Cut a part out of the user's picture, and see it in twice its size.

    Args:
        left: In pixels, as are the others.
        top: From above.
        right: From the left.
        bottom: From above.
    """
    with Image.open(_picture(context)) as picture:
        part = picture.convert("RGB").crop((left, top, right, bottom))
    return _shown(part.resize((2 * part.width, 2 * part.height)))


def turn(degrees: int, context: ToolContext) -> list[ContentItem]:
    """Turn the user's picture to the right, and see it."""
    with Image.open(_picture(context)) as picture:
        return _shown(picture.convert("RGB").rotate(-degrees, expand=True))


def _picture(context: ToolContext) -> str:
    """The first picture of the conversation."""
    return next(item.image for message in context.messages for item in message.items if item.image)


def _shown(picture: Image.Image) -> list[ContentItem]:
    """A picture as the result of a tool."""
    written = io.BytesIO()
    picture.save(written, "PNG")
    uri = f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}"
    return [ContentItem(text=f"{picture.width} x {picture.height} pixels"), ContentItem(image=uri)]


def main(question: str = "What is written there?", image: str = str(HARBOUR)) -> None:
    """Ask about a picture, with both tools."""
    agent = FnCallAgent([crop, turn], llm=MODEL)
    result = agent.ask(Message("user", [ContentItem(image=image), ContentItem(text=question)]))
    for message in result.messages:
        if message.function_call:
            print(message.function_call.name, message.function_call.arguments)
    print(result.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
