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
            summary="Reads a page or a document of the web.",
            description={
                "en": "Read a web page, or a document such as a PDF: its title, and its main text with links. "
                "What is long comes in parts.",
                "zh": "读取网页或网上的文档（如 PDF）：给出标题以及带链接的正文；内容较长时分部分给出。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "The address, with https:// or http://"},
                    "part": {"type": "integer", "minimum": 1, "description": "Which part of it; 1 if left out"},
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
