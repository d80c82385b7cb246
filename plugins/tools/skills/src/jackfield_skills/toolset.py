"""The `skills` toolset: skills from folders, and the MCP servers that come with them."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import Field

from jackfield.config import Config, PathText
from jackfield.errors import ConfigError
from jackfield.plugins import Plugins, default_host
from jackfield.tools import ToolContext, ToolEntry, Toolset
from jackfield_skills.portable import MANIFEST, SERVERS, SKILLS, check_manifest, servers_of
from jackfield_skills.skill import FILE, Skill, load_skill
from jackfield_skills.tool import SkillTool

PROJECT_FOLDER = Path(".agents", "skills")
_MCP = "mcp"

_log = logging.getLogger(__name__)


class SkillsConfig(Config):
    """Settings for the skill folders and their MCP servers."""

    folders: tuple[PathText, ...] = Field(
        default=(),
        description="Skills, folders of skills, and folders in the Agent Plugins format; by default, "
        ".agents/skills of a trusted project",
    )
    mcp: bool = Field(default=True, description="Use the MCP servers of folders in the Agent Plugins format")


class Skills(Toolset):
    """Skills from folders. A model sees each skill's name and description, and reads the rest with a tool.

    The folders are scanned when an agent is built. A skill's text is read when the model asks for it.
    """

    name = "skills"
    config_class = SkillsConfig
    config: SkillsConfig

    def fixed_tools(self) -> Sequence[ToolEntry]:
        """Return the `skill` tool, and the MCP servers of the folders.

        Raises:
            ConfigError: A folder is invalid or has no skills, or two skills or MCP servers share a name.
        """
        host = self.host or default_host()
        named = [Path(one).expanduser() for one in self.config.folders]
        skills = _by_name(chain.from_iterable(map(_skills_in, named or [_of_project(host)])))
        # Only for folders named in the configuration, because a server is a program.
        with_servers = [one for one in named if self.config.mcp and (one / MANIFEST).is_file()]
        servers = _servers_by_name(with_servers)
        return [*([SkillTool(skills)] if skills else []), *_entries(servers, host)]

    async def tools_of_run(self, context: ToolContext) -> Sequence[ToolEntry]:  # noqa: ARG002 - they are fixed
        """Return the fixed tools, which are the same for every run."""
        return self.fixed_tools()


def _by_name(skills: Iterable[Skill]) -> dict[str, Skill]:
    named: dict[str, Skill] = {}
    for skill in skills:
        if skill.name in named:
            where = f"{named[skill.name].folder} and {skill.folder}"
            raise ConfigError(f"two skills are named {skill.name!r}: {where}. Remove one of the folders")
        named[skill.name] = skill
    return named


def _servers_by_name(folders: Iterable[Path]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    folder_of: dict[str, Path] = {}
    for folder in folders:
        for name, server in _servers(folder).items():
            if name in named:
                where = f"{folder_of[name]} and {folder}"
                raise ConfigError(f"two MCP servers are named {name!r}: {where}. Remove one of the folders")
            named[name], folder_of[name] = server, folder
    return named


def _of_project(host: Plugins) -> Path:
    """Return the project's skill folder. The user must have trusted the project."""
    project = host.settings.project
    if project is None or not (project.path.parent / PROJECT_FOLDER).is_dir():
        raise ConfigError(
            f"skills: no folders configured. Set `folders: [FOLDER]`, or add {PROJECT_FOLDER.as_posix()} to a project "
            f"with [tool.jackfield] in its pyproject.toml"
        )
    if project.answer != "yes":
        raise ConfigError(
            f"skills: ignoring the skills of {project.path.parent}, because the project is not trusted. Review "
            f"them and run jackfield trust, or set `folders: [{PROJECT_FOLDER.as_posix()}]`"
        )
    folder = project.path.parent / PROJECT_FOLDER
    if project.path.parent.resolve() not in folder.resolve().parents:
        raise ConfigError(f"skills: {folder} resolves to a folder outside the project: specify that folder instead")
    return folder


def _skills_in(folder: Path) -> Iterator[Skill]:
    """Yield the skills of a folder, which is a skill itself, an Agent Plugin, or a folder of skills."""
    if not folder.is_dir():
        raise ConfigError(f"skills: {folder} is not a folder")
    if (folder / FILE).exists():
        yield load_skill(folder.resolve())
        return
    within = folder
    if (folder / MANIFEST).exists():
        check_manifest(folder)
        within = folder / SKILLS
        if not within.exists():
            return  # it has none (6.2)
    found = list(_valid_ones(folder, within))
    if not found:
        raise ConfigError(
            f"no skills in {within}. A skill is a folder with a {FILE} that starts with a name and a "
            f"description between two --- lines"
        )
    yield from found


def _valid_ones(root: Path, within: Path) -> Iterator[Skill]:
    """Yield the valid skills in a folder. Invalid ones are skipped with a warning (7.1)."""
    inside = root.resolve()
    for entry in sorted(within.iterdir()):
        if not (entry / FILE).exists():
            continue
        if inside not in entry.resolve().parents:
            _log.warning("skipping skill %s: it resolves to a folder outside %s", entry, root)
            continue
        try:
            yield load_skill(entry.resolve())
        except ConfigError as error:
            _log.warning("skipping a skill: %s", error)


def _servers(folder: Path) -> dict[str, Any]:
    if not (folder / SERVERS).exists():
        return {}
    name = check_manifest(folder)
    # The name alone is not unique: another plugin of the same name must not find this one's data.
    mark = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:12]
    return servers_of(folder, name=name, data=_data_folder() / f"{name}-{mark}")


def _data_folder() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local/share").absolute() / "jackfield" / "agent-plugins"


def _entries(servers: dict[str, Any], host: Plugins) -> list[ToolEntry]:
    if not servers:
        return []
    if _MCP not in host.names("tool"):
        raise ConfigError(
            f"skills: the folders define MCP servers ({', '.join(sorted(servers))}), but jackfield-mcp is not "
            "installed. To install it, run: pip install jackfield-mcp. To ignore the servers, set `mcp: false`"
        )
    for server in servers.values():
        if "env" in server:  # a server may rely on it (9.1)
            Path(server["env"]["PLUGIN_DATA"]).mkdir(parents=True, exist_ok=True)
    return [{"name": _MCP, "mcpServers": servers}]
