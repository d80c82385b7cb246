"""The `qwen3_coder` call format: XML calls with one element per argument, typed by the function's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from jackfield.config import Lang
from jackfield.messages import FunctionCall, Message
from jackfield.processors import StreamTransform
from jackfield.request import ChatRequest, FunctionSchema
from jackfield.tags import Tags
from jackfield_call_formats import xml_body
from jackfield_call_formats.content import Content
from jackfield_call_formats.nous import in_response_tags
from jackfield_call_formats.prompt import demands
from jackfield_call_formats.reader import THINK
from jackfield_call_formats.schemas import properties_of, schema_json
from jackfield_call_formats.tagged import CALL, END_CALL, FUNCTION, TaggedReader
from jackfield_call_formats.text_format import TextFormat

_BLOCK: Mapping[Lang, str] = {
    "en": """# Tools

You can call these functions to help with the user's request:

<tools>
{functions}
</tools>

Write a call like this, with as many parameters as you need; a value may have several lines and is taken as it stands:
<tool_call>
<function=name_of_the_function>
<parameter=name_of_the_first_parameter>
its value
</parameter>
<parameter=name_of_the_second_parameter>
its value,
which goes on here
</parameter>
</function>
</tool_call>

Give every required parameter. What you want to say comes before the call, and nothing after it. \
If no function helps, answer as usual and do not mention them.""",
    "zh": """# Tools

为了完成用户的请求，你可以调用这些函数：

<tools>
{functions}
</tools>

按下面的格式写一个调用，需要几个参数就写几个；参数值可以有多行，按原样读取：
<tool_call>
<function=函数名>
<parameter=第一个参数名>
参数值
</parameter>
<parameter=第二个参数名>
参数值，
可以换行
</parameter>
</function>
</tool_call>

必须给出所有必填参数。想说的话写在调用之前，调用之后不要再写任何内容。如果没有合适的函数，就照常回答，不必提到它们。""",
}


class Qwen3CoderFormat(TextFormat):
    """Qwen3-Coder calls. Values need no escaping, which suits code and prose."""

    name: ClassVar[str] = "qwen3_coder"

    def prompt(self, request: ChatRequest) -> str:
        """Return the text to append to the system message."""
        functions = "\n".join(_describe_function(function) for function in request.functions)
        return "\n\n".join([_BLOCK[request.lang].format(functions=functions), *demands(request.config, request.lang)])

    def write_call(self, call: FunctionCall, request: ChatRequest) -> str:
        """Write a call as XML between tags."""
        return f"{CALL}\n{xml_body.write_call(call, request.functions)}\n{END_CALL}"

    def write_result(self, result: Message) -> Content:
        """Write a result between tags, escaped so that its text cannot close them."""
        return in_response_tags(result)

    def reader(self, request: ChatRequest) -> StreamTransform:
        """Return a reader for one answer that also accepts JSON calls and calls without `<tool_call>`."""
        return _Reader(request)


class _Reader(TaggedReader):
    """Reader that also accepts `<function=…>` without `<tool_call>`, which these models often omit."""

    tags: ClassVar[Tags] = Tags(CALL, END_CALL, FUNCTION, THINK)

    def _open(self, tag: str) -> None:
        if tag != END_CALL:
            super()._open(tag)
        elif self._body.opening == FUNCTION and self._at_start:
            self._blank.clear()  # the model forgot the opening tag, but not this one
        else:
            self._say(tag)


def _describe_function(function: FunctionSchema) -> str:
    lines = ["<function>", f"<name>{function['name']}</name>"]
    if function.get("description"):
        lines.append(f"<description>{function['description']}</description>")
    lines.append("<parameters>")
    for name, schema in properties_of(function).items():
        lines += ["<parameter>", f"<name>{name}</name>", *_elements(schema), "</parameter>"]
    parameters = function.get("parameters") or {}
    lines += _elements({key: value for key, value in parameters.items() if key not in ("type", "properties")})
    return "\n".join([*lines, "</parameters>", "</function>"])


def _elements(schema: object) -> list[str]:
    """Write each key of a schema as an element: strings unchanged, other values as JSON."""
    if not isinstance(schema, Mapping):
        return []
    written = {key: value if isinstance(value, str) else schema_json(value) for key, value in schema.items()}
    return [f"<{key}>{value}</{key}>" for key, value in written.items()]
