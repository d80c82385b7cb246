"""Plugin hooks for the code execution tools."""

from __future__ import annotations

from jackfield.plugins import ToolSpec, hook

NAME = "code_interpreter"

DESCRIPTION = {
    "en": (
        "Runs Python code in a Jupyter kernel and returns its output, errors and plots. Variables, imports and files "
        "are kept for the next call. The files of the conversation are in the working directory under their own "
        "names. Print any value you want to see; input() does not work."
    ),
    "zh": (
        "在 Jupyter 内核中运行 Python 代码，返回打印、显示或抛出的内容，图表也会返回。"
        "变量、导入和文件会保留到下一次调用。"
        "对话中的文件以原名放在工作目录里。想看到的结果请打印出来；不能使用 input()。"
    ),
}

PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "The Python code to run"}},
    "required": ["code"],
}

EXECUTOR = "python_executor"

EXECUTOR_DESCRIPTION = {
    "en": (
        "Runs a Python program and returns its output and the value of its last line. Nothing is kept for the next "
        "program. input() does not work."
    ),
    "zh": "运行一段 Python 程序，返回其打印的内容和最后一行的值。不会为下一段程序保留任何内容；不能使用 input()。",
}

# The tool ends its calls itself, after the `timeout` of its settings, so this only has to be longer than any of those.
TIMEOUT_S = 4000.0

# Everything that code can do without a sandbox, or with settings that open the sandbox.
EFFECTS = frozenset({"files", "network", "processes"})


@hook.tools
def tools() -> list[ToolSpec]:
    """Provide the `code_interpreter` and `python_executor` tools."""
    return [
        ToolSpec(
            name=NAME,
            target="jackfield_code_interpreter.tool:CodeInterpreter",
            config="jackfield_code_interpreter.config:CodeInterpreterConfig",
            summary="Runs Python in a Jupyter kernel that keeps state for the whole run.",
            description=DESCRIPTION,
            parameters=PARAMETERS,
            concurrent=False,
            timeout_s=TIMEOUT_S,
            file_access=True,
            raw_argument="code",
            effects=EFFECTS,
        ),
        ToolSpec(
            name=EXECUTOR,
            target="jackfield_code_interpreter.python_executor:PythonExecutor",
            config="jackfield_code_interpreter.python_executor:PythonExecutorConfig",
            summary="Runs a Python program in a sandbox, without keeping any state.",
            description=EXECUTOR_DESCRIPTION,
            parameters=PARAMETERS,
            timeout_s=TIMEOUT_S,
            raw_argument="code",
            effects=EFFECTS,
        ),
    ]
