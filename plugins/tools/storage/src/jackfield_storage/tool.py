"""The `storage` tool: texts that a model saves under keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from jackfield.config import Config, PathText
from jackfield.errors import ToolArgumentError
from jackfield.tools import BaseTool, ToolContext, Workspace
from jackfield_storage.entries import Entries
from jackfield_storage.plugin import tools

_FOLDER = "tools/storage"
_MOST_KEY = 500  # characters


class StorageConfig(Config):
    """Settings for the storage folder and its limits."""

    storage_root_path: PathText | None = Field(
        default=None, min_length=1, description="Folder of the storage; tools/storage in the workspace if unset"
    )
    max_bytes: int = Field(default=100 * 2**20, ge=1, description="Maximum total size of keys and values, in bytes")
    max_scan_chars: int = Field(default=20_000, ge=100, description="Maximum number of characters that scan shows")


class Storage(BaseTool):
    """Saves texts under keys in a single file that several processes may share.

    A key is only a name and never a file path, so no key can lead out of the storage.
    """

    name = "storage"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects

    config_class = StorageConfig
    config: StorageConfig

    def __init__(self, cfg: StorageConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._entries: dict[Path, Entries] = {}

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str:
        """Carry out an operation, and return a report. Blocks on the file.

        Raises:
            ToolArgumentError: The key or value is invalid, the key does not exist, or the storage is full.
            ToolServiceError: The storage file is currently unavailable.
        """
        arguments = self.parse_arguments(params)
        key = "/".join(part for part in arguments.get("key", "/").split("/") if part)
        entries = self._entries_in(context.workspace if context else Workspace())
        match arguments["operate"]:
            case "put":
                return self._put(entries, key, arguments.get("value"))
            case "get":
                return _get(entries, key)
            case "delete":
                return _delete(entries, key)
            case _:
                return self._scan(entries, key)

    def _put(self, entries: Entries, key: str, value: str | None) -> str:
        _check_key(key, "put")
        if value is None:
            raise ToolArgumentError("put requires a value: the text to save")
        if not entries.put(key, value, most_bytes=self.config.max_bytes):
            raise ToolArgumentError(
                f"no space left for {key}: the limit is {self.config.max_bytes:,} bytes; delete something first"
            )
        return f"Successfully saved {key}."

    def _scan(self, entries: Entries, key: str) -> str:
        lines, used = [], 0
        entries_below = entries.below(key)
        for index, (name, value) in enumerate(entries_below):
            line = f"/{name}: {value}"
            used += len(line) + 1
            if used > self.config.max_scan_chars:
                left = len(entries_below) - index
                lines.append(f"[{left} more, starting at /{name}: get them by key, or scan a longer key]")
                break
            lines.append(line)
        if lines:
            return "\n".join(lines)
        if not key:
            return "Nothing is stored yet."
        is_value = entries.get(key) is not None
        raise ToolArgumentError(
            f"Scan Failed: {key} has a value but nothing below it: use get"
            if is_value
            else f"Scan Failed: nothing is stored below {key}"
        )

    def _entries_in(self, workspace: Workspace) -> Entries:
        root = self.config.storage_root_path
        folder = Path(root).expanduser() if root else workspace.resolve(_FOLDER)
        if folder not in self._entries:
            self._entries[folder] = Entries(folder / "storage.sqlite")
        return self._entries[folder]


def _get(entries: Entries, key: str) -> str:
    _check_key(key, "get")
    value = entries.get(key)
    if value is None:
        raise ToolArgumentError(f"nothing is stored under {key}: use scan to list the keys", code="KeyNotExistsError")
    return value


def _delete(entries: Entries, key: str) -> str:
    _check_key(key, "delete")
    if not entries.delete(key):
        raise ToolArgumentError(f"Delete Failed: {key} does not exist")
    return f"Successfully deleted {key}"


def _check_key(key: str, what: str) -> None:
    if not key:
        raise ToolArgumentError(f"{what} requires a key, such as notes/today")
    if len(key) > _MOST_KEY:
        raise ToolArgumentError(f"a key can have at most {_MOST_KEY} characters, got {len(key):,}")
    if not key.isprintable() or ".." in key.split("/"):
        raise ToolArgumentError(
            f"{key!r} is not a valid key: it contains control characters or '..'; use a key such as notes/today"
        )
