"""Scripts of a model as text, an answer a line: `call weather {"city": "Bonn"}` calls a tool, anything else is said."""

from __future__ import annotations

from collections.abc import Mapping

from jackfield_testkit.replies import DEFAULT_USAGE, Reply, ToolCall, text, tool_calls


def reply_of(line: str, *, usage: Mapping[str, object] | None = DEFAULT_USAGE) -> Reply:
    """Return the answer that a line stands for; ` + call ` separates several calls of one answer."""
    if not line.startswith("call "):
        return text(line.replace("\\n", "\n"), usage=usage)
    calls = [one.split(" ", 1) for one in line.removeprefix("call ").split(" + call ")]
    return tool_calls([ToolCall(name, arguments, id=f"call_{at}") for at, (name, arguments) in enumerate(calls, 1)])
