"""The `nous` call format: tools in `<tools>`, calls as JSON in `<tool_call>`, results in `<tool_response>`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from jackfield.config import Lang
from jackfield.messages import FunctionCall, Message
from jackfield.processors import StreamTransform
from jackfield.request import ChatRequest
from jackfield_call_formats import json_body
from jackfield_call_formats.content import Content, between, with_texts
from jackfield_call_formats.prompt import demands
from jackfield_call_formats.schemas import schema_json
from jackfield_call_formats.tagged import CALL, END_CALL, TaggedReader
from jackfield_call_formats.text_format import TextFormat

CODE_MODE_VARIABLE = "SPECIAL_CODE_MODE"
"""Qwen-Agent's environment variable. `true` asks for code outside the JSON."""

_CODE_TOOL = "code_interpreter"

_BLOCK: Mapping[Lang, str] = {
    "en": """# Tools

You can call functions to help with the user's request: none, one, or several in one answer.

Each line between <tools></tools> describes one function you have:
<tools>
{signatures}
</tools>

To call a function, write a JSON object with its name and its arguments between <tool_call></tool_call>:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>""",
    "zh": """# Tools

为了完成用户的请求，你可以调用函数：一次回答可以不调用、调用一个或调用多个。

<tools></tools> 之间的每一行描述一个可用的函数：
<tools>
{signatures}
</tools>

要调用函数，请在 <tool_call></tool_call> 之间写一个包含函数名和参数的 JSON 对象：
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>""",
}
_CODE_BLOCK: Mapping[Lang, str] = {
    "en": """For a function that runs code, leave "code" empty in the JSON and write the code behind it, as it is:
<tool_call>
{"name": <function-name>, "arguments": {"code": ""}}
<code>
<lines of code>
</code>
</tool_call>""",
    "zh": """如果函数用于运行代码，JSON 中的 "code" 留空，代码原样写在 JSON 之后：
<tool_call>
{"name": <function-name>, "arguments": {"code": ""}}
<code>
<代码行>
</code>
</tool_call>""",
}


class NousFormat(TextFormat):
    """Hermes-style calls, following the grammar of the Qwen 2.5 and Qwen 3 chat templates.

    Args:
        code_mode: Ask the model to write the code for tools whose name contains `code_interpreter` outside the JSON,
            unescaped. If None, the `SPECIAL_CODE_MODE` environment variable decides. Both forms are always accepted.
    """

    name: ClassVar[str] = "nous"

    def __init__(self, *, code_mode: bool | None = None) -> None:
        if code_mode is None:
            code_mode = os.environ.get(CODE_MODE_VARIABLE, "").strip().lower() in ("true", "1")
        self._code_mode = code_mode

    def prompt(self, request: ChatRequest) -> str:
        """Return the text to append to the system message."""
        signatures = "\n".join(schema_json({"type": "function", "function": entry}) for entry in request.functions)
        parts = [_BLOCK[request.lang].format(signatures=signatures)]
        if any(self._is_code_apart(str(function["name"])) for function in request.functions):
            parts.append(_CODE_BLOCK[request.lang])
        return "\n\n".join([*parts, *demands(request.config, request.lang)])

    def write_call(self, call: FunctionCall, request: ChatRequest) -> str:  # noqa: ARG002 - JSON needs no schema
        """Write a call as JSON between tags."""
        return f"{CALL}\n{json_body.write_call(call, code_apart=self._is_code_apart(call.name))}\n{END_CALL}"

    def write_result(self, result: Message) -> Content:
        """Write a result between tags, escaped so that its text cannot close them."""
        return in_response_tags(result)

    def reader(self, request: ChatRequest) -> StreamTransform:
        """Return a reader for one answer, which emits a call's name once complete and its arguments at the end."""
        return TaggedReader(request)

    def _is_code_apart(self, name: str) -> bool:
        return self._code_mode and _CODE_TOOL in name


def in_response_tags(result: Message) -> Content:
    """Wrap a result in `<tool_response>` tags that its text cannot close."""
    inert = with_texts(result.content, lambda text: text.replace("</tool_response>", "<\\/tool_response>"))
    return between("<tool_response>\n", inert, "\n</tool_response>")
