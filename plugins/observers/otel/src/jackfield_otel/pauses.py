"""Remember the spans of unfinished runs, so that the runs that continue them can link to them."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from opentelemetry.trace import Link, SpanContext

from jackfield.messages import FunctionCall, Message
from jackfield.runs import open_calls

MAX_REMEMBERED = 10_000


class Pauses:
    """Spans by run id and by call awaiting approval. The oldest are forgotten."""

    def __init__(self) -> None:
        self._spans: OrderedDict[str, SpanContext] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, keys: Iterable[str], span: SpanContext) -> None:
        """Remember the span of a run that stopped before finishing."""
        with self._lock:
            for key in keys:
                self._spans[key] = span
                self._spans.move_to_end(key)
            while len(self._spans) > MAX_REMEMBERED:
                self._spans.popitem(last=False)

    def links_to(self, run_id: str, messages: Sequence[Message]) -> list[Link]:
        """Return a link to the span that a new run continues, or [] if that span is not known here.

        A run without a store continues under a new id, but its waiting calls identify it.
        """
        if not self._spans:
            return []
        with self._lock:
            span = self._spans.get(run_id)
        if span is None and messages and messages[-1].role != "user":
            keys = keys_of_calls((call.call_id, call.call) for call in open_calls(messages))
            with self._lock:
                span = next((self._spans[key] for key in keys if key in self._spans), None)
        return [] if span is None else [Link(span)]


def keys_of_calls(calls: Iterable[tuple[str, FunctionCall]]) -> list[str]:
    """Return keys that identify pending calls.

    Call ids alone are not enough, because some servers use the same ids in every conversation.
    """
    return [
        hashlib.sha256(f"{call_id}\0{call.name}\0{call.arguments}".encode("utf-8", "replace")).hexdigest()
        for call_id, call in calls
    ]
