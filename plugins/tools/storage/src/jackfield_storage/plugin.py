"""Plugin hooks for the `storage` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `storage` tool."""
    return [
        ToolSpec(
            name="storage",
            target="jackfield_storage.tool:Storage",
            summary="Stores texts under keys, across runs.",
            description={
                "en": "Store texts under keys such as notes/today, and find them later, even in other conversations. "
                "put saves a value, get reads it, delete removes it, scan lists all keys below a key with their "
                "values.",
                "zh": "把文本保存在键下（如 notes/today），以后（包括在其他对话中）可以再次读取。"
                "put 保存，get 读取，delete 删除，scan 列出某个键之下的所有键及其值。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "operate": {
                        "type": "string",
                        "enum": ["put", "get", "delete", "scan"],
                        "description": "What to do",
                    },
                    "key": {
                        "type": "string",
                        "description": "Key, with / between its parts; if omitted, scan lists everything",
                    },
                    "value": {"type": "string", "description": "Text to save, for put"},
                },
                "required": ["operate"],
                "additionalProperties": False,
            },
            config="jackfield_storage.tool:StorageConfig",
            effects=frozenset({"files"}),
        )
    ]
