"""Only an answer to the question on the screen allows a call."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jackfield import FunctionCall, ToolContext
from jackfield.streams import CancelToken
from jackfield_terminal import approval, run
from jackfield_terminal.approval import Asker
from jackfield_terminal.conversation import Conversation
from jackfield_terminal.options import chat_parser
from jackfield_terminal.screen import Screen as RunScreen

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


@pytest.mark.parametrize("command", ["run", "chat"])
def test_what_follows_a_cancelled_question_begins_on_a_line_of_its_own(
    command: str, terminal: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that asks notices the end of the run later than the screen does; here, never."""
    monkeypatch.setattr(approval, "_POLL_S", 3600)
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    class Interrupting(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            written = super().write(text)
            if text.startswith("Allow it?"):
                os.kill(os.getpid(), signal.SIGINT)
            return written

    screen = Interrupting()
    monkeypatch.setattr(sys, "stderr", screen)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run of tests in the background ignores it
    words = ("-m", "offline:extractive", "--no-record", "-t", "storage", "--ask", "ask")
    question = 'call storage {"operate": "put", "key": "a", "value": "b"}'
    try:
        if command == "run":
            assert run.main([*words, question]) == 130
        else:
            options = chat_parser().parse_args(words)
            Conversation(options, RunScreen(options, bare=sys.stdout, notes=screen)).ask(question)
    finally:
        signal.signal(signal.SIGINT, before)
        os.write(terminal, b"n\n")  # ends the thread
    shown = screen.getvalue().partition("Allow it?")[2]
    assert shown.startswith(" y(es), n(o), a(lways for storage): \n"), shown
    assert "\n\n" not in shown
