"""Measure the CPU time of a long call that arrives in many small pieces, for each format.

Run it with `python benchmarks/long_call.py`; it prints milliseconds, the best of several runs.
"""

from __future__ import annotations

import itertools
import json
import time

from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.messages import FunctionCall, Message
from jackfield.models import fold
from jackfield.processors import CallFormat
from jackfield.request import ChatRequest
from jackfield_call_formats.nous import NousFormat
from jackfield_call_formats.qwen import QwenFormat
from jackfield_call_formats.qwen3_coder import Qwen3CoderFormat
from jackfield_call_formats.react import ReActFormat

SIZE, PIECES, RUNS = 4096, 1400, 20
FUNCTION = {"name": "write", "description": "Writes.", "parameters": {"properties": {"text": {"type": "string"}}}}


def main() -> None:
    """Print a line for each format."""
    for call_format in (NousFormat(), QwenFormat(), Qwen3CoderFormat(), ReActFormat()):
        events = _events(call_format)
        best = min(_milliseconds(call_format, events) for _ in range(RUNS))
        print(f"{call_format.name:12} {len(events)} events  {best:6.2f} ms CPU")  # noqa: T201


def _events(call_format: CallFormat) -> list[ModelEvent]:
    arguments = json.dumps({"text": ('a line of "words" \\ and a bit more\n' * SIZE)[: SIZE - 400]})
    call = Message("assistant", "", function_call=FunctionCall("write", arguments))
    written = call_format.render(_request(Message("user", "Go."), call)).messages[-1].get_text_content()
    edges = [len(written) * number // PIECES for number in range(PIECES + 1)]
    pieces = [written[start:end] for start, end in itertools.pairwise(edges)]
    return [*map(TextDelta, pieces), ModelFinished("stop")]


def _request(*messages: Message) -> ChatRequest:
    return ChatRequest("m", messages, (FUNCTION,))


def _milliseconds(call_format: CallFormat, events: list[ModelEvent]) -> float:
    began = time.process_time()
    reader = call_format.reader(_request())
    answer = fold(out for event in events for out in reader.feed(event))
    took = (time.process_time() - began) * 1000
    if len(answer.get_function_calls()) != 1:
        raise SystemExit(f"{call_format.name} has not read the call")
    return took


if __name__ == "__main__":
    main()
