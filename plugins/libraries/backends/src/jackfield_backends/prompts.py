"""Turn a conversation into a prompt for an image generation model."""

from __future__ import annotations

from collections.abc import Collection

from jackfield.errors import ModelRequestError, UnsupportedInputError
from jackfield.messages import SYSTEM, USER
from jackfield.request import ChatRequest

# Options for texts. Ignoring one silently would leave a setting without effect; the core handles `stop`.
_TEXT_OPTIONS = (
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
    """Return an image prompt: the system messages, followed by the last user message.

    Args:
        request: The chat request.
        takes: The `GenerateConfig` options that the model supports.

    Raises:
        UnsupportedInputError: The request has tools, or an option that the model does not support.
        ModelRequestError: The last user message has no text.
    """
    if request.functions:
        raise UnsupportedInputError(
            f"{request.model} generates images and cannot call tools: remove the tools from the request"
        )
    for option in _TEXT_OPTIONS:
        if option not in takes and getattr(request.config, option) is not None:
            raise UnsupportedInputError(
                f"{request.model} generates images and does not support {option}: remove that option"
            )
    last = "".join(_texts_of(request, USER)[-1:])
    if not last.strip():
        raise ModelRequestError(f"{request.model} generates images: the last user message must describe the image")
    texts = (*_texts_of(request, SYSTEM), last)
    return "\n\n".join(text for text in texts if text.strip())


def _texts_of(request: ChatRequest, role: str) -> list[str]:
    return [message.get_text_content() for message in request.messages if message.role == role]
