"""A skill: a folder with a SKILL.md. Source: the Agent Skills specification, agentskills.io/specification."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jackfield.errors import ConfigError, ToolArgumentError
from jackfield_agent_files.tables import parse_table
from jackfield_skills.files import read_text

FILE = "SKILL.md"
_MAX_FRONT_MATTER = 16 * 1024
_MAX_DEPTH = 10
_MAX_NAME, _MAX_DESCRIPTION = 64, 1024
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(\r?\n|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as first presented to a model.

    Attributes:
        name: The name in the skill's SKILL.md, identical to its folder's name.
        description: The skill's purpose and when to use it, on one line.
        folder: The skill's folder.
    """

    name: str
    description: str
    folder: Path

    @property
    def line(self) -> str:
        """The skill's entry in the list that the model is given at the start."""
        return f"- {self.name}: {self.description}"


def load_skill(folder: Path) -> Skill:
    """Read a skill's name and description, but not its body.

    Raises:
        ConfigError: The skill does not conform to the specification; the message says how.
    """
    try:
        text = read_text(folder, FILE, most_bytes=_MAX_FRONT_MATTER)
        table = _front_matter(text)
        return Skill(_name(table, folder), _description(table), folder)
    except (ToolArgumentError, ValueError) as error:
        raise ConfigError(f"{folder / FILE}: {error}") from error


def body_of(text: str) -> str:
    """Return the text of a SKILL.md without its front matter."""
    match = _FRONT_MATTER.match(text)
    return text[match.end() :].strip() if match else text


def _front_matter(text: str) -> dict[object, object]:
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise ValueError(
            "missing front matter: the file must start with a --- line, followed by `name:` and `description:` lines "
            f"and, within {_MAX_FRONT_MATTER // 1024} KiB, another --- line"
        )
    try:
        table = parse_table(match[1], "yaml", max_depth=_MAX_DEPTH)
    except ValueError as error:
        raise ValueError(f"cannot parse the front matter: {error}") from None
    if not isinstance(table, dict):
        raise ValueError("the front matter must contain `name:` and `description:` lines")
    return table


def _name(table: dict[object, object], folder: Path) -> str:
    name = table.get("name")
    if not isinstance(name, str) or len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r:.80} is not a valid name: use 1 to {_MAX_NAME} characters from a-z, 0-9 and single "
            f"hyphens between them"
        )
    if name != folder.name:
        raise ValueError(f"name {name!r} does not match the folder name {folder.name!r}: they must be the same")
    return name


def _description(table: dict[object, object]) -> str:
    description = table.get("description")
    if not isinstance(description, str) or not description.strip():
        raise ValueError("missing description: describe what the skill does and when to use it")
    if len(description) > _MAX_DESCRIPTION:
        raise ValueError(f"description must be at most {_MAX_DESCRIPTION:,} characters, got {len(description):,}")
    # A single line without hidden characters, because a model reads it in a list with other skills.
    return "".join(one for one in " ".join(description.split()) if one.isprintable())
