"""The tool `web_search`: pages that fit a question, in a form for models."""

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
    """The search service, and the number of found pages that a model reads."""

    provider: ProviderName = Field(default="serper", description="The service: serper or searxng")
    max_results: int = Field(default=10, ge=1, le=100, description="The most pages in a result")


class WebSearch(BaseTool):
    """Searches the web: by Serper, or by a SearXNG server, which needs its address in `url`."""

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
        """Search, and return the pages, numbered, each with its title, address and an excerpt.

        Raises:
            ToolArgumentError: There is nothing to search for.
            ToolServiceError: The provider failed or refused.
            ConfigError: There is no API key, or an address that cannot be used.
        """
        query = self.parse_arguments(params)["query"].strip()
        if not query:
            raise ToolArgumentError("there is nothing to search for: the query is empty")
        results = await self._provider.ask(self._service, query, self.config.max_results)
        pages = results[: self.config.max_results]
        text = "\n\n".join(_format_hit(number, page) for number, page in enumerate(pages, start=1))
        facts = {"provider": self.config.provider, "sources": [page.url for page in pages]}
        return ToolResult(text or "Nothing was found: try other words.", facts)

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._service.aclose()


def _format_hit(number: int, page: Page) -> str:
    title, url, excerpt, date = (" ".join(getattr(page, name).split())[:most] for name, most in _MOST_CHARS.items())
    lines = (title, url, f"{excerpt} ({date})" if date else excerpt)
    return f"[{number}] " + "\n".join(line for line in lines if line)
