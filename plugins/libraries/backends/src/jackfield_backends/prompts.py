"""What a conversation means to a model that takes one prompt, and makes an image of it."""

from __future__ import annotations

from collections.abc import Collection

from jackfield.errors import ModelRequestError, UnsupportedInputError
from jackfield.messages import SYSTEM, USER
from jackfield.request import ChatRequest

# Options of texts. Left out without a word, each would be a setting that does nothing; `stop` is the core's.
_OF_TEXTS = (
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "max_tokens",
    "seed",
    "response_format",
    "reasoning_effort",
)


def image_prompt(request: ChatRequest, *, takes: Collection[str] = ()) -> str:
    """The prompt for an image: what the user said last, behind the system message if there is one.

    Args:
        request: What is asked.
        takes: The options of `GenerateConfig` that the model has.

    Raises:
        UnsupportedInputError: Tools are offered, or an option is set that the model does not have.
        ModelRequestError: The user said nothing.
    """
    if request.functions:
        raise UnsupportedInputError(f"{request.model} makes images and calls no tools: ask it without them")
    for option in _OF_TEXTS:
        if option not in takes and getattr(request.config, option) not in (None, ()):
            raise UnsupportedInputError(f"{request.model} makes images and has no {option}: leave it out")
    last = "".join(_texts_of(request, USER)[-1:])
    if not last.strip():
        raise ModelRequestError(
            f"{request.model} makes images, and the user's last message says nothing to make one of"
        )
    return "\n\n".join(filter(str.strip, (*_texts_of(request, SYSTEM), last)))


def _texts_of(request: ChatRequest, role: str) -> list[str]:
    return [message.get_text_content() for message in request.messages if message.role == role]
