"""The `image_search` tool: find web pages with images similar to one in the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.messages import ContentItem
from jackfield.plugins import default_host
from jackfield.tools import BaseTool, ToolContext, ToolResult, says_if_not_awaited
from jackfield_fetch import FetchConfig, Fetcher
from jackfield_fetch.images import data_uri, image_bytes, images_in
from jackfield_http.service import JSONService, ServiceConfig
from jackfield_image_search.plugin import tools
from jackfield_image_search.providers import PROVIDERS, Match, ProviderName

_FETCHING: Mapping[str, Any] = {"timeout_s": 10.0, "max_bytes": 2 * 2**20}  # seconds; slower images are left out
_MOST_CHARS = 2000  # of a title, an address or a name


class ImageSearchConfig(ServiceConfig):
    """Settings for the search service, the number of results and image fetching."""

    provider: ProviderName = Field(default="serpapi", description="Search service: serpapi or serper")
    max_results: int = Field(default=5, ge=1, le=20, description="Maximum number of pages in a result")
    fetch_cfg: Mapping[str, Any] = Field(
        default_factory=dict,
        description="Settings of jackfield-fetch for fetching the images found",
    )


class ImageSearch(BaseTool):
    """Searches the web by image, with SerpApi (Google reverse image search) or Serper (Google Lens).

    The provider downloads the query image itself, so the image needs a public URL.
    """

    name = "image_search"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects
    read_only = True
    file_access = True

    config_class = ImageSearchConfig
    config: ImageSearchConfig

    def __init__(self, cfg: ImageSearchConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._provider = PROVIDERS[self.config.provider]
        self._service = JSONService(
            f"{self.name} ({self.config.provider})",
            self._provider.service,
            self.config,
            settings=lambda: (self.host or default_host()).settings,
        )
        self._fetcher = Fetcher(
            FetchConfig.parse({**_FETCHING, **self.config.fetch_cfg}, what=f"{self.name}: fetch_cfg")
        )

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Search for an image. Each result is a text, followed by the image found if it can be fetched.

        An index that is out of range selects the nearest image.

        Raises:
            ToolArgumentError: The conversation has no image, or the image has no URL.
            ToolServiceError: The provider failed or rejected the request.
            ConfigError: The API key is missing, or the address is not usable.
        """
        index = int(self.parse_arguments(params)["img_idx"])
        within = context or ToolContext()
        images = images_in(within.messages, within.files)
        if not images:
            raise ToolArgumentError("this conversation contains no image to search for")
        image = images[min(max(index, 0), len(images) - 1)]
        if not image[:8].lower().startswith(("https://", "http://")):
            raise ToolArgumentError("image search requires an image with an https:// or http:// URL")
        matches = (await self._provider.ask(self._service, image))[: self.config.max_results]
        if not matches:
            return ToolResult("Nothing similar was found.", self._facts([], missing=0))
        pictures = await asyncio.gather(*map(self._picture, matches))
        items = []
        for number, (match, picture) in enumerate(zip(matches, pictures, strict=True), start=1):
            items += [ContentItem(text=_format_match(number, match)), *([picture] if picture else [])]
        return ToolResult(items, self._facts(matches, missing=pictures.count(None)))

    async def aclose(self) -> None:
        """Close the connections. The next call opens new ones."""
        await self._service.aclose()

    async def _picture(self, match: Match) -> ContentItem | None:
        """Fetch the image of a match, or return None. An unreachable URL in a result would fail the model request."""
        for url in (url for url in match.images if url.startswith(("https://", "http://"))):
            try:
                return ContentItem(image=data_uri(await image_bytes(url, self._fetcher)))
            except ToolServiceError:
                continue  # the larger one may be elsewhere; a page without its image is still a hit
        return None

    def _facts(self, matches: Sequence[Match], *, missing: int) -> dict[str, Any]:
        sources = [match.url for match in matches]
        return {"provider": self.config.provider, "sources": sources, "images_missing": missing}


def _format_match(number: int, match: Match) -> str:
    lines = (match.title, match.url, match.source)
    return f"[{number}] " + "\n".join(" ".join(line.split())[:_MOST_CHARS] for line in lines if line)
