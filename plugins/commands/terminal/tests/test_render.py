"""Events as people read them."""

from __future__ import annotations

import io

from jackfield.events import HandedOff, RunEvent, TextDelta, ToolStarted
from jackfield.messages import FunctionCall
from jackfield_terminal.render import Renderer


def test_an_answer_in_a_pipe_has_no_orders_either() -> None:
    out = io.StringIO()
    renderer = Renderer(out, io.StringIO(), colour=False)
    for char in "\x1b[31mred":
        renderer.show(RunEvent("r", 1, "a", 0, TextDelta(char)))
    assert out.getvalue() == "\\x1b[31mred"


def test_what_agents_below_do_is_noted_with_their_name_and_is_not_the_answer() -> None:
    out, notes = io.StringIO(), io.StringIO()
    renderer = Renderer(out, notes, colour=False)
    renderer.show(RunEvent("r", 1, "boss", 0, TextDelta("mine")))
    renderer.show(RunEvent("s", 1, "helper", 1, TextDelta("not mine")))
    renderer.show(RunEvent("s", 2, "helper", 1, ToolStarted(0, "c", FunctionCall("add", "{}"))))
    renderer.show(RunEvent("r", 2, "other", 0, HandedOff("boss", "other")))
    assert out.getvalue() == "mine\n"
    assert notes.getvalue() == "  helper → add {}\n→ other has the conversation\n"
