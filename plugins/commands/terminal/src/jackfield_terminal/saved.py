"""Saved runs: a conversation in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jackfield.errors import ConfigError
from jackfield.messages import Message, as_messages

FORMAT = "jackfield-run/1"
_NOT_OURS = "is not a conversation written by `jackfield run --save` or /save"


def save_run(path: Path, messages: Sequence[Message], stop_reason: str) -> None:
    """Write a conversation into a file that only its owner can read; it is replaced as a whole.

    Raises:
        ConfigError: It cannot be written.
    """
    record = {
        "format": FORMAT,
        "stop_reason": stop_reason,
        "messages": [message.model_dump(mode="json") for message in messages],
    }
    write_private(path, json.dumps(record, ensure_ascii=False))


def write_private(path: Path, text: str) -> None:
    """Write a text into a file that only its owner can read; it is replaced as a whole.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # its mode is 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"it cannot be saved to {path}: {error.strerror or error}") from error


def load_run(path: Path) -> tuple[Message, ...]:
    """The conversation of a saved run.

    Raises:
        ConfigError: It cannot be read, or is something else.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ConfigError(f"{path} {_NOT_OURS}")
        return as_messages(record["messages"])
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path} {_NOT_OURS}: {error}") from error
