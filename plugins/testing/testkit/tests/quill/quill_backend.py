"""Ask models of Quill, whose protocol is its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from jackfield import ChatRequest
from jackfield.errors import ContentFilterError, ContextLengthError
from jackfield.messages import Message
from jackfield_backends.history import parts_of, text_of
from jackfield_http import KeyRule
from jackfield_http.tables import AnswerKeys, CallKeys, ErrorKeys, TableBackend, TableReader, UsageKeys

SPEAKERS = {"system": "house", "user": "guest"}
ERRORS = {"too long": ContextLengthError, "censored": ContentFilterError}
CHOICES = {"auto": "may", "none": "never", "required": "must"}


class QuillReader(TableReader):
    """Reads an answer: objects whose `is` says what they hold."""

    kind = "is"
    answers: ClassVar = {
        "title": AnswerKeys(id="page", model="pen"),
        "words": AnswerKeys(text="words"),
        "musing": AnswerKeys(reasoning="words"),
        "summons": AnswerKeys(calls=CallKeys(index="nr", id="ref", name="skill", arguments="with")),
        "end": AnswerKeys(reason="why", usage=UsageKeys("bill.read", "bill.wrote", "", "bill.known", "", "bill.mused")),
        "page": AnswerKeys(parts="lines"),  # an answer that is not streamed
    }
    reasons: ClassVar = {"rested": "stop", "dry": "length", "summons": "tool_calls", "censored": "content_filter"}
    errors = ErrorKeys("snag", message="note", code="name", classes=ERRORS)


class QuillChat(TableBackend):
    """A model of Quill."""

    backend = "quill"
    base_url = "https://api.quill.example/v1"
    path = "/pages"
    key_rule = KeyRule("QUILL_TOKEN", hosts=("api.quill.example",))
    key_header = "x-quill-token: {key}"
    answer_reader = QuillReader
    options: ClassVar = {"temperature": "dials.heat", "top_p": "dials.top", "max_tokens": "dials.ink", "stop": "until"}

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """Return the history and the tools in Quill's words."""
        body: dict[str, Any] = {"pen": request.model, "turns": turns_of(request.messages), "unfold": True}
        if request.functions:
            choice = request.config.function_choice
            body["skills"] = [dict(function) for function in request.functions]
            body["summoning"] = CHOICES.get(choice, {"skill": choice})
        return body


def turns_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the history; a call's result is a turn with the call's `ref`."""
    turns: list[dict[str, Any]] = []
    for part in parts_of(messages):
        if isinstance(part, Message):
            turns.append({"by": SPEAKERS[part.role], "words": text_of(part.content)})
            continue
        if part.messages:
            calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in part.calls]
            summons = [{"ref": call_id, "skill": name, "with": arguments} for call_id, name, arguments in calls]
            turns.append({"by": "quill", "words": part.text, "summons": summons})
        turns += [{"by": "skill", "ref": call.id, "words": call.result.text} for call in part.calls]
        turns += [{"by": "guest", "words": f"{stray.label}\n{stray.text}"} for stray in part.strays]
    return turns
