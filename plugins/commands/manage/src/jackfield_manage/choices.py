"""What commands decide for a user: `choices.toml`, beside the user's own file, which no command ever rewrites."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError
from jackfield.jsontext import dumps
from jackfield.settings import choices_path, read_choices

_HEADING = "# Written by `jackfield plugins enable`, `disable` and `sync`. Comments are not kept.\n"


@dataclass(frozen=True)
class Choices:
    """The rules that commands write; their meaning is that of `Settings`."""

    block: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    allow: tuple[str, ...] | None = None

    def with_changes(self, **changes: Any) -> Choices:
        """These with others in place of some."""
        return replace(self, **changes)


def load_choices(path: Path | None = None) -> Choices:
    """The choices so far.

    Raises:
        ConfigError: The file is not valid TOML, or has keys that do not belong there.
    """
    path = path or choices_path()
    table = read_choices(path)
    other = table.keys() - Choices.__dataclass_fields__.keys()
    if other:
        raise ConfigError(f"{path} has {', '.join(sorted(other))}: move it to config.toml beside it")
    made: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Choices(**made)


def write_choices(choices: Choices, path: Path | None = None) -> Path:
    """Write the choices, whole or not at all; gives the file.

    Raises:
        ConfigError: The file cannot be written.
    """
    target = path or choices_path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, as_toml(choices))
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def write_whole(target: Path, text: str) -> None:
    """Write a file so that a reader finds the old or the new one, never a part.

    Raises:
        OSError: It cannot be written; nothing has changed.
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
    """The file's text."""
    # An empty `allow` is a rule, too: nothing may load.
    lists = {"allow": choices.allow, **{key: getattr(choices, key) or None for key in ("block", "enabled", "order")}}
    tables = [_table("prefer", choices.prefer)] * bool(choices.prefer)
    tables += [_table(f"settings.{toml_value(name)}", values) for name, values in choices.settings.items()]
    return "".join([_HEADING, toml_facts(lists), *tables])


def _table(heading: str, values: Mapping[str, object]) -> str:
    return f"\n[{heading}]\n{toml_facts({toml_value(key): value for key, value in values.items()})}"


def toml_facts(table: Mapping[str, object]) -> str:
    """A line for each fact of a table; what is None is not said. Keys stand there as they are."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in table.items() if value is not None)


def toml_value(value: object) -> str:
    """A value as TOML. Texts, numbers, switches and lists are written as in JSON; tables are not."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_value(key)} = {toml_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    # TOML has JSON's escapes, but wants this one, which JSON leaves as it is.
    return dumps(value).replace("\x7f", "\\u007f")
