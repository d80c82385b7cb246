"""Plugin hooks for the `shell` tool."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook

# The tool ends its commands itself, so this only has to be longer than any time that its settings allow.
TIMEOUT_S = 4000.0
MOST_COMMAND = 100_000  # bytes; systems take about 128 KiB in one argument


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `shell` tool."""
    return [
        ToolSpec(
            name="shell",
            target="jackfield_shell.tool:Shell",
            summary="Runs shell commands in the workspace, inside a sandbox.",
            description={
                "en": "Run a shell command in the workspace. Returns its output (standard output and errors combined, "
                "truncated in the middle if long) and its exit code if not 0. Only files are kept for the next call: "
                "no variables, no working directory, no background programs. There is no input.",
                "zh": "在工作区中用 shell 执行命令。返回输出（标准输出和错误合在一起，过长时保留开头和结尾）"
                "以及非 0 的退出码。只有文件会保留到下一次调用：变量、当前目录和后台程序都不保留。没有输入。",
            },
            parameters={
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1, "description": "The command, as for sh -c"},
                    "timeout_s": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Time limit for the command in seconds, if not the default",
                    },
                },
                "required": ["command"],
                "additionalProperties": False,
            },
            config="jackfield_shell.config:ShellConfig",
            effects=frozenset({"files", "network", "processes"}),
            needs_approval=True,
            concurrent=False,
            timeout_s=TIMEOUT_S,
        )
    ]
