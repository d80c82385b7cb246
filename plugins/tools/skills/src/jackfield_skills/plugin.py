"""Plugin hooks for the `skills` toolset."""

from __future__ import annotations

from jackfield.plugins import ToolsetSpec, hook


@hook.toolsets
def toolsets() -> list[ToolsetSpec]:
    """Provide the `skills` toolset."""
    return [
        ToolsetSpec(
            name="skills",
            target="jackfield_skills.toolset:Skills",
            summary="Skills: folders with a SKILL.md, listed to the model by name and read on request.",
            config="jackfield_skills.toolset:SkillsConfig",
        )
    ]
