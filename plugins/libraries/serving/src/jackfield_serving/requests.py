"""Requests and answers in recorded form, so that any process can continue a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jackfield.errors import ConfigError
from jackfield.events import PluginEvent
from jackfield.messages import FunctionCall, Message
from jackfield.tools import Decision, Denial, FunctionSchema

PREFIX = "jackfield-serving."
ANSWERS = f"{PREFIX}answers"
Answer: TypeAlias = Any
"""The answer to a call: a decision for an approval; for a client's tool, its result as a text or any JSON value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, apart from its messages.

    Attributes:
        config: Model options, as JSON.
        output: The answer's JSON Schema, or None for text.
        client_tools: The schemas of tools that run on the client.
        continues: The run whose conversation precedes the messages, or ''.
        takes_questions: True if the client answers questions raised by running calls.
        model: The model chosen by a person from those offered, or '' for the agent's own.
        call: A tool call that the run makes instead of asking its model, or None for a question.
    """

    config: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None
    client_tools: Sequence[FunctionSchema] = ()
    continues: str = ""
    takes_questions: bool = False
    model: str = ""
    call: FunctionCall | None = None

    def as_facts(self) -> dict[str, Any]:
        """Return the request as JSON metadata for the record.

        Raises:
            ConfigError: A part of the request cannot be represented in JSON.
        """
        fields = {
            "config": self.config and dict(self.config),
            "output": self.output and dict(self.output),
            "client_tools": [dict(schema) for schema in self.client_tools],
            "continues": self.continues,
            "takes_questions": self.takes_questions,
            "model": self.model,
            "call": self.call and {"name": self.call.name, "arguments": self.call.arguments},
        }
        parts = {name: value for name, value in fields.items() if value}
        return _as_json(parts, "config, output and client_tools in a request") if parts else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers to the calls that a run waits for.

    Attributes:
        approvals: Decisions, by call id.
        results: Client tool results, by call id.
        messages: A person's messages, with which the run starts again.
    """

    approvals: Mapping[str, Decision] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()

    def as_note(self) -> PluginEvent:
        """Return the answers, apart from messages, as an event for the record.

        Raises:
            ConfigError: A result cannot be represented in JSON.
        """
        # Reasons have a key of their own: secrets in the texts of `approvals` would not be hidden.
        fields = {
            "approvals": {call_id: decision is True for call_id, decision in self.approvals.items()},
            "reasons": {
                call_id: decision.reason for call_id, decision in self.approvals.items() if isinstance(decision, Denial)
            },
            "results": dict(self.results),
        }
        return PluginEvent(ANSWERS, _as_json(fields, "results of client tools"))


def request_of(facts: Mapping[str, Any] | None) -> Request | None:
    """Return the request in a run's metadata, or None if the run was not started by a service."""
    if facts is None:
        return None
    return Request(
        config=facts.get("config"),
        output=facts.get("output"),
        client_tools=tuple(facts.get("client_tools", ())),
        continues=str(facts.get("continues", "")),
        takes_questions=facts.get("takes_questions") is True,
        model=str(facts.get("model", "")),
        call=None if (call := facts.get("call")) is None else FunctionCall(call["name"], call["arguments"]),
    )


def is_internal(event: object) -> bool:
    """Return True for events that only the service reads."""
    return isinstance(event, PluginEvent) and event.name.startswith(PREFIX)


def size_of(messages: Sequence[Message]) -> int:
    """Return the messages' size as JSON, in bytes."""
    return sum(len(_message_as_json(message).encode("utf-8", "replace")) for message in messages)


def _message_as_json(message: Message) -> str:
    try:
        return message.model_dump_json(exclude_defaults=True)
    except ValueError:  # a lone surrogate, which UTF-8 cannot encode, or an object in `extra`
        return json.dumps(message.model_dump(exclude_defaults=True), default=repr, ensure_ascii=False)


def _as_json(fields: Mapping[str, Any], what: str) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(fields))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{what} must be JSON-serializable to be stored in the record: {error}") from None
    return plain
