"""Turn the members of an archive into a document: a list of their names, plus the files for other parsers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jackfield.errors import DocParserError
from jackfield.plurals import format_count
from jackfield.retrieval import Block, Document, Part, shown_path

MAX_UNPACKED = 200 * 2**20  # bytes
MAX_RATIO = 200
ALWAYS_ALLOWED_BYTES = 16 * 2**20  # regardless of the ratio, because small files often compress very well
MAX_ENTRIES = 10_000
_MAX_NAME_CHARS = 200
_SHOWN_NAMES = 1000
# Folders that programs create for themselves, skipped here as in real folders.
_PROGRAM_FOLDERS = frozenset({"__MACOSX", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an archive.

    Attributes:
        name: The name in the archive, displayed but never used as a path. '' for a compressed single file.
        size_bytes: The unpacked size.
        data: The content, or None if the member was not unpacked.
        reason: The reason why the member was not unpacked, or '' if it is damaged.
    """

    name: str
    size_bytes: int
    data: bytes | None
    reason: str = ""


def document_of(members: Sequence[Member], *, source: str) -> Document:
    """Build the document for an archive.

    Raises:
        DocParserError: The archive contains no visible file.
    """
    visible = [member for member in members if not _is_hidden(member.name)]
    if not visible:
        raise DocParserError(f"{source} contains no files, or only hidden files")
    lines = list(_lines(visible, hidden=len(members) - len(visible)))
    damaged = [_shown(member.name) for member in visible if member.data is None and not member.reason]
    metadata: dict[str, object] = {"files": len(visible), **({"unread": damaged} if damaged else {})}
    parts = tuple(Part(member.name, member.data) for member in visible if member.data)
    return Document(source, (Block("\n".join(lines), kind="list"),), content_hash="", metadata=metadata, parts=parts)


def _lines(members: Sequence[Member], *, hidden: int) -> Iterator[str]:
    for member in members[:_SHOWN_NAMES]:
        state = "" if member.data is not None else f", not read: {member.reason or 'corrupted'}"
        yield f"- {_shown(member.name)} ({format_count(member.size_bytes, 'byte')}{state})"
    if len(members) > _SHOWN_NAMES:
        yield f"- and {format_count(len(members) - _SHOWN_NAMES, 'more file')}"
    if hidden:
        yield f"- and {format_count(hidden, 'hidden file')} (not read)"


def _shown(name: str) -> str:
    return shown_path(name[:_MAX_NAME_CHARS]) or "compressed file"


def _is_hidden(name: str) -> bool:
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return any(part.startswith(".") or part in _PROGRAM_FOLDERS for part in parts)
