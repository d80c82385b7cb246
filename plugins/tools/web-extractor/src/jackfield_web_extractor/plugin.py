"""Plugin hooks for the `web_extractor` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `web_extractor` tool."""
    return [
        ToolSpec(
            name="web_extractor",
            target="jackfield_web_extractor.tool:WebExtractor",
            summary="Reads a web page or a document on the web.",
            description={
                "en": "Read a web page, or a document such as a PDF. Returns the title and the main text with links. "
                "Long texts are returned in parts.",
                "zh": "读取网页或网上的文档（如 PDF）：给出标题以及带链接的正文；内容较长时分部分给出。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "URL, with https:// or http://"},
                    "part": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Part of a long text to return; 1 if omitted",
                    },
                },
                "required": ["url"],
                "additionalProperties": False,
            },
            config="jackfield_web_extractor.tool:WebExtractorConfig",
            effects=frozenset({"network"}),
            read_only=True,
            idempotent=True,
            cacheable=True,
        )
    ]
