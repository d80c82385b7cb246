"""Build the events of a streamed response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jackfield_openai_server.items import AnswerEnded, Began, CallItem, Change, Ended, Grew, TextItem
from jackfield_openai_server.response_object import ResponseHead, item_id, item_object, response_object, text_part

Event = dict[str, Any]


class ResponseStream:
    """Converts changes to an answer into the events of a response.

    An event's sequence number is its position in the response, where text counts one position per character. The number
    does not depend on how the text was split into deltas, so a client can resume after any number, in any process.

    Args:
        head: The response.
        after: The number of the last event the client has received, or -1 if none.

    Attributes:
        output: The complete items.
        final: The complete response once it has ended, otherwise None.
    """

    def __init__(self, head: ResponseHead, *, after: int = -1) -> None:
        self.output: list[dict[str, Any]] = []
        self.final: dict[str, Any] | None = None
        self._head = head
        self._after = after
        self._position = 0

    def begin(self) -> Iterator[Event]:
        """Yield the initial events."""
        for name in ("response.created", "response.in_progress"):
            yield from self._event(name, response=response_object(self._head, status="in_progress"))

    def feed(self, change: Change) -> Iterator[Event]:
        """Yield the events for a change, except those the client already has."""
        match change:
            case Began(item):
                yield from self._begin_text(item)
            case Grew(item, piece):
                yield from self._grow(item, piece)
            case Ended(TextItem() as item):
                yield from self._end_text(item)
            case Ended(CallItem() as item):
                yield from self._show_call(item)
            case AnswerEnded():
                self.final = response_object(self._head, status="completed", output=self.output, end=change)
                status = self.final["status"]
                # There is no event for a cancelled response, so it ends as incomplete and contains its status.
                name = "incomplete" if status == "cancelled" else status
                yield from self._event(f"response.{name}", response=self.final)

    def fail(self, error: Mapping[str, Any]) -> Event:
        """Return the event for a server error."""
        return {
            "type": "error",
            "sequence_number": self._position,
            "code": error["code"],
            "message": error["message"],
            "param": error["param"],
            "error": dict(error),
        }

    def _event(self, kind: str, /, **fields: Any) -> Iterator[Event]:
        number = self._position
        self._position += 1
        if number > self._after:
            yield {"type": kind, "sequence_number": number, **fields}

    def _place(self, item: TextItem | CallItem) -> dict[str, Any]:
        return {"item_id": item_id(self._head, item), "output_index": item.index}

    def _begin_text(self, item: TextItem) -> Iterator[Event]:
        added = item_object(self._head, item, status="in_progress")
        yield from self._event("response.output_item.added", output_index=item.index, item=added)
        place = self._place(item)
        if item.kind == "reasoning":
            part: dict[str, Any] = {"type": "summary_text", "text": ""}
            yield from self._event("response.reasoning_summary_part.added", **place, summary_index=0, part=part)
        else:
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            yield from self._event("response.content_part.added", **place, content_index=0, part=part)

    def _grow(self, item: TextItem, piece: str) -> Iterator[Event]:
        first = self._position
        self._position += len(piece)
        last = self._position - 1
        if last <= self._after:
            return
        delta = piece[max(0, self._after + 1 - first) :]
        fields: dict[str, Any] = {"sequence_number": last, **self._place(item), "delta": delta}
        if item.kind == "reasoning":
            yield {"type": "response.reasoning_summary_text.delta", **fields, "summary_index": 0}
        else:
            yield {"type": "response.output_text.delta", **fields, "content_index": 0, "logprobs": []}

    def _end_text(self, item: TextItem) -> Iterator[Event]:
        place = self._place(item)
        if item.kind == "reasoning":
            part = {"type": "summary_text", "text": item.text}
            yield from self._event("response.reasoning_summary_text.done", **place, summary_index=0, text=item.text)
            yield from self._event("response.reasoning_summary_part.done", **place, summary_index=0, part=part)
        else:
            part = text_part(item)
            for index, annotation in enumerate(part["annotations"]):
                yield from self._event(
                    "response.output_text.annotation.added",
                    **place,
                    content_index=0,
                    annotation_index=index,
                    annotation=annotation,
                )
            yield from self._event("response.output_text.done", **place, content_index=0, text=item.text, logprobs=[])
            yield from self._event("response.content_part.done", **place, content_index=0, part=part)
        yield from self._end(item)

    def _show_call(self, item: CallItem) -> Iterator[Event]:
        added = item_object(self._head, item, status="in_progress")
        yield from self._event("response.output_item.added", output_index=item.index, item=added)
        if item.is_of_client:
            place, arguments = self._place(item), item.call.arguments
            yield from self._event("response.function_call_arguments.delta", **place, delta=arguments)
            yield from self._event(
                "response.function_call_arguments.done", **place, name=item.call.name, arguments=arguments
            )
        yield from self._end(item)

    def _end(self, item: TextItem | CallItem) -> Iterator[Event]:
        done = item_object(self._head, item)
        self.output.append(done)
        yield from self._event("response.output_item.done", output_index=item.index, item=done)
