"""Processor that adds text to the system message."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, tzinfo
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from jackfield.config import Lang
from jackfield.errors import ConfigError
from jackfield.messages import SYSTEM, Message, with_system_text
from jackfield.processors import Phase, Preprocessor
from jackfield.request import ChatRequest
from jackfield_system_message.answer_language import SENTENCES
from jackfield_system_message.date import date_line
from jackfield_system_message.system_message_config import SystemMessageConfig


class SystemMessage(Preprocessor):
    """Adds text to the system message, or adds a system message if there is none.

    The text is in the request's language. If the date is wanted, it follows on its own line. A request whose system
    message already contains the text is forwarded as the same object.

    Args:
        cfg, settings: The keys of `SystemMessageConfig`.
        clock: Returns the current time in seconds since 1970, UTC.

    Raises:
        ConfigError: A setting is invalid, there is nothing to add, or the system does not know the time zone.
    """

    name: ClassVar[str] = "system_message"
    config_class = SystemMessageConfig
    config: SystemMessageConfig
    phase: ClassVar[Phase] = "context"
    before: ClassVar[tuple[str, ...]] = ("truncation",)

    def __init__(
        self,
        cfg: SystemMessageConfig | Mapping[str, object] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._zone = _zone(self.config.timezone)
        self._clock = clock

    def __repr__(self) -> str:
        return f"<SystemMessage where={self.config.where!r}>"

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Return the request with the text added to its system message."""
        said = next((message for message in request.messages if message.role == SYSTEM), None)
        text = self._text(request.lang)
        if not text or (said is not None and self._is_enough(said, text)):
            return request
        # Without an earlier text, the language instruction comes last.
        messages = with_system_text(request.messages, text, first=self.config.where != "after")
        return replace(request, messages=messages)

    def _is_enough(self, said: Message, text: str) -> bool:
        """Return True if a system message needs no addition."""
        stays = self.config.where == "if_missing" and _says_something(said)
        return stays or text in said.get_text_content()

    def _text(self, lang: Lang) -> str:
        parts = [_in_language(self.config.text, lang)]
        if self.config.date:
            parts.append(date_line(self._today(), lang))
        return "\n\n".join(part for part in parts if part)

    def _today(self) -> date:
        now = datetime.fromtimestamp(self._clock(), UTC)
        return now.astimezone(self._zone).date()  # None means the local time zone


def _in_language(text: str | Mapping[Lang, str], lang: Lang) -> str:
    texts = [text] if isinstance(text, str) else [text.get(lang, ""), *text.values()]
    for candidate in texts:
        if stripped := candidate.strip():
            return stripped
    return ""


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:  # missing, a directory, or an invalid name
        raise ConfigError(
            f"system_message: timezone {name!r} was not found: use an IANA name such as Asia/Shanghai or UTC, "
            "or install the tzdata package if this machine has no time zone data"
        ) from error


def _says_something(message: Message) -> bool:
    return message.is_multimodal() or message.get_text_content().strip() not in ("", *SENTENCES)
