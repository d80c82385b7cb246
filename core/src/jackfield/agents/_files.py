"""Check files from agents and callers, and attach them to the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from jackfield._resources import RunResources
from jackfield.errors import ConfigError, MissingFileError, UnsupportedInputError
from jackfield.media import path_of
from jackfield.messages import ASSISTANT, USER, ContentItem, Message, basename_of
from jackfield.request import FileUse
from jackfield.sync import in_worker
from jackfield.tools._base import BaseTool

INDEX = "index:"
_PATTERN = frozenset("*?[")
_ATTACHED = "jackfield.attached"
_MAX_NAME_BYTES = 120


def files_in(history: Sequence[Message], attached: Mapping[str, str]) -> list[str]:
    """Return the paths of files and images that the user attached, in order.

    Paths in other messages are treated as text.

    Args:
        history: The conversation.
        attached: Mapping from `data:` URIs to the paths of the saved files. Other `data:` URIs are skipped.
    """
    paths: list[str] = []
    for message in history:
        if isinstance(message.content, str) or message.role != USER:
            continue
        for item in message.content:
            value = item.file or item.image
            path = attached.get(value) if value and _is_data(value) else value
            if path:
                paths.append(path)
    return paths


async def save_attached(history: Sequence[Message], resources: RunResources) -> None:
    """Save the `data:` URIs in the user's messages as files that tools can read.

    The files are stored in a private directory until the resources are closed, and their paths are in
    `resources.attached`. Invalid files in earlier questions, which have already been answered, are skipped.

    Raises:
        UnsupportedInputError: A file in the last question is not valid.
        ConfigError: A file cannot be saved.
    """
    answered = max((place for place, message in enumerate(history) if message.role == ASSISTANT), default=-1)
    for place, message in enumerate(history):
        if message.role != USER or isinstance(message.content, str):
            continue
        for item in message.content:
            if item.file is None or not _is_data(item.file) or item.file in resources.attached:
                continue
            folder = await resources.get(_ATTACHED, partial(in_worker, _Folder))
            try:
                resources.attached[item.file] = await in_worker(_save, item.file, folder.path)
            except UnsupportedInputError:
                if place > answered:
                    raise
            except OSError as error:
                raise ConfigError(
                    f"cannot save an attached file in {folder.path}: {error.strerror}. Free some space, or set TMPDIR"
                ) from error


class _Folder:
    """Temporary directory that only its owner can open. `close` deletes the directory."""

    def __init__(self) -> None:
        import tempfile

        self._folder = tempfile.TemporaryDirectory(prefix="jackfield-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)

    async def aclose(self) -> None:
        await in_worker(self._folder.cleanup)


def _save(uri: str, folder: Path) -> str:
    """Write the contents of a `data:` URI to a file, and return its path."""
    import hashlib  # only needed for data: URIs, which are rare

    from jackfield.attachments import decode_uri

    file = decode_uri(uri)
    # Two files may have the same name.
    path = folder / hashlib.sha256(uri.encode()).hexdigest()[:12] / (_short(file.name) or "file")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(file.content or b"")
    return str(path)


def _short(name: str) -> str:
    """Shorten a file name to fit file system limits, preserving the extension."""
    stem, dot, extension = name.rpartition(".")
    kept = name.encode("utf-8", "replace")
    if len(kept) <= _MAX_NAME_BYTES:
        return kept.decode()
    return kept[: _MAX_NAME_BYTES - 20].decode(errors="ignore") + (dot + extension if stem else "")[:20]


def _is_data(value: str) -> bool:
    return value[:5].lower() == "data:"


def check_files(own: Iterable[str], history: Sequence[Message], *, agent: str) -> None:
    """Check that the agent's files and the files in the last question exist.

    Files in earlier questions, which have already been answered, no longer need to exist.

    Raises:
        MissingFileError: A file does not exist. The message names it.
    """
    for name in own:
        if not name.startswith(INDEX) and _PATTERN.isdisjoint(name) and not _exists(name):
            raise _missing(name, f"listed in `files` of agent {agent!r}")
    for message in reversed(history):
        if message.role == ASSISTANT:
            return
        for item in message.items if message.role == USER else ():
            if item.file is not None and not _exists(item.file):
                raise _missing(item.file, "named in a message")


def attach_files(history: tuple[Message, ...], files: Sequence[str]) -> tuple[Message, ...]:
    """Return the conversation with the agent's files added to the first question, without duplicates."""
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
    """Determine how attached files reach the model in a run.

    Args:
        tools: The run's tools. Tools with `file_access` and the effect `files` can open long and unreadable files
            themselves. Other tools with `file_access` may be able to handle unreadable files.
        reads_files: True if the agent kind reads files itself.
    """
    if reads_files:
        return "name"
    with_access = [safety for tool in tools if (safety := tool.safety()).file_access]
    if any("files" in safety.effects for safety in with_access):
        return "read_short"
    return "read_if_possible" if with_access else "read"


def _missing(name: str, user: str) -> MissingFileError:
    # Show only the last part of the path, because the text may reach a model.
    return MissingFileError(f"no such file: {basename_of(name)!r} ({user}); correct the path")


def _exists(name: str) -> bool:
    path = path_of(name)
    try:
        return path is None or path.exists()
    except (OSError, ValueError):  # the path contains a NUL or is too long
        return False
