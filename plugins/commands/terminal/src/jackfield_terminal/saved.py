"""Saved runs: a conversation in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jackfield.agents import open_calls
from jackfield.cli import with_consent
from jackfield.consent import record_consent, require_consent
from jackfield.errors import ConfigError
from jackfield.messages import Message, as_messages
from jackfield.privatefiles import write_private
from jackfield.secrets import SEAL, Secrets, placeholders_in
from jackfield_agent_files.effects import request_for

FORMAT = "jackfield-run/1"
_LOCKED_BYTE = 1 << 30  # beyond the end: where locks bind, the text can still be read
_NOT_OURS = "is not a conversation written by `jackfield run --save` or /save"


def save_run(path: Path, messages: Sequence[Message], stop_reason: str, secrets: Secrets) -> None:
    """Write a conversation, without secrets, into a file that only its owner can read; it is replaced as a whole.

    Raises:
        ConfigError: It cannot be written.
    """
    record = {
        "format": FORMAT,
        "stop_reason": stop_reason,
        "messages": [secrets.seal(message.model_dump(mode="json")) for message in messages],
    }
    text = json.dumps(record, ensure_ascii=False).encode(errors="replace").decode()
    write_text(path, text)
    request = request_for(path, text, _without_seals(record), read_as="saved run")
    if request.effects:
        record_consent(request)  # the user's own run, until the file changes


def _without_seals(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved run as it is asked about: its secrets stay hidden, and digests are no part of its messages."""
    messages = [{key: value for key, value in one.items() if key != SEAL} for one in record["messages"]]
    return {**record, "messages": messages}


def write_text(path: Path, text: str) -> None:
    """Write a text into a file that only its owner can read; it is replaced as a whole.

    Raises:
        ConfigError: It cannot be written.
    """
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"it cannot be saved to {path}: there is no folder {path.absolute().parent}")
    try:
        write_private(path, text)
    except OSError as error:
        raise ConfigError(f"it cannot be saved to {path}: {error.strerror or error}") from error


def claim_run(path: Path, *, again: bool = False) -> None:
    """Mark a saved run as resumed, before any of its calls is made; only one process can.

    The mark is a line of its own after the conversation, so consent to the conversation holds on.

    Args:
        path: The file.
        again: Resume it although it was resumed before.

    Raises:
        ConfigError: It was resumed before, or the file cannot be marked.
    """
    try:
        with path.open("r+", encoding="utf-8") as file:
            _lock(file.fileno())
            _, mark = _split_mark(file.read())
            if mark and not again:
                raise ConfigError(
                    f"{path} was resumed on {json.loads(mark)['resumed']}, so its calls may have been made. Check what "
                    f"they did; then ask in a new run, or pass --again to resume it once more all the same"
                )
            if not mark:
                file.write(f"\n{json.dumps({'resumed': time.strftime('%Y-%m-%d %H:%M')})}")
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise ConfigError(f"{path} cannot be marked as resumed: {error.strerror or error}") from error


def _lock(handle: int) -> None:
    """Wait until no other process has the file locked, and lock it until it is closed."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)


def release_run(path: Path) -> None:
    """Take the mark of `claim_run` away, because the run has made no call."""
    text, mark = _split_mark(path.read_text(encoding="utf-8"))
    if mark:
        write_text(path, text)


def _split_mark(text: str) -> tuple[str, str]:
    """The conversation of a file, and the mark after it; '' if there is none."""
    before, _, last = text.rpartition("\n")
    return (before, last) if last.startswith('{"resumed": ') else (text, "")


def load_run(path: Path, secrets: Secrets, *, trust: bool = False) -> tuple[Message, ...]:
    """Return the conversation of a saved run, with its secrets put back.

    A file that was written here, and has not changed, needs no consent. Any other does if calls wait in it, or if it
    names files.

    Args:
        path: The file.
        secrets: What is put back.
        trust: The user vouches for it.

    Raises:
        ConsentNeededError: The file has effects that the user has not agreed to.
        ConfigError: It cannot be read, is something else, or ends in a call with a secret that is not known.
    """
    try:
        text, _ = _split_mark(path.read_text(encoding="utf-8"))
        record = json.loads(text)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ConfigError(f"{path} {_NOT_OURS}")
        told = [secrets.unseal(one) for one in record["messages"]]
        messages = as_messages([message for message, _ in told])
        request = request_for(path, text, _without_seals(record), read_as="saved run")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} {_NOT_OURS}: {error}") from error
    with_consent(lambda: require_consent(request, trust=trust))
    unknown = [message for message, (_, is_whole) in zip(messages, told, strict=True) if not is_whole]
    waiting = [planned.call for planned in open_calls(messages)]
    for call in waiting:
        if any(message.function_call == call for message in unknown):
            names = ", ".join(placeholders_in(call.arguments))
            raise ConfigError(
                f"{path} cannot be resumed here: the arguments of the call {call.name!r} contain a secret that is not "
                f"known or has changed ({names}): set it as it was, or ask again"
            )
    return messages
