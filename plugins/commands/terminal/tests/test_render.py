"""Events as people read them."""

from __future__ import annotations

import io

from jackfield.events import RunEvent, TextDelta
from jackfield_terminal.render import Renderer


def test_an_answer_in_a_pipe_has_no_orders_either() -> None:
    out = io.StringIO()
    renderer = Renderer(out, io.StringIO(), colour=False)
    for char in "\x1b[31mred":
        renderer.show(RunEvent("r", 1, "a", 0, TextDelta(char)))
    assert out.getvalue() == "\\x1b[31mred"
