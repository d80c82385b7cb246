"""What a model is told about its tools. The tags and the JSON are the format's; the sentences are ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jackfield.config import GenerateConfig
from jackfield.request import FunctionSchema

_BLOCK = """# Tools

You can call functions to help with the user's request: none, one, or several in one answer.

Each line between <tools></tools> describes one function you have:
<tools>
{signatures}
</tools>

To call a function, write a JSON object with its name and its arguments between <tool_call></tool_call>:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


def tool_block(functions: Sequence[FunctionSchema], config: GenerateConfig) -> str:
    """The end of the system message: the tools, how to call them, and what is asked of this answer."""
    signatures = "\n".join(_signature(function) for function in functions)
    return "\n\n".join([_BLOCK.format(signatures=signatures), *_demands(config)])


def _signature(function: FunctionSchema) -> str:
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False, default=_as_dict)


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a function schema holds JSON values only, not {type(value).__name__}")


def _demands(config: GenerateConfig) -> list[str]:
    demands = []
    if config.function_choice == "required":
        demands.append("This time your answer must contain at least one function call.")
    elif config.function_choice not in ("auto", "none"):
        demands.append(f'This time your answer must call the function "{config.function_choice}".')
    if config.parallel_function_calls is False:
        demands.append("Write at most one function call in an answer, and wait for its result.")
    return demands
