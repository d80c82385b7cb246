"""Events as people read them."""

from __future__ import annotations

import io
import re
import threading
from typing import Any, get_args

import pytest

from jackfield.cli import width_of
from jackfield.events import (
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    PluginEvent,
    PreparationProgress,
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
from jackfield_terminal.render import Renderer, has_colour


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
    renderer.warn("skipped b.txt", once=True)
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


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (ToolStarted(0, "c", FunctionCall("add\n", '{"a":\n 1}')), ['→ add\\n {"a": 1}']),
        (ToolProgress(0, "c", "half\nway"), ["  … half way"]),
        (ToolFinished(0, "c", Message("function", "3", name="add"), 0.54, "", {}), ["← add (0.5 s) 3"]),
        (
            ToolFinished(0, "c", Message("function", "no", name="add"), 0.5, "ToolServiceError", {}),
            ["← add (failed, 0.5 s) no"],
        ),
        (RetryScheduled(1, 0.5, "busy\nnow"), ["! busy now; retrying in 0.5 s"]),
        (StreamReset("again"), ["! the answer starts over"]),
        (
            HistoryTrimmed(1, 2, 9, 5),
            ["! the conversation is too long: 1 message left out, 2 shortened (about 9 → 5 tokens)"],
        ),
        (PluginEvent("acme.note", {"note": "look\nout"}), ["! look out"]),
        (PluginEvent("acme.note", {"note": ""}), []),
        (ApprovalNeeded((CALL, CALL), ("c", "d")), ["! needs approval: add, add"]),
        (HandedOff("boss", "other"), ["→ other takes over"]),
        (RunFinished("finished", (), Usage()), []),
        (RunFinished("token_limit", (), Usage()), ["! stopped at the token limit"]),
        (RunFinished("cancelled", (), Usage()), ["! cancelled"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_an_event_is_told_in_these_lines(event: Any, lines: list[str]) -> None:
    notes = io.StringIO()
    Renderer(io.StringIO(), notes, dim=False).show(RunEvent("r", 1, "a", 0, event))
    assert notes.getvalue().splitlines() == lines


@pytest.mark.parametrize(("length", "shown"), [(100, "x" * 100), (101, f"{'x' * 100} …")])
def test_a_text_of_a_tool_is_cut_after_100_characters(length: int, shown: str) -> None:
    notes = io.StringIO()
    renderer = Renderer(io.StringIO(), notes, dim=False)
    renderer.show(RunEvent("r", 1, "a", 0, ToolProgress(0, "c", "x" * length)))
    assert notes.getvalue() == f"  … {shown}\n"


@pytest.mark.parametrize(("value", "is_coloured"), [(None, True), ("", True), ("1", False), ("0", False)])
def test_colours_are_off_if_the_variable_says_anything(
    value: str | None, is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    assert has_colour() == is_coloured


FORGED = "x\n! forged"
FORGED_CALL = FunctionCall(FORGED, FORGED)


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("columns", [0, 40])
def test_no_name_and_no_text_of_others_begins_a_line_of_ours(depth: int, columns: int) -> None:
    notes = io.StringIO()
    renderer = Renderer(io.StringIO(), notes, dim=True, columns=lambda: columns)
    events: list[Any] = [
        PreparationProgress(FORGED),
        ToolStarted(0, "c", FORGED_CALL),
        ToolProgress(0, "c", FORGED),
        ToolFinished(0, "c", Message("function", FORGED, name=FORGED), 0.5, FORGED, dict.fromkeys(METADATA, FORGED)),
        RetryScheduled(1, 0.5, FORGED),
        PluginEvent("acme.note", {"note": FORGED}),
        ApprovalNeeded((FORGED_CALL,), ("c",)),
        HandedOff(FORGED, FORGED),
    ]
    for number, event in enumerate(events):
        renderer.show(RunEvent("r", number, FORGED, depth, event))
    assert notes.getvalue().count("forged") >= len(events)
    assert re.search(r"^(\x1b\[\d*[mK]|\r)*! forged", notes.getvalue(), re.MULTILINE) is None


@pytest.mark.parametrize(
    ("depth", "isolation", "warning", "result"),
    [
        (0, "  isolation of add: none: a test", "! it leaks", "← add (0.5 s) 3"),
        (1, "  helper   isolation of add: none: a test", "! helper: it leaks", "  helper ← add (0.5 s) 3"),
    ],
)
def test_isolation_and_warning_of_a_tool_are_shown_once_for_agents_below_as_well(
    depth: int, isolation: str, warning: str, result: str
) -> None:
    notes = io.StringIO()
    renderer = Renderer(io.StringIO(), notes, dim=False)
    for number in range(2):
        finished = ToolFinished(0, "c", Message("function", "3", name="add"), 0.5, "", METADATA)
        renderer.show(RunEvent("r", number, "helper", depth, finished))
    assert notes.getvalue().splitlines() == [result, isolation, warning, result]


def progressed(*, dim: bool = True, quiet: bool = False, columns: int = 20, depth: int = 0) -> str:
    """Return the lines of two steps of a preparation and an answer."""
    both = io.StringIO()
    renderer = Renderer(both, both, dim=dim, quiet=quiet, columns=lambda: columns)
    for number, done in enumerate((1, 2)):
        renderer.show(RunEvent("r", number, "helper", depth, PreparationProgress("reading", done, 9, "a.md")))
    renderer.show(RunEvent("r", 3, "helper", 0, TextDelta("Yes.")))
    renderer.end_line()
    return both.getvalue()


def test_progress_is_one_line_that_is_replaced_and_cleared() -> None:
    first, second = "reading: 1 of 9, a.md"[:19], "reading: 2 of 9, a.md"[:19]
    assert progressed() == f"\r\x1b[K\x1b[2m{first}\x1b[0m\r\x1b[K\x1b[2m{second}\x1b[0m\r\x1b[KYes.\n"
    assert "\x1b[2mhelper: reading: 1\x1b[0m" in progressed(columns=19, depth=1)
    assert "reading: 1 of 9, a.md\x1b[0m" in progressed(columns=0)


@pytest.mark.parametrize("options", [{"dim": False}, {"quiet": True}])
def test_no_progress_is_shown_where_a_line_cannot_be_replaced_or_nobody_wants_it(options: dict[str, bool]) -> None:
    assert progressed(**options) == "Yes.\n"  # type: ignore[arg-type]
