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
            summary="Shows a part of an image, enlarged.",
            description={
                "en": "Look closely at a part of an image of this conversation: gives the part, enlarged, as an image.",
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
                        "description": "The part: left, top, right and bottom, from 0 to 1000 of the whole image",
                    },
                    "label": {
                        "type": "string",
                        "maxLength": 500,
                        "description": "What this part shows",
                    },
                    "img_idx": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Which image of the conversation, from 0",
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
