"""Parse Chat Completions requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from jackfield.messages import ContentItem, FunctionCall, Message
from jackfield_openai_server.errors import ParameterError, parse_body, refuse_parameter
from jackfield_openai_server.parts import audio_item, file_item, image_item, text_item
from jackfield_openai_server.question import Question, read_tool, read_tool_choice


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _TextPart(_Body):
    type: Literal["text"]
    text: str


class _RefusalPart(_Body):
    type: Literal["refusal"]
    refusal: str


class _ImageURL(_Body):
    url: str
    detail: str | None = None


class _ImagePart(_Body):
    type: Literal["image_url"]
    image_url: _ImageURL


class _Audio(_Body):
    data: str
    format: str


class _AudioPart(_Body):
    type: Literal["input_audio"]
    input_audio: _Audio


class _File(_Body):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class _FilePart(_Body):
    type: Literal["file"]
    file: _File


_UserPart = Annotated[_TextPart | _ImagePart | _AudioPart | _FilePart, Field(discriminator="type")]
_AnswerPart = Annotated[_TextPart | _RefusalPart, Field(discriminator="type")]


class _Function(_Body):
    name: str = Field(min_length=1)
    arguments: str


class _ToolCall(_Body):
    id: str
    type: Literal["function"] = "function"
    function: _Function
    index: int | None = None


class _SystemMessage(_Body):
    role: Literal["system", "developer"]
    content: str | list[_TextPart]
    name: str | None = None


class _UserMessage(_Body):
    role: Literal["user"]
    content: str | list[_UserPart]
    name: str | None = None


class _AssistantMessage(_Body):
    role: Literal["assistant"]
    content: str | list[_AnswerPart] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    name: str | None = None
    tool_calls: list[_ToolCall] | None = None
    # Clients send these back as received.
    annotations: list[Any] | None = None
    audio: None = None
    function_call: None = None


class _ToolMessage(_Body):
    role: Literal["tool"]
    content: str | list[_TextPart]
    tool_call_id: str
    name: str | None = None  # some clients repeat the tool's name, which the call already has


_ChatMessage = Annotated[_SystemMessage | _UserMessage | _AssistantMessage | _ToolMessage, Field(discriminator="role")]


class _StreamOptions(_Body):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class _ChatBody(_Body):
    model: str
    messages: list[_ChatMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    stop: str | list[str] | None = None
    reasoning_effort: str | None = None
    parallel_tool_calls: bool | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    # Known, but supported only with their neutral values.
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: dict[str, float] | None = None
    modalities: list[str] | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    service_tier: str | None = None
    verbosity: str | None = None
    audio: Any = None
    prediction: Any = None
    web_search_options: Any = None
    functions: Any = None
    function_call: Any = None
    moderation: Any = None
    prompt_cache_key: Any = None
    prompt_cache_options: Any = None
    prompt_cache_retention: Any = None


@dataclass(frozen=True, kw_only=True)
class ChatQuestion(Question):
    """A Chat Completions request.

    Attributes:
        stream: True to stream the answer.
        include_usage: True to report the usage in the last chunk of a stream.
        results: The trailing results of client tools, by call id.
    """

    stream: bool = False
    include_usage: bool = False
    results: Mapping[str, str] = field(default_factory=dict)


_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "store": (False,),
    "metadata": ({},),
    "service_tier": ("auto", "default"),
    "verbosity": ("medium",),
}
_UNSUPPORTED = (
    "audio", "prediction", "web_search_options", "functions", "function_call", "moderation", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention",
)  # fmt: skip
_SUPPORTED = _ChatBody.model_fields.keys() - {*_NEUTRAL, *_UNSUPPORTED}


def read_chat_request(table: dict[str, Any]) -> ChatQuestion:
    """Parse a request.

    Raises:
        ParameterError: A parameter is unknown, invalid or unsupported.
    """
    body = parse_body(_ChatBody, table)
    if not body.model_fields_set <= _SUPPORTED:
        _refuse_unsupported(body)
    options = body.stream_options
    if options is not None and options.include_obfuscation:
        refuse_parameter("stream_options.include_obfuscation", "not supported")
    if options is not None and not body.stream:
        refuse_parameter("stream_options", "requires stream: true", code="invalid_value")
    tools = [read_tool(tool.get("function"), f"tools.{index}", tool.get("type")) for index, tool in _numbered(body)]
    schema, response_format = _read_response_format(body.response_format)
    config: dict[str, Any] = {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "presence_penalty": body.presence_penalty,
        "frequency_penalty": body.frequency_penalty,
        "max_tokens": body.max_completion_tokens or body.max_tokens,
        "seed": body.seed,
        "stop": [body.stop] if isinstance(body.stop, str) else body.stop,
        "reasoning_effort": body.reasoning_effort,
        "parallel_function_calls": body.parallel_tool_calls,
        "response_format": response_format,
        "function_choice": read_tool_choice(_flatten_choice(body.tool_choice), tools),
    }
    return ChatQuestion(
        agent=body.model,
        messages=list(_read_messages(body.messages)),
        config={name: value for name, value in config.items() if value is not None},
        client_tools=tools,
        output=schema,
        user=body.safety_identifier or body.user or "",
        stream=bool(body.stream),
        include_usage=bool(options and options.include_usage),
        results=_results_at_end(body.messages),
    )


def _refuse_unsupported(body: _ChatBody) -> None:
    for name, values in _NEUTRAL.items():
        value = getattr(body, name)
        if value is not None and value not in values:
            refuse_parameter(name, f"value {value!r} is not supported")
    for name in _UNSUPPORTED:
        if getattr(body, name) is not None:
            refuse_parameter(name, "not supported")


def _numbered(body: _ChatBody) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from enumerate(body.tools or ())


def _flatten_choice(choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    """Convert a tool choice to the format of the Responses API."""
    match choice:
        case {"type": "function", "function": {"name": str(name)}}:
            return {"type": "function", "name": name}
    return choice


def _read_response_format(wanted: dict[str, Any] | None) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the answer's JSON Schema, or None and the response format for the model."""
    match wanted:
        case None | {"type": "text"}:
            return None, None
        case {"type": "json_object"}:
            return None, {"type": "json_object"}
        case {"type": "json_schema", "json_schema": {"schema": dict(schema), **rest}}:
            if unknown := rest.keys() - {"name", "description", "strict"}:
                param = f"response_format.json_schema.{min(map(str, unknown))}"
                raise ParameterError(f"Unknown parameter: {param!r}.", param=param, code="unknown_parameter")
            return schema, None
    raise ParameterError("Invalid value for 'response_format'.", param="response_format")


