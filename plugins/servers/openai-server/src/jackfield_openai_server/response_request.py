"""Parse Responses API requests."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield_openai_server.errors import ParameterError, parse_body, refuse_parameter
from jackfield_openai_server.parts import audio_item, file_item, image_item, text_item
from jackfield_openai_server.question import Question, read_tool, read_tool_choice

ECHO = "openai_request"
"""Key in `extra` of a request's first message for the fields that the response repeats."""


_SEAL = "jackfield1."


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _TextPart(_Body):
    type: Literal["input_text", "output_text", "text"]
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class _RefusalPart(_Body):
    type: Literal["refusal"]
    refusal: str


class _ImagePart(_Body):
    type: Literal["input_image"]
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class _FilePart(_Body):
    type: Literal["input_file"]
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None


class _Audio(_Body):
    data: str
    format: str


class _AudioPart(_Body):
    type: Literal["input_audio"]
    input_audio: _Audio


_Part = Annotated[_TextPart | _RefusalPart | _ImagePart | _FilePart | _AudioPart, Field(discriminator="type")]


class _MessageItem(_Body):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[_Part]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class _CallItem(_Body):
    type: Literal["function_call"]
    call_id: str
    name: str = Field(min_length=1)
    arguments: str
    id: str | None = None
    status: str | None = None


class _OutputItem(_Body):
    type: Literal["function_call_output"]
    call_id: str
    output: str | list[_TextPart]
    id: str | None = None
    status: str | None = None


class _SummaryPart(_Body):
    type: Literal["summary_text"]
    text: str


class _ReasoningPart(_Body):
    type: Literal["reasoning_text"]
    text: str


class _ReasoningItem(_Body):
    type: Literal["reasoning"]
    id: str | None = None
    summary: list[_SummaryPart] = Field(default_factory=list)
    content: list[_ReasoningPart] | None = None
    encrypted_content: None = None
    status: str | None = None


class _ApprovalRequestItem(_Body):
    type: Literal["mcp_approval_request"]
    id: str
    name: str
    arguments: str
    server_label: str


class _ApprovalItem(_Body):
    type: Literal["mcp_approval_response"]
    approval_request_id: str
    approve: bool
    id: str | None = None
    reason: None = None


class _CompactionItem(_Body):
    type: Literal["compaction"]
    encrypted_content: str
    id: str | None = None
    created_by: str | None = None


_Item = Annotated[
    _MessageItem | _CompactionItem | _CallItem | _OutputItem | _ReasoningItem | _ApprovalRequestItem | _ApprovalItem,
    Field(discriminator="type"),
]


class _Format(_Body):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class _Text(_Body):
    format: _Format | None = None
    verbosity: Literal["medium"] | None = None


class _Reasoning(_Body):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class _StreamOptions(_Body):
    include_obfuscation: Literal[False] | None = None


class _Conversation(_Body):
    id: str


class _ResponseBody(_Body):
    model: str
    input: str | list[_Item] = Field(default_factory=list)
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | _Conversation | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    background: bool | None = None
    store: bool | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    max_output_tokens: int | None = Field(default=None, ge=1)
    parallel_tool_calls: bool | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    metadata: dict[str, str] | None = Field(default=None, max_length=16)
    truncation: Literal["auto", "disabled"] | None = None
    user: str | None = None
    safety_identifier: str | None = Field(default=None, max_length=64)
    prompt_cache_key: str | None = Field(default=None, max_length=64)
    # Known, but supported only with their neutral values.
    include: list[Literal["reasoning.encrypted_content"]] | None = None
    service_tier: Literal["auto", "default"] | None = None
    top_logprobs: Literal[0] | None = None


@dataclass(frozen=True, kw_only=True)
class ResponseQuestion(Question):
    """A Responses API request.

    Attributes:
        instructions: A system message for this request, or ''.
        previous: The id of the response to continue, or ''.
        conversation: The id of the response's conversation, or ''.
        answers: The results and approvals in the input, by the call ids that clients see.
        has_others: True if the input contains anything besides answers.
        echo: The request fields that the response repeats.
        stream, background, store: The request parameters of the same names.
    """

    instructions: str = ""
    previous: str = ""
    conversation: str = ""
    answers: Mapping[str, str | bool] = field(default_factory=dict)
    has_others: bool = True
    echo: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    background: bool = False
    store: bool = True


