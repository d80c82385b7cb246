"""Plugin hooks for the `image_search` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `image_search` tool."""
    return [
        ToolSpec(
            name="image_search",
            target="jackfield_image_search.tool:ImageSearch",
            summary="Searches the web by image.",
            description={
                "en": "Search the web by an image of this conversation. Returns similar images, with the titles and "
                "URLs of the pages that contain them.",
                "zh": "以图搜图：用本次对话中的一张图片搜索互联网，给出相似图片及其所在网页的标题和网址。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "img_idx": {
                        "type": "integer",
                        "description": "Number of the image in the conversation, starting at 0",
                    },
                },
                "required": ["img_idx"],
                "additionalProperties": False,
            },
            config="jackfield_image_search.tool:ImageSearchConfig",
            secrets=("SERPAPI_IMAGE_SEARCH_KEY", "SERPER_API_KEY"),
            effects=frozenset({"network"}),
            network=("serpapi.com", "google.serper.dev"),
            read_only=True,
            file_access=True,
        )
    ]
