"""Lines typed in a chat: edited and remembered in a terminal, read unchanged elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from jackfield.privatefiles import open_private, write_private

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output

PROMPT = "> "
HISTORY_FILE = "chat-history"
_MOST_KEPT = 2000  # messages


class Lines(Protocol):
    """Where messages come from, one at a time."""

    def read(self) -> str:
        """The next message, of one line or several.

        Raises:
            EOFError: The input has ended.
            KeyboardInterrupt: Ctrl-C was pressed on an empty line.
        """
        ...


class PlainLines:
    """One line after another: from a pipe, a file, or a basic terminal."""

    def read(self) -> str:
        """As `Lines`."""
        try:
            return input(PROMPT)
        except EOFError:
            print()
            raise


class EditedLines:
    """Lines with an editor and a history, in a terminal.

    A paste of several lines is one message. Enter sends, Alt-Enter begins a line, Ctrl-R searches the history, Ctrl-X
    Ctrl-E opens `$EDITOR`. Ctrl-C clears what is typed.

    Args:
        screen: The terminal, as it is.
        words: What Tab completes at the beginning of a line.
        history_file: Where lines are kept; None for nowhere.
    """

    def __init__(self, screen: TextIO, *, words: Sequence[str], history_file: Path | None) -> None:
        # Only here: nobody else needs it.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import InMemoryHistory
        from prompt_toolkit.shortcuts import CompleteStyle

        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            history=_file_history(history_file) if history_file else InMemoryHistory(),
            completer=WordCompleter(list(words), sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            enable_open_in_editor=True,
            key_bindings=_keys(),
            output=_output(screen),
            # Lines of a message after its first stand under it.
            prompt_continuation=" " * len(PROMPT),
        )

    def read(self) -> str:
        """As `Lines`."""
        return self._session.prompt()


def open_lines(screen: TextIO, *, words: Sequence[str]) -> tuple[Lines, str]:
    """The best way to read lines here, and a note about it to print, '' for none.

    Args:
        screen: Standard output, as it is.
        words: As for `EditedLines`.
    """
    if not _can_edit(screen):
        return PlainLines(), ""
    try:
        file, problem = private_file(history_path()), ""
    except OSError as error:
        file, problem = None, f"the history of this chat will not be saved: {history_path()}: {error.strerror or error}"
    return EditedLines(screen, words=words, history_file=file), problem


def _can_edit(screen: TextIO) -> bool:
    """Whether somebody types at a terminal that can do more than print."""
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    return is_typed and screen.isatty() and os.environ.get("TERM") != "dumb"


def history_path() -> Path:
    """Where lines are kept: below `$XDG_STATE_HOME`, or `~/.local/state`."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "jackfield" / HISTORY_FILE


def private_file(path: Path) -> Path:
    """A file that only its owner can read, created if it does not exist.

    Raises:
        OSError: It cannot be created or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Through no link: what somebody types may be private, and must not end up elsewhere.
    os.close(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    return path


def _file_history(path: Path) -> History:
    from prompt_toolkit.history import FileHistory

    _shorten(path)
    return FileHistory(str(path))


def _shorten(path: Path) -> None:
    """Forget the oldest messages, so that a start never takes long. Each begins with an empty line and a date."""
    entries = path.read_bytes().split(b"\n\n# ")
    if len(entries) > 2 * _MOST_KEPT:
        write_private(path, b"\n# " + b"\n\n# ".join(entries[-_MOST_KEPT:]))


def _output(screen: TextIO) -> Output:
    from prompt_toolkit.output import create_output
    from prompt_toolkit.output.vt100 import Vt100_Output

    if os.name != "posix":
        return create_output(screen)
    # It asks the terminal where the cursor is, to place menus; there are none, and not every terminal answers.
    output = Vt100_Output.from_pty(screen, term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output


def _keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("c-c")
    def _clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
