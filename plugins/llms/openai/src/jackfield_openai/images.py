"""Generate images at OpenAI or any server that has a compatible images endpoint."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, ClassVar

from pydantic import Field

from jackfield.config import LLMConfig
from jackfield.errors import ModelServiceError
from jackfield.events import MediaDelta, ModelEvent, ModelFinished, UsageReported
from jackfield.media import media_type_of
from jackfield.messages import ContentItem, Usage
from jackfield.request import ChatRequest
from jackfield_backends.prompts import image_prompt
from jackfield_chat_completions.errors import error_of_response
from jackfield_http import AnswerReader, Failures, Post, Server, Wire, count_of, json_bytes
from jackfield_http.backend import Exchange, HTTPBackend
from jackfield_http.keys import KeyRule
from jackfield_openai.sdk import KEY_RULE, sdk_server

PATH = "/images/generations"


class OpenAIImagesConfig(LLMConfig):
    """The server, and the number, size and quality of images. Pass any other options in `extra_body`."""

    organization: str | None = Field(default=None, description="As OPENAI_ORG_ID")
    project: str | None = Field(default=None, description="As OPENAI_PROJECT_ID")
    size: str | None = Field(default=None, description="Width and height, such as 1024x1024; unset: the server decides")
    quality: str | None = Field(default=None, description="low, medium, high …; unset: the server decides")
    count: int = Field(default=1, ge=1, le=10, description="Number of images per answer")


class OpenAIImages(HTTPBackend[Server]):
    """Image generation model. An answer contains only images, either inline or as URLs."""

    backend: ClassVar[str] = "openai_images"
    config_class: ClassVar[type[LLMConfig]] = OpenAIImagesConfig
    key_rule: ClassVar[KeyRule] = KEY_RULE
    config: OpenAIImagesConfig

    def server(self) -> Server:
        """See `HTTPBackend`. The server is determined from the SDK's settings."""
        return sdk_server(PATH, self, self.config)

    def post(self, request: ChatRequest, _: Server) -> Post:
        """See `HTTPBackend`."""
        # No streaming, which would add previews that cost money.
        options = {"n": self.config.count, "size": self.config.size, "quality": self.config.quality}
        body: dict[str, Any] = {"model": request.model, "prompt": image_prompt(request)}
        body |= {name: value for name, value in options.items() if value is not None}
        return Post(json_bytes(body | request.config.extra_body))

    def reader(self, exchange: Exchange[Server]) -> ImagesReader:
        """See `HTTPBackend`."""
        return ImagesReader(exchange.failures, model=exchange.request.model, patience_s=exchange.patience_s)

    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """See `HTTPBackend`."""
        return error_of_response(failures, status, body)


class ImagesReader(AnswerReader):
    """Reader for images: `{"created": …, "data": [{"b64_json": …}], "usage": {…}}`, or `{"url": …}` per image.

    Args:
        failures, patience_s: See `AnswerReader`.
        model: The requested model, since answers do not name it.
    """

    complete = False

    def __init__(self, failures: Failures, *, model: str, patience_s: float | None = None) -> None:
        super().__init__(failures, patience_s=patience_s)
        self._model = model
        self._usage = Usage()
        self._created: int | None = None

    def read_event(self, wire: Wire) -> list[ModelEvent]:
        images = [MediaDelta(ContentItem(image=_address(image))) for image in wire["data"]]
        if not images:
            raise self.failures.wrong("the response contains no image: try again, or change the prompt")
        usage = wire.get("usage") or {}
        self._usage = Usage(
            prompt_tokens=count_of(usage.get("input_tokens")),
            completion_tokens=count_of(usage.get("output_tokens")),
            total_tokens=count_of(usage.get("total_tokens")),
        )
        self._created = count_of(wire.get("created")) or None
        self.complete = True
        return list(images)

    def last_events(self) -> Iterable[ModelEvent]:
        yield UsageReported(self._usage)
        yield ModelFinished("stop", model=self._model, created=self._created)


def _address(image: Wire) -> str:
    """Return an image as a `data:` URI or a web URL.

    Raises:
        ValueError: The image is neither.
    """
    encoded = image.get("b64_json")
    if not encoded:
        url = image["url"]
        if not str(url).startswith(("https://", "http://")):
            raise ValueError("the URL of an image cannot be fetched")
        return str(url)
    try:
        head = base64.b64decode(encoded[:64], validate=True)
    except binascii.Error as error:
        raise ValueError("image data is not valid base64") from error
    media_type = media_type_of(head[:16])
    if not media_type.startswith("image/"):
        raise ValueError("an image has an unknown format")
    return f"data:{media_type};base64,{encoded}"
