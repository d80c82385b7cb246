"""Plugin hooks for the `image_gen` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `image_gen` tool."""
    return [
        ToolSpec(
            name="image_gen",
            target="jackfield_image_gen.tool:ImageGen",
            summary="Lets a model make images.",
            description={
                "en": "Make an image from a description. Describe it whole: what is to be seen, where, and in which "
                "style.",
                "zh": "根据文字描述生成图片。请完整描述画面：内容、构图和风格。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "prompt": {
                        "type": "string",
                        "maxLength": 20_000,
                        "description": "What the image is to show, in detail",
                    },
                },
                "required": ["prompt"],
                "additionalProperties": False,
            },
            config="jackfield_image_gen.tool:ImageGenConfig",
            effects=frozenset({"files", "network"}),
            raw_argument="prompt",
        )
    ]
