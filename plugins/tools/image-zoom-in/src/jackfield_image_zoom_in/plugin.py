"""Plugin hooks for the `image_zoom_in_tool` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `image_zoom_in_tool` tool."""
    return [
        ToolSpec(
            name="image_zoom_in_tool",
            target="jackfield_image_zoom_in.tool:ImageZoomIn",
            summary="Shows an enlarged part of an image.",
            description={
                "en": "Zoom in on a part of an image of this conversation. Returns the enlarged part as an image.",
                "zh": "仔细查看本次对话中某张图片的局部：裁剪并放大该区域，以图片形式给出。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "bbox_2d": {
                        "type": "array",
                        "items": {"type": "number", "minimum": 0, "maximum": 1000},
                        "minItems": 4,
                        "maxItems": 4,
                        "description": "The part to show: left, top, right and bottom, each from 0 to 1000 relative to "
                        "the whole image",
                    },
                    "label": {
                        "type": "string",
                        "maxLength": 500,
                        "description": "Short description of the part",
                    },
                    "img_idx": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Number of the image in the conversation, starting at 0",
                    },
                },
                "required": ["bbox_2d", "label", "img_idx"],
                "additionalProperties": False,
            },
            config="jackfield_image_zoom_in.tool:ImageZoomInConfig",
            effects=frozenset({"files", "network"}),
            file_access=True,
        )
    ]
