"""The `web_search` tool: search the web, and format the results for a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from jackfield.errors import ToolArgumentError
from jackfield.plugins import default_host
from jackfield.tools import BaseTool, ToolResult, says_if_not_awaited
from jackfield_http.service import JSONService, ServiceConfig
from jackfield_web_search.plugin import tools
from jackfield_web_search.providers import PROVIDERS, Page, ProviderName

_MOST_CHARS = {"title": 300, "url": 2000, "excerpt": 2000, "date": 100}  # a provider gives far less


class WebSearchConfig(ServiceConfig):
    """Settings for the search service and the number of results."""

    provider: ProviderName = Field(default="serper", description="Search service: serper or searxng")
    max_results: int = Field(default=10, ge=1, le=100, description="Maximum number of pages in a result")


class WebSearch(BaseTool):
    """Searches the web with Serper, or with a SearXNG server whose address is set in `url`."""

    name = "web_search"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects
    read_only = True
    raw_argument = "query"

    config_class = WebSearchConfig
    config: WebSearchConfig

    def __init__(self, cfg: WebSearchConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._provider = PROVIDERS[self.config.provider]
        self._service = JSONService(
            f"{self.name} ({self.config.provider})",
            self._provider.service,
            self.config,
            settings=lambda: (self.host or default_host()).settings,
        )

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], **_: object) -> ToolResult:
        """Search the web. Returns a numbered list of pages, each with title, URL and excerpt.

        Raises:
            ToolArgumentError: The query is empty.
            ToolServiceError: The provider failed or rejected the request.
            ConfigError: The API key is missing, or the address is not usable.
        """
        query = self.parse_arguments(params)["query"].strip()
        if not query:
            raise ToolArgumentError("the query is empty: pass a question or keywords")
        results = await self._provider.ask(self._service, query, self.config.max_results)
        pages = results[: self.config.max_results]
        text = "\n\n".join(_format_hit(number, page) for number, page in enumerate(pages, start=1))
        facts = {"provider": self.config.provider, "sources": [page.url for page in pages]}
        return ToolResult(text or "Nothing was found: try different words.", facts)

    async def aclose(self) -> None:
        """Close the connections. The next call opens new ones."""
        await self._service.aclose()


def _format_hit(number: int, page: Page) -> str:
    title, url, excerpt, date = (" ".join(getattr(page, name).split())[:most] for name, most in _MOST_CHARS.items())
    lines = (title, url, f"{excerpt} ({date})" if date else excerpt)
    return f"[{number}] " + "\n".join(line for line in lines if line)
