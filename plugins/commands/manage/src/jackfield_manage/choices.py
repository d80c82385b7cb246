"""Read and write `choices.toml`, where commands store the user's choices.

The file lies next to `config.toml`, which belongs to the user and is never written by a command.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError
from jackfield.jsontext import dumps
from jackfield.privatefiles import lock_changes
from jackfield.settings import choices_path, read_choices

_HEADING = "# Written by `jackfield plugins enable`, `disable` and `sync`. Comments are not kept.\n"


@dataclass(frozen=True, slots=True)
class Choices:
    """The rules written by commands, with the same meaning as in `Settings`."""

    block: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    allow: tuple[str, ...] | None = None

    def with_changes(self, **changes: Any) -> Choices:
        """Return a copy with some rules replaced."""
        return replace(self, **changes)

    def blocking(self, *names: str) -> Choices:
        """Return a copy that also blocks these names."""
        return replace(self, block=tuple(dict.fromkeys((*self.block, *names))))


def load_choices(path: Path | None = None) -> Choices:
    """Load the current choices.

    Raises:
        ConfigError: The file is not valid TOML, or contains keys that belong in `config.toml`.
    """
    path = path or choices_path()
    table = read_choices(path)
    misplaced = table.keys() - Choices.__dataclass_fields__.keys()
    if misplaced:
        raise ConfigError(f"{path} must not contain {', '.join(sorted(misplaced))}: use config.toml in the same folder")
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Choices(**values)


@contextlib.contextmanager
def lock_choices() -> Iterator[Choices]:
    """Yield the current choices, and let no other process change them until the block ends.

    Raises:
        ConfigError: As for `load_choices`, or the choices cannot be locked, so they could not be written either.
    """
    path = choices_path()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock_changes(path))
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error
        yield load_choices()


def write_choices(choices: Choices, path: Path | None = None) -> Path:
    """Write the choices atomically, and return the path of the file.

    Raises:
        ConfigError: The file cannot be written.
    """
    target = path or choices_path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, as_toml(choices))
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def replace_file(target: Path, text: str) -> None:
    """Replace a file atomically, so that readers see either the old or the new content.

    Raises:
        OSError: The file cannot be written; its content is unchanged.
    """
    descriptor, staging = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(staging).replace(target)
    except BaseException:
        Path(staging).unlink(missing_ok=True)
        raise


def as_toml(choices: Choices) -> str:
    """Format the choices as TOML."""
    facts = {
        "allow": choices.allow,  # an empty list is also a rule: nothing may load
        "block": choices.block or None,
        "enabled": choices.enabled or None,
        "order": choices.order or None,
    }
    tables: dict[str, Mapping[str, object]] = {"prefer": choices.prefer} if choices.prefer else {}
    for name, values in choices.settings.items():
        tables[f"settings.{toml_value(name)}"] = values
    text = _HEADING + toml_facts(facts)
    for heading, values in tables.items():
        text += f"\n[{heading}]\n" + toml_facts({toml_value(key): value for key, value in values.items()})
    return text


def toml_facts(table: Mapping[str, object]) -> str:
    """Format a table with one line per entry, omitting None values. Keys are not quoted."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in table.items() if value is not None)


def toml_value(value: object) -> str:
    """Format a value as TOML; a mapping becomes an inline table."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_value(key)} = {toml_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(entry) for entry in value)}]"
    # TOML shares JSON's escapes, but requires this one as well.
    return dumps(value).replace("\x7f", "\\u007f")
