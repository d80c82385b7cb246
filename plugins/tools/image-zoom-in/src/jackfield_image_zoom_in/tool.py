"""The `image_zoom_in_tool` tool: enlarge a region of an image in the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import ToolArgumentError
from jackfield.messages import ContentItem
from jackfield.sync import in_worker
from jackfield.tools import BaseTool, ToolContext, ToolResult, says_if_not_awaited
from jackfield_fetch import FetchConfig, Fetcher
from jackfield_fetch.images import data_uri, image_bytes, images_in, save_image
from jackfield_image_zoom_in.plugin import tools
from jackfield_image_zoom_in.zooming import crop_and_enlarge

_FOLDER = "tools/image_zoom_in_tool"


class ImageZoomInConfig(Config):
    """Settings for the size of images and for fetching them."""

    max_pixels: int = Field(default=50_000_000, ge=1, description="Maximum size of an image to decode, in pixels")
    fetch_cfg: Mapping[str, Any] = Field(
        default_factory=dict, description="Settings of jackfield-fetch for fetching images by URL"
    )


class ImageZoomIn(BaseTool):
    """Enlarges a region of an image from a message or a file of the conversation, and saves it in the workspace.

    Images on private networks are not fetched unless `fetch_cfg` allows them.
    """

    name = "image_zoom_in_tool"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects
    file_access = True

    config_class = ImageZoomInConfig
    config: ImageZoomInConfig

    def __init__(self, cfg: ImageZoomInConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._fetcher = Fetcher(FetchConfig.parse(self.config.fetch_cfg, what=f"{self.name}: fetch_cfg"))

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Enlarge a region of an image.

        Returns:
            The enlarged region, preceded by a text with its label and its path in the workspace.

        Raises:
            ToolArgumentError: There is no such image, or the region is invalid.
            ToolServiceError: The image cannot be read, or the region cannot be saved.
        """
        arguments = self.parse_arguments(params)
        within = context or ToolContext()
        images = images_in(within.messages, within.files)
        number = int(arguments["img_idx"])
        if number >= len(images):
            raise ToolArgumentError(
                f"no image {number}: the images in this conversation are numbered from 0 to {len(images) - 1}"
                if images
                else "this conversation contains no images"
            )
        content = await image_bytes(images[number], self._fetcher)
        part = await in_worker(crop_and_enlarge, content, arguments["bbox_2d"], max_pixels=self.config.max_pixels)
        path = await in_worker(save_image, part, within.workspace, _FOLDER, ending=".png")
        said = ContentItem(text=f"{arguments['label']} (saved in the workspace as {path})")
        return ToolResult([said, ContentItem(image=data_uri(part))], {"path": path})