def _results_at_end(messages: Sequence[Any]) -> dict[str, str]:
    results: dict[str, str] = {}
    for message in reversed(messages):
        if not isinstance(message, _ToolMessage):
            break
        results[message.tool_call_id] = _text_of(message.content)
    return results


def _text_of(content: str | Sequence[_TextPart | _RefusalPart] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text if isinstance(part, _TextPart) else part.refusal for part in content)


def _read_messages(messages: Sequence[Any]) -> Iterator[Message]:
    tool_names: dict[str, str] = {}
    for index, message in enumerate(messages):
        match message:
            case _SystemMessage():
                yield Message("system", _text_of(message.content))
            case _UserMessage():
                content = message.content
                items = content if isinstance(content, str) else list(_read_parts(content, f"messages.{index}.content"))
                yield Message("user", items, name=message.name)
            case _AssistantMessage():
                yield from _read_answer(message, tool_names)
            case _ToolMessage():
                name = tool_names.get(message.tool_call_id)
                if name is None:
                    raise ParameterError(
                        f"messages.{index}: no earlier message contains tool call {message.tool_call_id[:60]!r}.",
                        param=f"messages.{index}.tool_call_id",
                    )
                extra = {"function_id": message.tool_call_id}
                yield Message("function", _text_of(message.content), name=name, extra=extra)


def _read_answer(message: _AssistantMessage, tool_names: dict[str, str]) -> Iterator[Message]:
    text = _text_of(message.content) or message.refusal or ""
    if message.reasoning_content:
        yield Message("assistant", "", reasoning_content=message.reasoning_content, name=message.name)
    if text or not (message.tool_calls or message.reasoning_content):
        yield Message("assistant", text, name=message.name)
    for call in message.tool_calls or ():
        tool_names[call.id] = call.function.name
        function_call = FunctionCall(call.function.name, call.function.arguments)
        yield Message("assistant", "", name=message.name, function_call=function_call, extra={"function_id": call.id})


def _read_parts(parts: Sequence[Any], param: str) -> Iterator[ContentItem]:
    for index, part in enumerate(parts):
        where = f"{param}.{index}"
        match part:
            case _TextPart():
                yield text_item(part.text)
            case _ImagePart():
                yield image_item(part.image_url.url, part.image_url.detail, f"{where}.image_url")
            case _AudioPart():
                yield audio_item(part.input_audio.data, part.input_audio.format, f"{where}.input_audio")
            case _FilePart():
                file = part.file
                yield file_item(f"{where}.file", data=file.file_data, name=file.filename, file_id=file.file_id)
