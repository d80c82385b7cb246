"""Describe past calls and results in user messages, for requests that forbid calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jackfield.config import Lang
from jackfield.messages import ASSISTANT, FUNCTION, USER, ContentItem, Message
from jackfield_call_formats.content import as_content

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


def is_tool_traffic(message: Message) -> bool:
    """Return True if a message is a call or a result."""
    return message.role == FUNCTION or message.function_call is not None


def without_tools(messages: Iterable[Message], lang: Lang) -> list[Message]:
    """Return the history with calls and results described in user messages."""
    out: list[Message] = []
    for message in messages:
        if is_tool_traffic(message):
            _describe(message, lang, out)
        else:
            _add(message, out)
    return out


def _describe(message: Message, lang: Lang, out: list[Message]) -> None:
    if message.role == ASSISTANT and message.content:
        out.append(message.replace(function_call=None))
    _add_to_user(out, _told(message, lang))


def _add(message: Message, out: list[Message]) -> None:
    if message.role == USER and out and out[-1].role == USER:
        out.append(Message(ASSISTANT, _BETWEEN_USERS))
    out.append(message)


def _told(message: Message, lang: Lang) -> list[ContentItem]:
    """Describe a call or a result."""
    if message.function_call:
        call = message.function_call
        return [ContentItem(text=_CALLED[lang].format(name=call.name, arguments=call.arguments))]
    result = message.items or [ContentItem(text=_NO_RESULT[lang])]
    return [ContentItem(text=_RETURNED[lang]), *result]


def _add_to_user(out: list[Message], items: Sequence[ContentItem]) -> None:
    if out and out[-1].role == ASSISTANT and not out[-1].content:
        out.pop()  # only the reasoning that led to the call
    if out and out[-1].role == USER:
        content = as_content([*out[-1].items, ContentItem(text="\n\n"), *items])
        out[-1] = out[-1].replace(content=content)
    else:
        out.append(Message(USER, as_content(items)))
