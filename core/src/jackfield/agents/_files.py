"""Files that an agent and its callers hand over: they exist, and they get into the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jackfield.errors import MissingFileError
from jackfield.media import path_of
from jackfield.messages import ASSISTANT, USER, ContentItem, Message, basename_of
from jackfield.request import FileUse
from jackfield.tools._base import BaseTool

INDEX = "index:"
_PATTERN = frozenset("*?[")


def files_in(history: Sequence[Message]) -> list[str]:
    """Return the files and images that the user attached, in order; a path in any other message is only a text."""
    asked = (message.content for message in history if message.role == USER and not isinstance(message.content, str))
    values = (item.file or item.image for content in asked for item in content)
    return [value for value in values if value and not value.startswith("data:")]


def check_files(own: Iterable[str], history: Sequence[Message], *, agent: str) -> None:
    """Check that the files of an agent, and those of the last question, exist.

    Files of earlier questions may be gone: they have been answered.

    Raises:
        MissingFileError: One does not exist; the message names it.
    """
    for name in own:
        if not name.startswith(INDEX) and _PATTERN.isdisjoint(name) and not _exists(name):
            raise _missing(name, f"agent {agent!r} has in `files`")
    for message in reversed(history):
        if message.role == ASSISTANT:
            return
        for item in message.items if message.role == USER else ():
            if item.file is not None and not _exists(item.file):
                raise _missing(item.file, "a message names")


def attach_files(history: tuple[Message, ...], files: Sequence[str]) -> tuple[Message, ...]:
    """Return the conversation with an agent's files in its first question, except those it already has."""
    if not files:
        return history
    present = {item.file for message in history for item in message.items}
    items = [ContentItem(file=name) for name in files if name not in present]
    if not items:
        return history
    for place, message in enumerate(history):
        if message.role == USER:
            asked = message.replace(content=[*message.items, *items])
            return (*history[:place], asked, *history[place + 1 :])
    return (*history, Message(USER, items))


def file_use_of(tools: Iterable[BaseTool], *, reads_files: bool) -> FileUse:
    """Return how attached files reach the model of a run.

    Args:
        tools: The tools of the run. One with `file_access` and the effect `files` can open long and unreadable files
            itself; any other with `file_access` may know what to do with unreadable ones.
        reads_files: The agent kind reads them itself.
    """
    if reads_files:
        return "name"
    with_access = [safety for tool in tools if (safety := tool.safety()).file_access]
    if any("files" in safety.effects for safety in with_access):
        return "read_short"
    return "read_if_possible" if with_access else "read"


def _missing(name: str, user: str) -> MissingFileError:
    # Its last part only: the text may reach a model.
    return MissingFileError(f"there is no file {basename_of(name)!r}, which {user}: correct the path")


def _exists(name: str) -> bool:
    path = path_of(name)
    try:
        return path is None or path.exists()
    except (OSError, ValueError):  # a path with a NUL, or one that is too long
        return False
