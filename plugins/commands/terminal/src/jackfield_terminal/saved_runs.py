"""Save conversations to files that only their owner can read, and load them."""

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
_LOCKED_BYTE = 1 << 30  # beyond the end, so that the text stays readable where locks are mandatory
_NOT_SAVED_RUN = "is not a conversation written by `jackfield run --save` or /save"


def save_run(path: Path, messages: Sequence[Message], stop_reason: str, secrets: Secrets) -> None:
    """Save a conversation, without secrets, to a file that only its owner can read.

    An existing file is replaced atomically.

    Raises:
        ConfigError: The file cannot be written.
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
        record_consent(request)  # the user's own run needs no consent until the file changes


def _without_seals(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form of a saved run to which the user consents: without digests, and with secrets still hidden."""
    messages = [{key: value for key, value in message.items() if key != SEAL} for message in record["messages"]]
    return {**record, "messages": messages}


def check_target(path: Path) -> None:
    """Raise ConfigError if no conversation can be saved to this path, because it is a folder or in no folder."""
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"cannot save the conversation to {path}: folder {path.absolute().parent} does not exist")
    if path.is_dir():
        raise ConfigError(f"cannot save the conversation to {path}: it is a folder, so specify a file in it")


def write_text(path: Path, text: str) -> None:
    """Write text to a file that only its owner can read. An existing file is replaced atomically.

    Raises:
        ConfigError: The file cannot be written.
    """
    check_target(path)
    try:
        write_private(path, text)
    except OSError as error:
        raise ConfigError(f"cannot save the conversation to {path}: {error.strerror or error}") from error


def claim_run(path: Path, *, again: bool = False) -> None:
    """Mark a saved run as resumed before it makes any calls, so that only one process can resume it.

    The mark is a separate line after the conversation, so consent to the conversation remains valid.

    Args:
        path: The file.
        again: True to allow a run that was resumed before.

    Raises:
        ConfigError: The run was resumed before, or the file cannot be marked.
    """
    try:
        with path.open("r+", encoding="utf-8") as file:
            _lock(file.fileno())
            _, mark = _split_mark(file.read())
            if mark and not again:
                raise ConfigError(
                    f"{path} was resumed on {json.loads(mark)['resumed']}, so its calls may have run. Check their "
                    "effects; then ask in a new run, or pass --again to resume it anyway"
                )
            if not mark:
                file.write(f"\n{json.dumps({'resumed': time.strftime('%Y-%m-%d %H:%M')})}")
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise ConfigError(f"cannot mark {path} as resumed: {error.strerror or error}") from error


def _lock(handle: int) -> None:
    """Acquire a file's lock, which is held until the file is closed."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)


def release_run(path: Path) -> None:
    """Remove the mark set by `claim_run` from a run that has made no calls."""
    text, mark = _split_mark(path.read_text(encoding="utf-8"))
    if mark:
        write_text(path, text)


def _split_mark(text: str) -> tuple[str, str]:
    """Split a file into the conversation and the mark after it, or '' if unmarked."""
    before, _, last = text.rpartition("\n")
    return (before, last) if last.startswith('{"resumed": ') else (text, "")


def _check_format(record: object) -> None:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")


def load_run(path: Path, secrets: Secrets, *, trust: bool = False) -> tuple[Message, ...]:
    """Load a saved run's conversation and restore its secrets.

    An unchanged file written on this machine needs no consent. Any other file does if it contains pending calls or
    names files.

    Args:
        path: The file.
        secrets: The secrets to restore.
        trust: True if the user vouches for the file.

    Raises:
        ConsentNeededError: The user has not agreed to the file's effects.
        ConfigError: The file cannot be read, is not a saved run, or has a pending call with an unknown secret.
    """
    try:
        text, _ = _split_mark(path.read_text(encoding="utf-8"))
        record = json.loads(text)
        _check_format(record)
        unsealed = [secrets.unseal(message) for message in record["messages"]]
        messages = as_messages([message for message, _ in unsealed])
        request = request_for(path, text, _without_seals(record), read_as="saved run")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} {_NOT_SAVED_RUN}: {error}") from error
    with_consent(lambda: require_consent(request, trust=trust))
    sealed = [message for message, (_, is_restored) in zip(messages, unsealed, strict=True) if not is_restored]
    for planned in open_calls(messages):
        call = planned.call
        if any(message.function_call == call for message in sealed):
            names = ", ".join(placeholders_in(call.arguments))
            raise ConfigError(
                f"{path} cannot be resumed here, because the arguments of the call of {call.name!r} contain unknown or "
                f"changed secrets ({names}): restore their old values, or ask again"
            )
    return messages
