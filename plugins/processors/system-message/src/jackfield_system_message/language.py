"""Processor that sets the language of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from jackfield.config import Lang
from jackfield.messages import SYSTEM, USER, Message, with_system_text
from jackfield.processors import Phase, Preprocessor
from jackfield.request import ChatRequest
from jackfield_system_message.answer_language import AS_THE_USER, IN_THIS_LANGUAGE
from jackfield_system_message.detection import language_of_most, language_of_text
from jackfield_system_message.language_config import LanguageConfig


class Language(Preprocessor):
    """Sets the language of text that Jackfield adds (`request.lang`), and optionally asks for answers in it.

    `generate_cfg.lang` takes precedence, then the setting, then the user's language. If the user's message has no
    words, the language stays the same. A request that needs no change is forwarded as the same object.

    Args:
        cfg, settings: The keys of `LanguageConfig`.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = "language"
    config_class = LanguageConfig
    config: LanguageConfig
    phase: ClassVar[Phase] = "input"
    before: ClassVar[tuple[str, ...]] = ("multimodal",)

    def __repr__(self) -> str:
        return f"<Language lang={self.config.lang!r} look_at={self.config.look_at!r}>"

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Return the request with its language set."""
        found = self.config.lang or self._found(request.messages)
        lang = request.config.lang or found or request.lang
        messages = self._instructed(request.messages, found)
        if lang == request.lang and messages is request.messages:
            return request
        return replace(request, lang=lang, messages=messages)

    def _instructed(self, messages: tuple[Message, ...], found: Lang | None) -> tuple[Message, ...]:
        """Add the answer language to the system message, if the settings ask for it."""
        if not self.config.instruct:
            return messages
        # Not `generate_cfg.lang`, which only applies to Jackfield's own texts.
        answer_in = self.config.lang or ("zh" if found == "zh" else None)
        return _asking(messages, IN_THIS_LANGUAGE[answer_in] if answer_in else AS_THE_USER)

    def _found(self, messages: Sequence[Message]) -> Lang | None:
        # Not the system message, because agents put documents into it.
        said = (message.get_text_content() for message in reversed(messages) if message.role == USER)
        if self.config.look_at == "all":
            return language_of_most(list(said)[::-1])
        return next(filter(None, map(language_of_text, said)), None)


def _asking(messages: tuple[Message, ...], sentence: str) -> tuple[Message, ...]:
    """Add a sentence to the system message, unless it already contains the sentence."""
    if any(sentence in message.get_text_content() for message in messages if message.role == SYSTEM):
        return messages
    return with_system_text(messages, sentence, first=False)
