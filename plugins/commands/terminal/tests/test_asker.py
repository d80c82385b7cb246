"""Only an answer to the question on the screen allows a call."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator

import pytest

from jackfield import FunctionCall, ToolContext
from jackfield.streams import CancelToken
from jackfield_terminal.approval import Asker

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a terminal of its own")


class Screen(io.StringIO):
    """A screen at which the next answer is typed once the question is shown."""

    def __init__(self, terminal: int, answers: list[str]) -> None:
        super().__init__()
        self._terminal = terminal
        self._answers = answers

    def write(self, text: str) -> int:
        if text.startswith("Allow it?"):
            os.write(self._terminal, self._answers.pop(0).encode())
        return super().write(text)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a terminal at which a person types."""
    near, far = os.openpty()
    with os.fdopen(far) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield near
    os.close(near)


@pytest.fixture
def ask(terminal: int, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Asks about a call of a tool, and expects exactly these answers."""

    def ask(asker: Asker, tool: str, *answers: str) -> bool:
        left = list(answers)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", Screen(terminal, left))
            is_allowed = asker(FunctionCall(tool, "{}"), ToolContext())
        assert left == []
        return is_allowed

    return ask


def test_always_is_for_one_tool_and_as_long_as_its_asker(ask: Callable[..., bool]) -> None:
    asker = Asker()
    assert ask(asker, "remove", "always\n")
    assert ask(asker, "remove")
    assert not ask(asker, "pay", "n\n")
    assert not ask(Asker(), "remove", "n\n")


@pytest.mark.parametrize("answer", ["y\n", " YES \n"])
def test_yes_is_for_one_call(ask: Callable[..., bool], answer: str) -> None:
    asker = Asker()
    assert ask(asker, "remove", answer)
    assert not ask(asker, "remove", "n\n")


@pytest.mark.parametrize("unclear", ["\n", "  \n", "what\n", "yn\n", "yesno\n"])
def test_an_unclear_answer_is_asked_about_again(ask: Callable[..., bool], unclear: str) -> None:
    assert not ask(Asker(), "remove", unclear, "n\n")


def test_the_end_of_the_input_is_a_no(ask: Callable[..., bool]) -> None:
    assert not ask(Asker(), "remove", "\x04")


def test_an_answer_typed_before_the_question_does_not_count(ask: Callable[..., bool], terminal: int) -> None:
    os.write(terminal, b"y\n")
    assert not ask(Asker(), "remove", "n\n")


def test_a_cancelled_run_allows_nothing_even_if_yes_is_typed(ask: Callable[..., bool]) -> None:
    asker, cancel = Asker(), CancelToken()
    cancel.cancel()
    asker.start_run(cancel, lambda call_id: None)
    assert not ask(asker, "remove", "y\n")
