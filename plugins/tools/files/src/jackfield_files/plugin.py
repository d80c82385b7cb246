"""Plugin hooks for the file tools."""

from __future__ import annotations

from jackfield.plugins import ToolsetSpec, ToolSpec, hook

# Literal values only, so that the tools are known without running this.
_FILE = {"type": "string", "minLength": 1, "description": "Path of the file, relative to the workspace"}
_GLOB = {
    "type": "string",
    "description": "Only files whose path matches, such as *.py, docs/**/*.md or *.{js,ts}; without a /, in any folder",
}
_EDIT = {
    "type": "object",
    "properties": {
        "old_text": {
            "type": "string",
            "minLength": 1,
            "description": "Text to replace, exactly as in the file, without line numbers; must occur once",
        },
        "new_text": {"type": "string", "description": "Replacement text; '' to remove old_text"},
        "replace_all": {"type": "boolean", "description": "Replace all occurrences"},
    },
    "required": ["old_text", "new_text"],
    "additionalProperties": False,
}


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `read_file`, `write_file`, `edit_file`, `list_files` and `search_files` tools."""
    return [
        ToolSpec(
            name="read_file",
            target="jackfield_files.tools:ReadFile",
            summary="Reads lines of a text file in the workspace.",
            description={
                "en": "Read a text file in the workspace. Each line is prefixed with its number and a tab, which are "
                "not in the file. Long files are returned in parts: continue with start_line.",
                "zh": "读取工作区中的文本文件。每行前面有行号和制表符，它们不是文件内容。"
                "文件较长时只给出一部分，用 start_line 继续读取。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "path": _FILE,
                    "start_line": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "First line to read; 1 if omitted",
                    },
                    "end_line": {"type": "integer", "minimum": 1, "description": "Last line to read"},
                },
                "required": ["path"],
                "additionalProperties": False,
            },
            config="jackfield_files.config:FilesConfig",
            effects=frozenset({"files"}),
            read_only=True,
            idempotent=True,
        ),
        ToolSpec(
            name="write_file",
            target="jackfield_files.tools:WriteFile",
            summary="Writes a text file in the workspace.",
            description={
                "en": "Write a text file in the workspace, creating its parent folders. An existing file is "
                "replaced entirely: to change part of it, use edit_file.",
                "zh": "在工作区中写入文本文件，并创建所需的文件夹。已有的文件会被整个替换；"
                "只改一部分时请用 edit_file。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "path": _FILE,
                    "content": {"type": "string", "description": "The complete content of the file"},
                },
                "required": ["path", "content"],
                "additionalProperties": False,
            },
            config="jackfield_files.config:FilesConfig",
            effects=frozenset({"files"}),
            needs_approval=True,
            concurrent=False,
            idempotent=True,
        ),
        ToolSpec(
            name="edit_file",
            target="jackfield_files.tools:EditFile",
            summary="Replaces exact texts in a file in the workspace.",
            description={
                "en": "Change parts of a text file in the workspace by replacing exact texts. Edits are applied "
                "in order, "
                "all or none of them. Read the file first.",
                "zh": "修改工作区中文本文件的一部分：按顺序替换准确的文本，要么全部成功，要么都不做。请先读取文件。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "path": _FILE,
                    "edits": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 100,
                        "items": _EDIT,
                        "description": "The replacements; each applies to the result of the previous one",
                    },
                },
                "required": ["path", "edits"],
                "additionalProperties": False,
            },
            config="jackfield_files.config:FilesConfig",
            effects=frozenset({"files"}),
            needs_approval=True,
            concurrent=False,
        ),
        ToolSpec(
            name="list_files",
            target="jackfield_files.tools:ListFiles",
            summary="Lists files and folders in the workspace.",
            description={
                "en": "List the files and folders in the workspace recursively, or find files by their names.",
                "zh": "列出工作区中的文件和文件夹（包括下级），或按名称查找文件。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Folder, relative to the workspace; . for the workspace itself",
                    },
                    "pattern": _GLOB,
                    "depth": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Number of levels to list; all if omitted",
                    },
                },
                "required": ["path"],
                "additionalProperties": False,
            },
            config="jackfield_files.config:FilesConfig",
            effects=frozenset({"files"}),
            read_only=True,
            idempotent=True,
        ),
        ToolSpec(
            name="search_files",
            target="jackfield_files.tools:SearchFiles",
            summary="Finds lines in the text files in the workspace.",
            description={
                "en": "Find lines in the text files in the workspace that contain a text or match a regular "
                "expression. Each match is shown with its line number and a colon, context lines with a - instead.",
                "zh": "在工作区的文本文件中查找包含某段文本或匹配正则表达式的行。"
                "结果带有行号；上下文行的行号后面是 -。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 1, "description": "Text to find, within a single line"},
                    "path": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Folder or file to search, relative to the workspace; the whole "
                        "workspace if omitted",
                    },
                    "pattern": _GLOB,
                    "regex": {
                        "type": "boolean",
                        "description": "Treat the query as a regular expression (RE2: no look-around)",
                    },
                    "ignore_case": {"type": "boolean", "description": "Match case-insensitively"},
                    "context": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": 20,
                        "description": "Number of context lines around each match",
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            config="jackfield_files.config:FilesConfig",
            effects=frozenset({"files"}),
            read_only=True,
            idempotent=True,
        ),
    ]


@hook.toolsets
def toolsets() -> list[ToolsetSpec]:
    """Provide the `files` toolset, which contains all five tools."""
    return [
        ToolsetSpec(
            name="files",
            tools=("read_file", "write_file", "edit_file", "list_files", "search_files"),
            summary="All tools for the files in the workspace.",
        )
    ]
