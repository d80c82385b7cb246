"""API keys stored by `jackfield keys`: in the system keyring if it works, otherwise in a private file.

The `keys.json` file in the user's configuration directory lists all stored keys. For keys in the keyring, the file
contains no value. If the file does not exist, `keyring` is never imported.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from jackfield.errors import ConfigError
from jackfield.privatefiles import lock_changes, write_private

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KeyPlace", "KeyStorage", "StoredKeys"]

KeyPlace = Literal["keyring", "file"]


class KeyStorage(NamedTuple):
    """The location of a stored key.

    Attributes:
        place: The keyring or the file.
        problem: The reason why the key is in the file, or '' if the key is in the keyring.
    """

    place: KeyPlace
    problem: str = ""


_SERVICE = "jackfield"


class StoredKeys:
    """A user's stored keys.

    Args:
        path: The file that lists the keys.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def places(self) -> dict[str, KeyPlace]:
        """Return the location of each key, keyed by name.

        Raises:
            ConfigError: The file is damaged, or other users can read it.
        """
        return {name: "keyring" if value is None else "file" for name, value in self._read().items()}

    def in_file(self) -> dict[str, str]:
        """Return the keys in the file by name. Keys in the keyring are not included.

        Raises:
            ConfigError: As for `places`.
        """
        return {name: value for name, value in self._read().items() if value is not None}

    def get(self, name: str) -> str | None:
        """Return a key, or None if it is not stored.

        Raises:
            ConfigError: As for `places`, or the key is in the keyring and the keyring cannot be read.
        """
        keys = self._read()
        if name not in keys:
            return None
        value = keys[name]
        return value if value is not None else self._from_keyring(name)

    def set(self, name: str, key: str) -> KeyStorage:
        """Store or replace a key. Use the keyring if it works, otherwise the file.

        Raises:
            ConfigError: As for `places`.
            OSError: The file cannot be written.
        """
        with lock_changes(self.path):
            keys = self._read()
            problem = _write_to_keyring(name, key)
            self._write({**keys, name: key if problem else None})
        if problem and name in keys and keys[name] is None:
            problem += ", and still contains an older key with this name"
        return KeyStorage("file", problem) if problem else KeyStorage("keyring")

    def remove(self, name: str) -> bool:
        """Remove a key. Return False if no key has this name.

        Raises:
            ConfigError: As for `places`, or the key is in the keyring and the keyring cannot be changed.
            OSError: The file cannot be written.
        """
        if name not in self._read():
            return False
        with lock_changes(self.path):
            keys = self._read()
            if keys.pop(name, "") is None:
                self._remove_from_keyring(name)
            self._write(keys)
        return True

    def _read(self) -> dict[str, str | None]:
        try:
            with self.path.open("rb") as file:
                if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                    raise ConfigError(
                        f"the keys in {self.path} can be read by other users; to fix this, run: chmod 600 {self.path}"
                    )
                raw = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise ConfigError(f"cannot read the keys in {self.path}: {error.strerror or error}") from error
        try:
            keys = json.loads(raw)
        except (ValueError, RecursionError):
            keys = None
        if not isinstance(keys, dict) or not all(value is None or isinstance(value, str) for value in keys.values()):
            raise ConfigError(
                f"{self.path} is corrupted: remove the file, then store the keys again with `jackfield keys set NAME`"
            )
        return keys

    def _write(self, keys: Mapping[str, str | None]) -> None:
        write_private(self.path, json.dumps(keys, indent=2, sort_keys=True) + "\n")

    def _from_keyring(self, name: str) -> str | None:
        try:
            import keyring

            key = keyring.get_password(_SERVICE, name)
        except Exception as error:  # noqa: BLE001 - backends raise errors of their own
            raise ConfigError(_keyring_failure(name, error)) from None
        return str(key) if key else None

    def _remove_from_keyring(self, name: str) -> None:
        try:
            import keyring
            import keyring.errors

            try:
                keyring.delete_password(_SERVICE, name)
            except keyring.errors.PasswordDeleteError:  # another program has removed it
                return
        except Exception as error:  # noqa: BLE001 - backends raise errors of their own
            raise ConfigError(_keyring_failure(name, error)) from None


def _keyring_failure(name: str, error: Exception) -> str:
    return (
        f"the key {name} is in the system keyring, which is not available here ({type(error).__name__}): "
        f"set the environment variable {name} instead"
    )


def _write_to_keyring(name: str, key: str) -> str:
    """Write a key to the keyring. Return '' on success, otherwise the reason for the failure."""
    try:
        import keyring
    except ImportError:
        return "the keyring package is not installed"
    try:
        # Backends with a priority below 1 always fail or write plain text.
        if keyring.get_keyring().priority < 1:
            return "this system has no encrypted keyring"
        keyring.set_password(_SERVICE, name, key)
        is_written = keyring.get_password(_SERVICE, name) == key
    except Exception as error:  # noqa: BLE001 - backends raise errors of their own, whose texts may hold the key
        return f"the system keyring failed ({type(error).__name__})"
    return "" if is_written else "the system keyring did not store the key"
