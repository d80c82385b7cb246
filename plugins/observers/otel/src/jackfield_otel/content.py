"""Format the texts of runs by the semantic conventions, only if requested and with secrets hidden."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, get_args

from jackfield.messages import FUNCTION, SYSTEM, ContentItem, Message
from jackfield.request import FunctionSchema
from jackfield.secrets import Secrets, hide_in_addresses, secrets_of
from jackfield_otel.config import CONTENT_VARIABLE, ContentMode

Json: TypeAlias = dict[str, Any]
_log = logging.getLogger("jackfield.otel")


def content_mode(setting: ContentMode | None) -> ContentMode:
    """Return the mode from the setting or the environment.

    If the environment variable has an unknown value, no content is included.
    """
    if setting is not None:
        return setting
    value = os.environ.get(CONTENT_VARIABLE, "").strip().upper()
    for mode in get_args(ContentMode):
        if mode == value:
            return mode  # type: ignore[no-any-return]
    if value:
        _log.warning("%s=%r is not one of %s: no content is written", CONTENT_VARIABLE, value, get_args(ContentMode))
    return "NO_CONTENT"


class Content:
    """Formats texts for spans and events, if the mode allows them.

    Args:
        mode: The destination for texts.

    Attributes:
        on_spans, on_events: True if texts go there.
    """

    def __init__(self, mode: ContentMode) -> None:
        self.on_spans = mode in ("SPAN_ONLY", "SPAN_AND_EVENT")
        self.on_events = mode in ("EVENT_ONLY", "SPAN_AND_EVENT")
        self._secrets: Secrets | None = None
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return self.on_spans or self.on_events

    def include_secrets(self, agent: object) -> None:
        """Collect the secrets of the agent, the environment and the user's settings."""
        with self._lock:
            if self._secrets is None:
                host = getattr(agent, "host", None)
                self._secrets = secrets_of(settings=getattr(host, "settings", None))
            self._secrets.include(agent)

    def text(self, text: str) -> str:
        """Return a text with secrets hidden."""
        with self._lock:
            if self._secrets is None:
                self._secrets = secrets_of()
            hidden = self._secrets.hide(text)
        # A lone surrogate cannot be exported, and would make the whole batch fail.
        return hide_in_addresses(hidden).encode("utf-8", "backslashreplace").decode()

    def instructions(self, messages: Sequence[Message]) -> list[Json]:
        """Return the system messages as parts."""
        return [part for message in messages if message.role == SYSTEM for part in self._parts(message)]

    def input(self, messages: Sequence[Message]) -> list[Json]:
        """Return the messages sent to a model or an agent, without system messages."""
        return [self._message(message) for message in messages if message.role != SYSTEM]

    def output(self, messages: Sequence[Message], finish_reason: str) -> list[Json]:
        """Return an answer as one message that includes all its texts and calls, or [] if it is empty."""
        answers = [message for message in messages if message.role != FUNCTION]
        parts = [part for message in answers for part in self._parts(message)]
        return [{"role": "assistant", "parts": parts, "finish_reason": finish_reason}] if parts else []

    def definitions(self, functions: Sequence[FunctionSchema]) -> list[Json]:
        """Return the definitions of the tools that a model may call."""
        return [{"type": "function", **self._value(dict(function))} for function in functions]

    def _message(self, message: Message) -> Json:
        role = "tool" if message.role == FUNCTION else message.role
        return {"role": role, "parts": self._parts(message)}

    def _parts(self, message: Message) -> list[Json]:
        if message.role == FUNCTION:
            text = self.text(message.get_text_content())
            return [{"type": "tool_call_response", "id": message.function_id or "", "response": text}]
        parts: list[Json] = []
        if reasoning := message.reasoning_content:
            texts = [reasoning] if isinstance(reasoning, str) else [item.text for item in reasoning if item.text]
            parts += [{"type": "reasoning", "content": self.text(text)} for text in texts]
        parts += [self._item(item) for item in message.items if item.text != ""]
        if call := message.function_call:
            arguments = self.text(call.arguments)
            parts.append(
                {"type": "tool_call", "id": message.function_id or "", "name": call.name, "arguments": arguments}
            )
        return parts

    def _item(self, item: ContentItem) -> Json:
        if item.text is not None:
            return {"type": "text", "content": self.text(item.text)}
        value = item.value if isinstance(item.value, str) else ""
        if not value or value.startswith("data:"):  # it may have megabytes, which no trace needs
            return {"type": "blob", "modality": item.type, "mime_type": value[5:].partition(";")[0], "content": ""}
        return {"type": "uri", "modality": item.type, "uri": self.text(value)}

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._value(entry) for key, entry in value.items()}
        return [self._value(entry) for entry in value] if isinstance(value, list | tuple) else value


def as_attribute(value: object) -> str:
    """Serialise a value as JSON, because span attributes cannot be nested."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
