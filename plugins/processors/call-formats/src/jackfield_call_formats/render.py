"""Write tools, calls and results of a request as text. Pure; untouched messages are passed on as they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from jackfield.config import Lang
from jackfield.jsontext import dumps
from jackfield.messages import ASSISTANT, FUNCTION, USER, ContentItem, FunctionCall, Message, with_system_text
from jackfield.request import ChatRequest
from jackfield_call_formats.prompt import tool_block

Content = str | list[ContentItem]

_CALLED: Mapping[Lang, str] = {
    "en": 'The tool "{name}" was called with these arguments: \n{arguments}',
    "zh": "调用了工具“{name}”，参数如下：\n{arguments}",
}
_RETURNED: Mapping[Lang, str] = {
    "en": "The tool has returned the following result: \n",
    "zh": "工具返回了以下结果：\n",
}
_NO_RESULT: Mapping[Lang, str] = {"en": "No result.", "zh": "没有结果。"}
_BETWEEN_USERS = "..."


def render_request(request: ChatRequest) -> ChatRequest:
    """The request without functions: tools go to the system message, calls and results into the texts.

    Where no function may be called, there is no tool block, and past calls are told as a part of what the user said.
    """
    offers_tools = bool(request.functions) and request.config.function_choice != "none"
    if not offers_tools and not request.functions and not any(map(_is_tool_traffic, request.messages)):
        return request
    if offers_tools:
        block = tool_block(request.functions, request.config)
        messages = with_system_text(_with_tags(request.messages), block, first=False)
    else:
        messages = tuple(_without_tools(request.messages, request.lang))
    # With the functions gone, a choice among them would make no sense to a backend.
    config = request.config.model_copy(update={"function_choice": "auto", "parallel_function_calls": None})
    return replace(request, messages=messages, functions=(), config=config)


def call_text(call: FunctionCall) -> str:
    """A call as the model should have written it. Arguments that are no JSON object stand there as a JSON string."""
    return f'<tool_call>\n{{"name": {dumps(call.name)}, "arguments": {_arguments_json(call)}}}\n</tool_call>'


def _arguments_json(call: FunctionCall) -> str:
    if not call.arguments.strip():
        return "{}"
    try:
        value = json.loads(call.arguments, strict=False)
    except (ValueError, RecursionError):
        return dumps(call.arguments)
    return dumps(value if isinstance(value, dict) else call.arguments)


def _is_tool_traffic(message: Message) -> bool:
    return message.role == FUNCTION or message.function_call is not None


# --- with tools: tags ---


def _with_tags(messages: Iterable[Message]) -> list[Message]:
    out: list[Message] = []
    for group in _groups(messages):
        match group[0].role:
            case "assistant" if len(group) > 1 or group[0].function_call:
                out.append(_one_assistant(group))
            case "function":
                out.append(Message(USER, _joined([_tagged_result(message) for message in group])))
            case _:
                out += group
    return out


def _groups(messages: Iterable[Message]) -> list[list[Message]]:
    """Runs of assistant messages, and runs of results; every other message by itself."""
    groups: list[list[Message]] = []
    for message in messages:
        if groups and message.role in (ASSISTANT, FUNCTION) and groups[-1][0].role == message.role:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _one_assistant(group: Sequence[Message]) -> Message:
    parts: list[Content] = []
    for message in group:
        if message.content:
            parts.append(message.content)
        if message.function_call:
            parts.append(call_text(message.function_call))
    reasoning = [message.reasoning_content for message in group if message.reasoning_content]
    first = group[0]
    return Message(
        ASSISTANT,
        _joined(parts),
        reasoning_content=_joined(reasoning) if reasoning else None,
        name=first.name if all(message.name == first.name for message in group) else None,
        origin=first.origin if all(message.origin == first.origin for message in group) else None,
    )


def _tagged_result(message: Message) -> Content:
    if isinstance(message.content, str):
        return f"<tool_response>\n{_inert(message.content)}\n</tool_response>"
    items = [ContentItem(text=_inert(item.text)) if item.text is not None else item for item in message.content]
    return _as_content([ContentItem(text="<tool_response>\n"), *items, ContentItem(text="\n</tool_response>")])


def _inert(result: str) -> str:
    """A result that cannot end its own tag: what a tool brings from outside must not pass for the user's words."""
    return result.replace("</tool_response>", "<\\/tool_response>")


def _joined(parts: Sequence[Content]) -> Content:
    """Parts in one content, each on a line of its own."""
    if all(isinstance(part, str) for part in parts):
        return _joined_lines([part for part in parts if isinstance(part, str)])
    items: list[ContentItem] = []
    for part in parts:
        if items and not (items[-1].text or "").endswith("\n"):
            items.append(ContentItem(text="\n"))
        items += [ContentItem(text=part)] if isinstance(part, str) else part
    return _as_content(items)


def _joined_lines(parts: Sequence[str]) -> str:
    pieces: list[str] = []
    for part in parts:
        if pieces and not pieces[-1].endswith("\n"):
            pieces.append("\n")
        pieces.append(part)
    return "".join(pieces)


def _as_content(items: Iterable[ContentItem]) -> Content:
    """Items with neighbouring texts joined; a text if there is nothing else."""
    joined: list[ContentItem] = []
    for item in items:
        if joined and item.text is not None and joined[-1].text is not None:
            joined[-1] = ContentItem(text=joined[-1].text + item.text)
        else:
            joined.append(item)
    if len(joined) == 1 and joined[0].text is not None:
        return joined[0].text
    return joined


# --- without tools: past calls as a part of what the user said ---


def _without_tools(messages: Iterable[Message], lang: Lang) -> list[Message]:
    out: list[Message] = []
    for message in messages:
        if _is_tool_traffic(message):
            if message.role == ASSISTANT and message.content:
                out.append(message.replace(function_call=None))
            _add_to_user(out, _told(message, lang))
            continue
        if message.role == USER and out and out[-1].role == USER:
            out.append(Message(ASSISTANT, _BETWEEN_USERS))
        out.append(message)
    return out


def _told(message: Message, lang: Lang) -> list[ContentItem]:
    """What is said of a call, or of a result."""
    if message.function_call:
        call = message.function_call
        return [ContentItem(text=_CALLED[lang].format(name=call.name, arguments=call.arguments))]
    result = message.items or [ContentItem(text=_NO_RESULT[lang])]
    return [ContentItem(text=_RETURNED[lang]), *result]


def _add_to_user(out: list[Message], items: Sequence[ContentItem]) -> None:
    if out and out[-1].role == ASSISTANT and not out[-1].content:
        out.pop()  # only the reasoning that led to the call
    if out and out[-1].role == USER:
        content = _as_content([*out[-1].items, ContentItem(text="\n\n"), *items])
        out[-1] = out[-1].replace(content=content)
    else:
        out.append(Message(USER, _as_content(items)))
