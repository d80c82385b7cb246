"""Plugin hooks for the `web_search` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `web_search` tool."""
    return [
        ToolSpec(
            name="web_search",
            target="jackfield_web_search.tool:WebSearch",
            summary="Searches the web.",
            description={
                "en": "Search the web. Returns the titles, URLs and short excerpts of the best pages.",
                "zh": "搜索互联网，给出最相关网页的标题、网址和摘要。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "maxLength": 2000,
                        "description": "A question or keywords to search for",
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            config="jackfield_web_search.tool:WebSearchConfig",
            secrets=("SERPER_API_KEY",),
            effects=frozenset({"network"}),
            network=("google.serper.dev",),
            read_only=True,
            raw_argument="query",
        )
    ]
