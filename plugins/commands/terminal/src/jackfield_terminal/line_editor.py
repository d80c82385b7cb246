"""Read the lines of a chat, with editing and history in a terminal, and unmodified from any other input."""

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
_MAX_ENTRIES = 2000


class Lines(Protocol):
    """A source of messages."""

    def read(self) -> str:
        """Return the next message, which may span several lines.

        Raises:
            EOFError: The input has ended.
            KeyboardInterrupt: Ctrl-C was pressed on an empty line.
        """
        ...


class PlainLines:
    """Plain lines from a pipe, a file or a basic terminal."""

    def read(self) -> str:
        """See `Lines`."""
        try:
            return input(PROMPT)
        except EOFError:
            print()
            raise


class EditedLines:
    """Lines from a terminal, with editing and history.

    Pasted lines form one message. Enter sends, Alt-Enter starts a new line, Ctrl-R searches the history, Ctrl-X Ctrl-E
    opens `$EDITOR`, and Ctrl-C clears the input.

    Args:
        screen: The terminal, as an unguarded stream.
        words: Words that Tab completes at the start of a line.
        history_file: The history file. If None, the history is kept in memory.
    """

    def __init__(self, screen: TextIO, *, words: Sequence[str], history_file: Path | None) -> None:
        # Imported here, because only a chat in a terminal needs it.
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
            key_bindings=_key_bindings(),
            output=_create_output(screen),
            # Aligns continuation lines of a message with its first line.
            prompt_continuation=" " * len(PROMPT),
        )

    def read(self) -> str:
        """See `Lines`."""
        return self._session.prompt()


def open_lines(screen: TextIO, *, words: Sequence[str]) -> tuple[Lines, str]:
    """Return the best available source of lines, and a note to print, or ''.

    Args:
        screen: Standard output, as an unguarded stream.
        words: See `EditedLines`.
    """
    is_interactive = sys.stdin is not None and sys.stdin.isatty() and screen.isatty()
    if not is_interactive or os.environ.get("TERM") == "dumb":
        return PlainLines(), ""
    try:
        file, problem = private_file(history_path()), ""
    except OSError as error:
        file, problem = None, f"the history of this chat will not be saved: {history_path()}: {error.strerror or error}"
    return EditedLines(screen, words=words, history_file=file), problem


def history_path() -> Path:
    """Return the path of the history file, below `$XDG_STATE_HOME` or `~/.local/state`."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "jackfield" / HISTORY_FILE


def private_file(path: Path) -> Path:
    """Return the path of a file that only its owner can read, creating the file if necessary.

    Raises:
        OSError: The file cannot be created or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Links are not followed, because the input may be private and must not end up elsewhere.
    os.close(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    return path


def _file_history(path: Path) -> History:
    from prompt_toolkit.history import FileHistory

    _trim(path)
    return FileHistory(str(path))


def _trim(path: Path) -> None:
    """Drop the oldest messages, to keep loading fast. Each message starts with an empty line and a date."""
    entries = path.read_bytes().split(b"\n\n# ")
    if len(entries) > 2 * _MAX_ENTRIES:
        write_private(path, b"\n# " + b"\n\n# ".join(entries[-_MAX_ENTRIES:]))


def _create_output(screen: TextIO) -> Output:
    from prompt_toolkit.output import create_output
    from prompt_toolkit.output.vt100 import Vt100_Output

    if os.name != "posix":
        return create_output(screen)
    # Without menus, the cursor position is not needed, and some terminals do not report it.
    output = Vt100_Output.from_pty(screen, term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output


def _key_bindings() -> KeyBindings:
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
