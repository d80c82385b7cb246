"""The `skill` tool, with which a model reads skills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.errors import ToolArgumentError
from jackfield.plurals import format_count
from jackfield.suggestions import suggest
from jackfield.tools import BaseTool, ToolContext
from jackfield_skills.files import files_below, read_text
from jackfield_skills.skill import FILE, Skill, body_of

NAME = "skill"
_PART_CHARS = 16_000
_LISTED_FILES = 50
_ABOUT = {
    "en": "Read a skill: instructions for a kind of task, with files. Before a task that matches a skill, read "
    "the skill "
    "and follow it as far as that serves the user's request. The skills:",
    "zh": "读取技能：针对某类任务的说明及其文件。在处理与某个技能相符的任务之前，先读取该技能，"
    "然后在有助于完成用户要求的范围内按其说明操作。可用的技能：",
}

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The name of the skill"},
        "file": {"type": "string", "description": "Path of a file in the skill; if omitted, the skill's instructions"},
        "part": {
            "type": "integer",
            "minimum": 1,
            "description": "Part of a long text to return; the first if omitted",
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


class SkillTool(BaseTool):
    """Lists the available skills for a model and returns their text. Nothing in a skill is ever executed.

    Args:
        skills: The skills by name.
    """

    name = NAME
    read_only = True
    parameters = _PARAMETERS

    def __init__(self, skills: Mapping[str, Skill]) -> None:
        super().__init__()
        self._skills = dict(skills)
        lines = "\n".join(skill.line for skill in self._skills.values())
        self.description = {lang: f"{about}\n{lines}" for lang, about in _ABOUT.items()}

    def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> str:  # noqa: ARG002
        """Read a skill or one of its files.

        Raises:
            ToolArgumentError: The skill, file or part does not exist, or the file is not text.
        """
        arguments = self.parse_arguments(params)
        name, file = arguments["name"], arguments.get("file") or FILE
        skill = self._skills.get(name)
        if skill is None:
            raise ToolArgumentError(f"no skill named {name!r}{suggest(name, list(self._skills))}")
        text = read_text(skill.folder, file)
        if file != FILE:
            return _part(text, arguments.get("part", 1))
        return _part(f"{body_of(text)}\n\n{_files(skill)}".strip(), arguments.get("part", 1))


def _files(skill: Skill) -> str:
    names, has_more = files_below(skill.folder, most=_LISTED_FILES + 1)
    listed = [name for name in names if name != FILE][:_LISTED_FILES]
    if not listed:
        return ""
    more = ["…"] if has_more else []
    return "\n".join(["[Files of this skill:", *listed, *more, "]"])


def _part(text: str, number: int) -> str:
    count = max(1, -(-len(text) // _PART_CHARS))
    if number > count:
        raise ToolArgumentError(f"no part {number}: the text has {format_count(count, 'part')}")
    part = text[(number - 1) * _PART_CHARS : number * _PART_CHARS]
    if count == 1:
        return part
    rest = f": call again with part={number + 1} to continue" if number < count else ""
    return f"{part}\n[part {number} of {count}{rest}]"
