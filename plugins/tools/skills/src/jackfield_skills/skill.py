"""One skill: a folder with a SKILL.md. Source: the Agent Skills specification, agentskills.io/specification."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from jackfield.errors import ConfigError, ToolArgumentError
from jackfield_skills.files import read_text

FILE = "SKILL.md"
_MAX_FRONT_MATTER = 16 * 1024
_MAX_DEPTH = 10
_MAX_NAME, _MAX_DESCRIPTION = 64, 1024
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(\r?\n|\Z)", re.DOTALL | re.MULTILINE)
# The one in C, where it was built: of a thousand skills, this is most of the time.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as a model first sees it.

    Attributes:
        name: As in its file, which is also the name of its folder.
        description: What it does and when to use it, in one line.
        folder: Where its files are.
    """

    name: str
    description: str
    folder: Path

    @property
    def line(self) -> str:
        """What a model reads before it asks for more."""
        return f"- {self.name}: {self.description}"


def load_skill(folder: Path) -> Skill:
    """Read a skill's name and description; its body is left for later.

    Raises:
        ConfigError: It does not conform to the specification; the message says how.
    """
    try:
        text = read_text(folder, FILE, most_bytes=_MAX_FRONT_MATTER)
        table = _front_matter(text)
        return Skill(_name(table, folder), _description(table), folder)
    except (ToolArgumentError, ValueError) as error:
        raise ConfigError(f"{folder / FILE}: {error}") from error


def body_of(text: str) -> str:
    """The text of a SKILL.md without its front matter."""
    found = _FRONT_MATTER.match(text)
    return text[found.end() :].strip() if found else text


def _front_matter(text: str) -> dict[object, object]:
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise ValueError(
            f"it has no front matter: it must begin with --- and have the lines name: and description: before the next "
            f"---, within {_MAX_FRONT_MATTER // 1024} KiB"
        )
    try:
        _check_shape(found[1])
        table = yaml.load(found[1], Loader=_Loader)  # noqa: S506 - it is the safe one
    except yaml.YAMLError as error:
        raise ValueError(f"its front matter is not YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(table, dict):
        raise ValueError("its front matter must have the lines name: and description:")
    return table


def _name(table: dict[object, object], folder: Path) -> str:
    name = table.get("name")
    if not isinstance(name, str) or len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r:.80} is not a valid name: it is 1 to {_MAX_NAME} of a-z, 0-9 and single hyphens between them"
        )
    if name != folder.name:
        raise ValueError(f"its name is {name!r}, and its folder is {folder.name!r}: they must be the same")
    return name


def _description(table: dict[object, object]) -> str:
    description = table.get("description")
    if not isinstance(description, str) or not description.strip():
        raise ValueError("it has no description: write what it does, and when to use it")
    if len(description) > _MAX_DESCRIPTION:
        raise ValueError(f"its description has {len(description):,} characters; {_MAX_DESCRIPTION:,} are allowed")
    # One line, in which nothing is hidden from people: a model reads it beside those of others.
    return "".join(one for one in " ".join(description.split()) if one.isprintable())


# --- YAML from anybody ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A list or table that is being read."""

    is_table: bool
    keys: set[str] = field(default_factory=set)
    wants_key: bool = True


def _check_shape(text: str) -> None:
    """Look at the parts before a value is made of them.

    Raises:
        ValueError: It has aliases, which may stand for a value of any size; a key twice; or is nested too deeply.
        yaml.YAMLError: It is not YAML.
    """
    opened: list[_Open] = []
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("its front matter has an alias (*name), which is not allowed: write the value again")
        if isinstance(event, yaml.CollectionEndEvent):
            opened.pop()
        elif isinstance(event, yaml.NodeEvent):
            _note_key(event, opened)
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append(_Open(isinstance(event, yaml.MappingStartEvent)))
        if len(opened) > _MAX_DEPTH:
            raise ValueError("its front matter is nested too deeply")


def _note_key(event: yaml.NodeEvent, opened: list[_Open]) -> None:
    if not opened or not opened[-1].is_table:
        return
    table = opened[-1]
    if table.wants_key and isinstance(event, yaml.ScalarEvent):
        if event.value in table.keys:
            raise ValueError(f"its front matter has {event.value[:40]!r} twice")
        table.keys.add(event.value)
    table.wants_key = not table.wants_key
