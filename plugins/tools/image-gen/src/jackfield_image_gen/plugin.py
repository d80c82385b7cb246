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
            summary="Generates images with a model.",
            description={
                "en": "Generate an image from a description. Describe the whole image: its subjects, their positions "
                "and the style.",
                "zh": "根据文字描述生成图片。请完整描述画面：内容、构图和风格。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "prompt": {
                        "type": "string",
                        "maxLength": 20_000,
                        "description": "Detailed description of the image",
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