def read_response_request(table: dict[str, Any]) -> ResponseQuestion:
    """Parse a request.

    Raises:
        ParameterError: A parameter is unknown, invalid or unsupported.
    """
    body = parse_body(_ResponseBody, _with_types(table))
    if body.previous_response_id and body.conversation:
        refuse_parameter("conversation", "cannot be combined with previous_response_id", code="invalid_value")
    if body.background and body.store is False:
        refuse_parameter("background", "requires store: true", code="invalid_value")
    tools = [read_tool(tool, f"tools.{index}", tool.get("type")) for index, tool in enumerate(body.tools or ())]
    form = body.text.format if body.text else None
    if form is not None and form.type == "json_schema" and (form.schema_ is None or form.name is None):
        raise ParameterError("text.format requires 'name' and 'schema'.", param="text.format")
    config: dict[str, Any] = {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "presence_penalty": body.presence_penalty,
        "frequency_penalty": body.frequency_penalty,
        "max_tokens": body.max_output_tokens,
        "parallel_function_calls": body.parallel_tool_calls,
        "reasoning_effort": body.reasoning.effort if body.reasoning else None,
        "response_format": {"type": "json_object"} if form and form.type == "json_object" else None,
        "max_input_tokens": 0 if body.truncation == "disabled" else None,  # 0: histories are never truncated
        "function_choice": read_tool_choice(body.tool_choice, tools),
    }
    items = [_MessageItem(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    answers = dict(_read_answers(items))
    return ResponseQuestion(
        agent=body.model,
        messages=list(_read_items(items)),
        config={name: value for name, value in config.items() if value is not None},
        client_tools=tools,
        output=form.schema_ if form and form.type == "json_schema" else None,
        user=body.safety_identifier or body.user or "",
        instructions=body.instructions or "",
        previous=body.previous_response_id or "",
        conversation=body.conversation.id if isinstance(body.conversation, _Conversation) else body.conversation or "",
        answers=answers,
        has_others=len(answers) < len(items),
        echo=_echo_of(body, table),
        stream=bool(body.stream),
        background=bool(body.background),
        store=body.store is not False,
    )


def _with_types(table: dict[str, Any]) -> dict[str, Any]:
    """Add the type `message` to input items that have a role, since clients omit it."""
    items = table.get("input")
    if not isinstance(items, list):
        return table
    typed = [{"type": "message", **item} if isinstance(item, dict) and "role" in item else item for item in items]
    return {**table, "input": typed}


_ECHOED = (
    "instructions", "previous_response_id", "temperature", "top_p", "presence_penalty", "frequency_penalty",
    "max_output_tokens", "parallel_tool_calls", "tools", "tool_choice", "reasoning", "metadata", "truncation", "user",
    "safety_identifier", "prompt_cache_key", "background", "store", "text",
)  # fmt: skip


def _echo_of(body: _ResponseBody, table: Mapping[str, Any]) -> dict[str, Any]:
    echo = {name: table[name] for name in _ECHOED if table.get(name) is not None}
    if body.conversation:
        echo["conversation"] = body.conversation if isinstance(body.conversation, str) else body.conversation.id
    return echo


def _read_answers(items: Sequence[Any]) -> Iterator[tuple[str, str | bool]]:
    for item in items:
        match item:
            case _OutputItem():
                yield item.call_id, _text_of(item.output)
            case _ApprovalItem():
                yield item.approval_request_id.removeprefix("mcpr_"), item.approve


def _read_items(items: Sequence[Any]) -> Iterator[Message]:
    tool_names: dict[str, str] = {}
    for index, item in enumerate(items):
        param = f"input.{index}"
        match item:
            case _MessageItem(role="assistant"):
                yield Message("assistant", _text_of(item.content))
            case _MessageItem(role="user"):
                content = item.content
                yield Message("user", content if isinstance(content, str) else list(_read_parts(content, param)))
            case _MessageItem():
                yield Message("system", _text_of(item.content))
            case _CompactionItem():
                yield Message("user", f"Summary of the conversation so far:\n{_open_summary(item, param)}")
            case _ReasoningItem():
                parts = item.content or item.summary
                yield Message("assistant", "", reasoning_content="\n".join(part.text for part in parts))
            case _CallItem():
                tool_names[item.call_id] = item.name
                call = FunctionCall(item.name, item.arguments)
                yield Message("assistant", "", function_call=call, extra={"function_id": item.call_id})
            case _OutputItem():
                # Without its call in the input, it answers a call of the previous response.
                name = tool_names.get(item.call_id, "tool")
                yield Message("function", _text_of(item.output), name=name, extra={"function_id": item.call_id})


def seal_summary(summary: str) -> str:
    """Encode a summary for the client to store: opaque, but not secret."""
    return _SEAL + base64.b64encode(summary.encode(errors="replace")).decode()


def _open_summary(item: _CompactionItem, param: str) -> str:
    try:
        if item.encrypted_content.startswith(_SEAL):
            return base64.b64decode(item.encrypted_content.removeprefix(_SEAL), validate=True).decode()
    except ValueError:
        pass
    raise ParameterError("The item was not created by this server.", param=f"{param}.encrypted_content")


def _text_of(content: str | Sequence[BaseModel]) -> str:
    if isinstance(content, str):
        return content
    texts = []
    for part in content:
        if not isinstance(part, _TextPart | _RefusalPart):
            raise ParameterError("This item does not support parts of this type.", param="input")
        texts.append(part.text if isinstance(part, _TextPart) else part.refusal)
    return "\n".join(texts)


def _read_parts(parts: Sequence[Any], param: str) -> Iterator[ContentItem]:
    for index, part in enumerate(parts):
        where = f"{param}.content.{index}"
        match part:
            case _TextPart():
                yield text_item(part.text)
            case _RefusalPart():
                yield text_item(part.refusal)
            case _ImagePart(image_url=str(url), file_id=None):
                yield image_item(url, part.detail, f"{where}.image_url")
            case _ImagePart():
                refuse_parameter(f"{where}.file_id", "image uploads are not supported: send image_url")
            case _FilePart():
                yield file_item(where, data=part.file_data, name=part.filename, file_id=part.file_id, url=part.file_url)
            case _AudioPart():
                yield audio_item(part.input_audio.data, part.input_audio.format, f"{where}.input_audio")
