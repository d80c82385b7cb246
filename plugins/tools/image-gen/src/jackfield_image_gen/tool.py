"""The `image_gen` tool: generate images with a dedicated model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from jackfield.config import ComponentSettings, Config
from jackfield.errors import ConfigError, ModelServiceError, ToolArgumentError, ToolServiceError
from jackfield.media import media_type_of
from jackfield.messages import ContentItem, ModelResponse
from jackfield.models import BaseChatModel, get_chat_model
from jackfield.plugins import default_host
from jackfield.sync import in_worker
from jackfield.tools import BaseTool, ToolContext, ToolResult, Workspace, says_if_not_awaited
from jackfield_fetch import FetchConfig, Fetcher
from jackfield_fetch.images import data_uri, image_bytes, save_image
from jackfield_image_gen.plugin import tools

_FOLDER = "tools/image_gen"
_ENDINGS = {"image/jpeg": ".jpg", "image/tiff": ".tif"}


class ImageGenConfig(Config):
    """Settings for the image model and for fetching images."""

    llm: str | ComponentSettings | None = Field(
        default=None, description="Model that generates images: 'backend:model', or its configuration"
    )
    llm_cfg: ComponentSettings | None = Field(default=None, description="Qwen-Agent's name for llm")
    fetch_cfg: Mapping[str, Any] = Field(
        default_factory=dict, description="Settings of jackfield-fetch for images that a model returns by URL"
    )


class ImageGen(BaseTool):
    """Generates images with a model, and saves them in the workspace.

    If the model returns an image as a URL, the image is fetched. Private networks are off limits unless `fetch_cfg`
    allows them.
    """

    name = "image_gen"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects
    raw_argument = "prompt"

    config_class = ImageGenConfig
    config: ImageGenConfig

    def __init__(self, cfg: ImageGenConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._fetcher = Fetcher(FetchConfig.parse(self.config.fetch_cfg, what=f"{self.name}: fetch_cfg"))
        self._lock = threading.Lock()
        self._made: BaseChatModel | None = None

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Generate images.

        Returns:
            The images, preceded by a text with their paths in the workspace.

        Raises:
            ToolArgumentError: The prompt is empty.
            ToolServiceError: The model failed or refused, or an image could not be fetched or saved.
            ConfigError: No model is configured, or its settings are invalid.
            PluginError: The model's backend is not installed or failed to load.
        """
        prompt = self.parse_arguments(params)["prompt"].strip()
        if not prompt:
            raise ToolArgumentError("the prompt is empty: pass a description of the image")
        workspace = context.workspace if context else Workspace()
        # In a thread, because a backend's imports take a while and would block the event loop.
        model = await in_worker(self._model)
        try:
            answer = await model.acomplete(prompt)
        except ModelServiceError as error:
            raise ToolServiceError(error.message, code=error.code) from error
        addresses = _some_images_of(answer, model)
        # All images are fetched before any is saved, so a result is complete or an error.
        images = await asyncio.gather(*(image_bytes(address, self._fetcher) for address in addresses))
        paths = [await in_worker(save_image, image, workspace, _FOLDER, ending=_ending(image)) for image in images]
        text = ContentItem(text=f"Saved in the workspace as {', '.join(paths)}")
        items = [text, *(ContentItem(image=data_uri(image)) for image in images)]
        usage = {"prompt_tokens": answer.usage.prompt_tokens, "completion_tokens": answer.usage.completion_tokens}
        return ToolResult(items, {"model": model.address, "paths": paths, "usage": usage})

    async def aclose(self) -> None:
        """Close the model's connections. The next call opens new ones."""
        if self._made is not None:
            await self._made.aclose()

    def _model(self) -> BaseChatModel:
        with self._lock:
            if self._made is None:
                llm = self.config.llm or self.config.llm_cfg
                if not llm:
                    raise ConfigError(
                        f"{self.name} needs a model that generates images: set llm, as in "
                        f"{{'name': {self.name!r}, 'llm': {{'model_type': 'openai_images', 'model': …}}}}"
                    )
                self._made = get_chat_model(llm, host=self.host or default_host())
            return self._made


def _some_images_of(answer: ModelResponse, model: BaseChatModel) -> list[str]:
    addresses = list(_images_of(answer))
    if not addresses:
        text = answer.get_content()[:500]
        answered = f"; it responded: {text}" if text else ""
        raise ToolServiceError(f"{model.address} generated no image{answered}")
    return addresses


def _images_of(answer: ModelResponse) -> Iterator[str]:
    """Yield the images in an answer. Local paths are ignored, so an answer cannot cause a file to be read."""
    for message in answer.messages:
        for item in message.items:
            if item.image and item.image[:8].lower().startswith(("data:", "https://", "http://")):
                yield item.image


def _ending(image: bytes) -> str:
    media_type = media_type_of(image[:16])
    return _ENDINGS.get(media_type, f".{media_type.partition('/')[2]}")
