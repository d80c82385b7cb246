"""Write a request as a prompt: rendered by the model's chat template, tokenized, and moved to its device."""

from __future__ import annotations

import base64
import binascii
import inspect
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jackfield.errors import ContextLengthError, ModelServiceError, UnsupportedInputError
from jackfield.media import path_of, read_media
from jackfield.messages import ASSISTANT
from jackfield.models import BEGIN
from jackfield.request import ChatRequest
from jackfield_transformers.errors import BACKEND
from jackfield_transformers.generation import TEMPLATE_OPTIONS
from jackfield_transformers.loading import LoadedModel, can_sanitize
from jackfield_transformers.prompt import TemplateMessage, template_messages, template_tools

_TAIL_TOKENS = 16  # more than `<think>` and a line break take in any vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A prompt ready for the model.

    Attributes:
        inputs: The model's inputs, as tensors.
        tokens: The length of the prompt in tokens.
        opens_thought: True if the prompt ends with the tag that opens a thought.
    """

    inputs: dict[str, Any]
    tokens: int
    opens_thought: bool


def write(loaded: LoadedModel, request: ChatRequest, template_options: dict[str, Any]) -> Prompt:
    """Write a request's prompt. If the history ends with an answer, the answer is continued.

    Args:
        loaded: The model, whose lock the caller holds.
        request: The history, and the tools for models whose template describes them.
        template_options: Additional template variables.

    Raises:
        ContextLengthError: The prompt leaves no room for an answer.
        UnsupportedInputError: An image cannot be read.
    """
    messages = template_messages(request.messages, in_parts=loaded.sees)
    if loaded.sees:
        messages = [{**message, "content": [_open_image(part) for part in message["content"]]} for message in messages]
    continued = _is_unfinished(messages)
    tools = [] if request.config.function_choice == "none" else template_tools(request.functions)
    encoded = loaded.writer.apply_chat_template(
        messages,
        **{
            **_template_options(request, template_options),
            "tools": tools or None,
            "chat_template": loaded.template,
            "add_generation_prompt": not continued,
            "continue_final_message": continued,
            "tokenize": True,
            "return_dict": True,
            "return_tensors": "pt",
            **({"sanitize_control_tokens": True} if can_sanitize(loaded.writer) else {}),
        },
    )
    inputs = dict(encoded.to(loaded.model.device))
    if "token_type_ids" not in inspect.signature(loaded.model.forward).parameters:
        inputs.pop("token_type_ids", None)  # generic tokenizers return them even for models that do not accept them
    tokens = int(inputs["input_ids"].shape[1])
    _check_length(tokens, loaded)
    tail = loaded.tokenizer.decode(inputs["input_ids"][0, -_TAIL_TOKENS:].tolist(), skip_special_tokens=False)
    return Prompt(inputs, tokens, opens_thought=tail.rstrip().endswith(BEGIN))


def _check_length(tokens: int, loaded: LoadedModel) -> None:
    if loaded.context_tokens is not None and tokens >= loaded.context_tokens:
        raise ContextLengthError(
            f"{BACKEND}: the prompt is {tokens} tokens, but the context limit of {loaded.name!r} is "
            f"{loaded.context_tokens} tokens, including the answer: shorten the history, or set max_input_tokens",
            backend=BACKEND,
        )


def _template_options(request: ChatRequest, configured: dict[str, Any]) -> dict[str, Any]:
    effort = {"reasoning_effort": request.config.reasoning_effort} if request.config.reasoning_effort else {}
    extra = {key: value for key, value in request.config.extra_body.items() if key in TEMPLATE_OPTIONS}
    of_call = extra.pop("chat_template_kwargs", None) or {}
    return {**configured, **effort, **of_call, **extra}


def _is_unfinished(messages: Sequence[TemplateMessage]) -> bool:
    role, content = messages[-1]["role"], messages[-1]["content"]
    has_text = bool(content) if isinstance(content, str) else any(part.get("text") for part in content)
    return role == ASSISTANT and has_text


def _open_image(part: dict[str, Any]) -> dict[str, Any]:
    """Open the image in an image part; return other parts unchanged."""
    if part["type"] != "image":
        return part
    try:
        from PIL import Image
    except ImportError as error:
        raise ModelServiceError(f"{BACKEND}: images need Pillow: pip install pillow", backend=BACKEND) from error
    try:
        return {"type": "image", "image": Image.open(io.BytesIO(_read_image(part["image"]))).convert("RGB")}
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UnsupportedInputError(
            f"{BACKEND}: an image cannot be read ({type(error).__name__}): convert it to PNG or JPEG", backend=BACKEND
        ) from error


def _read_image(address: str) -> bytes:
    if address[:5].lower() == "data:":
        head, _, body = address.partition(",")
        if head.endswith(";base64"):
            try:
                return base64.b64decode(body)
            except binascii.Error as error:
                raise UnsupportedInputError(
                    f"{BACKEND}: a data: URI is not valid base64: {error}", backend=BACKEND
                ) from error
    path = path_of(address)
    if path is None:
        raise UnsupportedInputError(
            f"{BACKEND}: this backend runs locally and does not fetch URLs: "
            f"download the image, and pass its path or a base64 data: URI",
            backend=BACKEND,
        )
    return read_media(path, "image").content
