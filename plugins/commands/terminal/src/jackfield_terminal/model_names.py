"""Store the user's default model and aliases, in `model_names.json` next to `config.toml`.

Only commands use them. Code and agent files specify their models explicitly, so they behave the same for all users.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jackfield.errors import ConfigError
from jackfield.privatefiles import lock_changes, write_private
from jackfield.settings import models_path


@dataclass(frozen=True, slots=True)
class ModelNames:
    """The user's default model and model aliases.

    Attributes:
        default: The model for commands that do not specify one, or ''.
        aliases: The aliases, each with its model.
    """

    default: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, name: str) -> str:
        """Return the model for an alias, or `name` itself if it is not an alias."""
        return self.aliases.get(name, name)


def names_path() -> Path:
    """Return the path of the file with the default model and aliases."""
    return models_path().with_name("model_names.json")


def load_names() -> ModelNames:
    """Load the default model and aliases; both are empty if the file does not exist.

    Raises:
        ConfigError: The file cannot be read or is corrupt.
    """
    path = names_path()
    try:
        table = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return ModelNames()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError):
        table = None
    if isinstance(table, dict):
        default, aliases = table.get("default", ""), table.get("aliases", {})
        if isinstance(default, str) and isinstance(aliases, dict) and all(isinstance(m, str) for m in aliases.values()):
            return ModelNames(default, aliases)
    raise ConfigError(f"{path} is corrupted: delete it, then set the default model and the aliases again")


@contextlib.contextmanager
def lock_names() -> Iterator[ModelNames]:
    """Yield the default model and aliases, and let no other process change them until the block ends.

    Raises:
        ConfigError: As for `load_names`, or the file cannot be locked, so it could not be written either.
    """
    path = names_path()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock_changes(path))
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error
        yield load_names()


def save_names(names: ModelNames) -> None:
    """Save the default model and aliases, and add the aliases to shell completion.

    Raises:
        ConfigError: The file cannot be written.
    """
    try:
        write_private(names_path(), json.dumps({"default": names.default, "aliases": dict(names.aliases)}, indent=2))
    except OSError as error:
        raise ConfigError(f"{names_path()} cannot be written: {error.strerror or error}") from error
    remember_models((names.default, *names.aliases))


def remember_models(models: Iterable[str]) -> None:
    """Add names to shell completion, except those that contain spaces or other shell characters."""
    path = models_path()
    try:
        before = path.read_text(encoding="utf-8").split() if path.exists() else []
        plain = [name for name in models if name and all(char.isalnum() or char in "._-:/" for char in name)]
        write_private(path, "".join(f"{name}\n" for name in dict.fromkeys([*before, *plain])))
    except (OSError, UnicodeDecodeError):
        return  # only completion lacks them
