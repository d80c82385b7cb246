"""Tool that lets the model read summarised messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jackfield.config import Lang
from jackfield.errors import ToolArgumentError
from jackfield.messages import ContentItem
from jackfield.tools import BaseTool, ToolContext
from jackfield_truncation.summary import line_of
from jackfield_truncation.view import numbered_from

NAME = "read_earlier"

_MOST_CHARS = 16_000
_GO_ON = {
    "en": "[{left} more characters of message {number}: go on with first={number}, offset={offset}]",
    "zh": "[第 {number} 条消息还有 {left} 个字符：请用 first={number}, offset={offset} 继续读取]",
}
_DESCRIPTION = {
    "en": "Read earlier messages of this conversation again, in full, that are only summarised now. "
    "They are numbered from 1; the summary names numbers in brackets.",
    "zh": "重新完整读取本次对话中目前只有摘要的较早消息。消息从 1 开始编号；摘要中用方括号注明编号。",
}
_PARAMETERS: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "first": {"type": "integer", "minimum": 1, "description": "The number of the first message"},
        "last": {
            "type": "integer",
            "minimum": 1,
            "description": "The number of the last one; one message if left out",
        },
        "offset": {"type": "integer", "minimum": 0, "description": "Characters of the first message to skip"},
    },
    "required": ["first"],
    "additionalProperties": False,
}
_MORE = {
    "en": "[go on with first={number}]",
    "zh": "[请用 first={number} 继续读取]",
}

_LANG: Lang = "en"  # for a call outside a run


class ReadEarlier(BaseTool):
    """Returns messages of the conversation in full, by number. A message too long for one result is split."""

    name = NAME
    description = _DESCRIPTION
    parameters = _PARAMETERS
    read_only = True

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str | list[ContentItem]:
        """Return the numbered messages, with any media in the first one.

        Raises:
            ToolArgumentError: The conversation has no messages with these numbers.
        """
        arguments = self.parse_arguments(params)
        messages, lang = ((), _LANG) if context is None else (context.messages, context.lang)
        conversation = messages[numbered_from(messages) :]
        first, offset = int(arguments["first"]), int(arguments.get("offset", 0))
        last = int(arguments.get("last", first))
        if not 1 <= first <= last <= len(conversation):
            raise ToolArgumentError(f"no messages {first} to {last}; available: 1 to {len(conversation)}")
        texts = [line_of(message) for message in conversation[first - 1 : last]]
        text = "\n\n".join(_shown(texts, first, offset, lang))
        media = [item for item in conversation[first - 1].items if item.is_media_content()]
        return [ContentItem(text=text), *media] if media else text


def _shown(texts: Sequence[str], first: int, offset: int, lang: Lang) -> Iterator[str]:
    """Yield as much text as fits into one result, then a hint on how to continue."""
    left = _MOST_CHARS
    for number, whole in enumerate(texts, start=first):
        text = whole[offset:]
        if len(text) > left and number > first:
            yield _MORE[lang].format(number=number)
            return
        yield f"[{number}] {text[:left]}"
        if len(text) > left:
            yield _GO_ON[lang].format(left=len(text) - left, number=number, offset=offset + left)
            return
        left, offset = left - len(text), 0
