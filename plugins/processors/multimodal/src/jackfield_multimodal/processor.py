"""Processor that turns files into text and describes unsupported media."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from jackfield.attachments import AttachedFile, read_files_before
from jackfield.config import Lang
from jackfield.events import ModelEvent
from jackfield.messages import SYSTEM, USER, ContentItem, ItemKind, Message
from jackfield.plugins import Plugins
from jackfield.processors import CallNext, Phase, Preprocessor
from jackfield.request import ChatRequest
from jackfield_multimodal.config import MultimodalConfig
from jackfield_multimodal.mentions import is_mentioned, mention, note

if TYPE_CHECKING:
    from jackfield_multimodal.reading import FileReader

_FILES: frozenset[ItemKind] = frozenset({"file"})


class Multimodal(Preprocessor):
    """Reads attached files with the installed parsers, and describes media that the model does not support.

    Each file that a user attached is replaced by its text, unless the model accepts files or an agent uses the file.

    A system or user message gets a note before its text, such as `(Uploaded ![image](cat.png) [file](report.pdf)) `.
    The note lists the files, images, audio and videos that the model does not support. If the request has tools, it
    lists all of them, because tools need the names. Items that the message already mentions are not repeated. In other
    messages, omitted content is replaced by a mention.

    Message ids, names, origins and `extra` are preserved. A request that needs no change is forwarded as the same
    object.

    Args:
        cfg, settings: The keys of `MultimodalConfig`.
        host: The host used to look up parsers. If None, the default host is used.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = "multimodal"
    config_class = MultimodalConfig
    config: MultimodalConfig
    phase: ClassVar[Phase] = "input"
    after: ClassVar[tuple[str, ...]] = ("language",)

    def __init__(
        self,
        cfg: MultimodalConfig | Mapping[str, object] | None = None,
        *,
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._host = host
        self._reader: FileReader | None = None

    def __repr__(self) -> str:
        return f"<Multimodal unsupported={self.config.unsupported!r}>"

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Read the attached files, then forward the prepared request."""
        if request.files == "name":
            return call_next(self.prepare(request))
        if request.files == "read" and self.config.unsupported == "note":
            request = replace(request, files="read_if_possible")
        if not request.itemized:  # as in most conversations
            return call_next(request)
        return read_files_before(lambda read: call_next(self.prepare(read)), self._parse, keep_unread=True)(request)

    async def _parse(self, file: AttachedFile) -> str:
        if self._reader is None:
            from jackfield_multimodal.reading import FileReader  # few conversations have files

            self._reader = FileReader(self._host)
        return await self._reader.read(file)

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Return the request with notes and mentions added."""
        if not any(_has_more_than_text(message) for message in request.itemized):
            return request
        rules = self._rules(request)
        messages = tuple(
            _rewritten(message, rules) if _has_more_than_text(message) else message for message in request.messages
        )
        if all(now is before for now, before in zip(messages, request.messages, strict=True)):
            return request
        return replace(request, messages=messages)

    def _rules(self, request: ChatRequest) -> _Rules:
        facts = request.facts
        takes: dict[ItemKind, bool] = {
            "image": facts.images,
            "audio": facts.audio,
            "video": facts.video,
            "file": facts.files and request.files != "name",
        }
        missing = frozenset(kind for kind, taken in takes.items() if not taken)
        return _Rules(
            left_out=missing if self.config.unsupported == "note" else missing & _FILES,
            listed=frozenset(takes) if request.functions else missing,
            lang=request.lang,
        )


@dataclass(frozen=True, slots=True)
class _Rules:
    """Which kinds of items a note lists, and which are removed from their message."""

    left_out: frozenset[ItemKind]
    listed: frozenset[ItemKind]
    lang: Lang


def _has_more_than_text(message: Message) -> bool:
    content = message.content
    return not isinstance(content, str) and any(item.text is None for item in content)


def _rewritten(message: Message, rules: _Rules) -> Message:
    """Return the message with mentions added and unsupported items removed, or the same message if nothing changes."""
    before = message.items
    items = (_with_note if message.role in (SYSTEM, USER) else _with_mentions)(before, rules)
    if items == before:
        return message
    return message.replace(content=items[0].text if len(items) == 1 and items[0].text is not None else items)


def _with_note(before: Sequence[ContentItem], rules: _Rules) -> list[ContentItem]:
    """Return the items of a system or user message, starting with a note about items not yet mentioned."""
    new = _new_in(before, rules)
    items = [item for item in before if item.type not in rules.left_out]
    return _with_text_first(note([mention(item, rules.lang) for item in new], rules.lang), items) if new else items


def _new_in(items: Sequence[ContentItem], rules: _Rules) -> list[ContentItem]:
    """Return the items to list that are not yet mentioned."""
    listed = [item for item in items if item.type in rules.listed]
    texts = [item.text for item in items if item.text is not None]
    return [item for item in listed if not is_mentioned(item, texts)]


def _with_mentions(before: Sequence[ContentItem], rules: _Rules) -> list[ContentItem]:
    """Return the items of a model or tool message, with mentions in place of removed ones."""
    return [ContentItem(text=mention(item, rules.lang)) if item.type in rules.left_out else item for item in before]


def _with_text_first(text: str, items: Sequence[ContentItem]) -> list[ContentItem]:
    if items and items[0].text is not None:
        return [ContentItem(text=text + items[0].text), *items[1:]]
    return [ContentItem(text=text.rstrip()), *items]
