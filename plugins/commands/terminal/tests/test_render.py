"""Events as people read them."""

from __future__ import annotations

import io
import threading
from typing import get_args

import pytest

from jackfield.cli import width_of
from jackfield.events import (
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    PluginEvent,
    ReasoningDelta,
    RetryScheduled,
    RunEvent,
    RunFinished,
    StopReason,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Message, Usage
from jackfield_terminal.render import Renderer


def test_an_answer_in_a_pipe_has_no_orders_either() -> None:
    out = io.StringIO()
    renderer = Renderer(out, io.StringIO(), dim=False)
    for char in "\x1b[31mred":
        renderer.show(RunEvent("r", 1, "a", 0, TextDelta(char)))
    assert out.getvalue() == "\\x1b[31mred"


def test_what_agents_below_do_is_noted_with_their_name_and_is_not_the_answer() -> None:
    out, notes = io.StringIO(), io.StringIO()
    renderer = Renderer(out, notes, dim=False)
    renderer.show(RunEvent("r", 1, "boss", 0, TextDelta("mine")))
    renderer.show(RunEvent("s", 1, "helper", 1, TextDelta("not mine")))
    renderer.show(RunEvent("s", 2, "helper", 1, ToolStarted(0, "c", FunctionCall("add", "{}"))))
    renderer.show(RunEvent("r", 2, "other", 0, HandedOff("boss", "other")))
    assert out.getvalue() == "mine\n"
    assert notes.getvalue() == "  helper → add {}\n→ other takes over\n"


def test_a_question_about_a_call_waits_until_the_events_before_it_are_shown() -> None:
    notes = io.StringIO()
    renderer = Renderer(io.StringIO(), notes, dim=False)
    asked = threading.Event()

    def ask() -> None:
        renderer.make_room("call_2")
        notes.write("Allow it?")
        asked.set()

    thread = threading.Thread(target=ask)
    thread.start()
    renderer.show(RunEvent("r", 1, "a", 0, ToolStarted(0, "call_1", CALL)))
    assert not asked.is_set()
    calling = Message("assistant", "", function_call=CALL, extra={"function_id": "call_2"})
    renderer.show(RunEvent("r", 2, "a", 0, TurnFinished(1, (calling,), Usage())))
    thread.join()
    assert notes.getvalue() == "→ add {}\nAllow it?"


CALL = FunctionCall("add", "{}")
METADATA = {"isolation": "none: a test", "note": "it leaks"}
EVENTS = [
    ReasoningDelta("because"),
    TextDelta("yes"),
    ToolStarted(0, "c", CALL),
    ToolProgress(0, "c", "half"),
    ToolFinished(0, "c", Message("function", "3", name="add"), 0.5, "", METADATA),
    RetryScheduled(1, 0.5, "busy"),
    StreamReset("again"),
    HistoryTrimmed(1, 0, 9, 5),
    PluginEvent("acme.note", {"note": "look out"}),
    ApprovalNeeded((CALL,), ("c",)),
    HandedOff("boss", "other"),
    *(RunFinished(reason, (), Usage()) for reason in get_args(StopReason)),
]


def shown(events: list[RunEvent], *, quiet: bool) -> tuple[str, list[str]]:
    out, notes = io.StringIO(), io.StringIO()
    renderer = Renderer(out, notes, dim=False, quiet=quiet)
    for event in events:
        renderer.show(event)
    renderer.note("by the way")
    renderer.note("saved a.png", always=True)
    renderer.note_once("! skipped b.txt")
    return out.getvalue(), notes.getvalue().splitlines()


@pytest.mark.parametrize("depth", [0, 1])
def test_quiet_shows_the_answer_files_and_warnings_and_nothing_else(depth: int) -> None:
    events = [RunEvent("r", number, "helper", depth, event) for number, event in enumerate(EVENTS)]
    answer, lines = shown(events, quiet=False)
    quiet_answer, quiet_lines = shown(events, quiet=True)
    assert quiet_answer == answer
    assert quiet_lines == [line for line in lines if line.startswith(("!", "saved "))]
    assert 5 < len(quiet_lines) < len(lines)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_note_and_no_reasoning_breaks_a_line_inside_a_word(columns: int) -> None:
    notes = io.StringIO()
    renderer = Renderer(io.StringIO(), notes, dim=False, columns=lambda: columns)
    sources = "sources: the handbook of the harbour.pdf, page 3; 潮汐与航行手册和港口规定汇编.pdf; another.docx"
    thought = "First, consider the extraordinarily long explanation of the tides, 然后考虑中文的潮汐解释和jackfield。"
    for char in thought:
        renderer.show(RunEvent("r", 1, "a", 0, ReasoningDelta(char)))
    renderer.note(sources)
    lines = notes.getvalue().splitlines()
    assert max(map(width_of, lines)) <= columns
    assert "".join("".join(lines).split()) == "".join((thought + sources).split())
    shown_words = " ".join(lines).split()
    assert [word for word in (thought + "\n" + sources).split() if word.isascii() and word not in shown_words] == []
