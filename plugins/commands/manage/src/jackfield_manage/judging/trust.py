"""To which projects somebody has agreed, and to what: `projects` asks this before a file may do more than narrow."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError
from jackfield.projects import Project, trust_file
from jackfield.settings import CONSIDERED_KINDS, Settings, enabled_form
from jackfield_manage.choices import write_whole

_EFFECT = {
    "processor": "sees and may change all questions and answers",
    "observer": "sees every event of every run",
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """A yes that is remembered; `file` is where."""

    path: Path
    content: str
    file: Path


def agree(project: Project, folder: Path) -> Path:
    """Remember an agreement to a project's file as it was read; returns the file that remembers it.

    Raises:
        ConfigError: It cannot be written.
    """
    target = trust_file(folder, project.path)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(target, json.dumps({"path": str(project.path), "content": project.content}, indent=1))
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def revoke(path: Path, folder: Path) -> bool:
    """Forget the yes to a project's file; gives whether there was one.

    Raises:
        ConfigError: It cannot be removed.
    """
    target = trust_file(folder, path)
    try:
        target.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{target} cannot be removed: {error.strerror or error}") from error
    return True


def agreements(folder: Path) -> list[Agreement]:
    """Everything that was agreed to, by path; entries in another format are left out."""
    return sorted(_kept(folder), key=lambda one: one.path)


def _kept(folder: Path) -> Iterator[Agreement]:
    for file in folder.glob("*.json"):
        try:
            entry = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        match entry:
            case {"path": str(path), "content": str(content)}:
                yield Agreement(Path(path), content, file)


def asked_for(project: Project, own: Settings, by_default: Collection[str] = ()) -> list[str]:
    """What a project's file would do once it is agreed to, a line each; nothing is shortened.

    Args:
        project: The file.
        own: The rules without it, to tell what it would replace.
        by_default: What acts in every run though nobody has enabled it.

    Raises:
        ConfigError: It enables what cannot be enabled.
    """
    asking = project.asking
    enabled = map(enabled_form, asking.get("enabled", ()))
    return [
        *(_enabled(name, _already(name, own, by_default)) for name in enabled),
        *_changed_rules(asking, own),
        *(_local(str(file.path), file.fault, file.content) for file in project.local),
    ]


def _already(name: str, own: Settings, by_default: Collection[str]) -> str:
    if name in own.enabled:
        return ", as it does already"
    return ", as it already does by default" if name in by_default else ""


def _enabled(name: str, already: str) -> str:
    kind, _, address = name.partition(".")
    if address.endswith("/*"):
        return f"enabled: {address[:-2]} is used here for each {kind} that no other package offers{already}"
    if kind in CONSIDERED_KINDS:
        return f"enabled: {name} may be picked here without being named{already}"
    return f"enabled: {name} acts in every run here{already}: it {_EFFECT[kind]}"


def _changed_rules(asking: Mapping[str, Any], own: Settings) -> Iterator[str]:
    """What settings, names and orders would mean here, and what they mean without the file."""
    yield from _changed_settings(asking.get("settings", {}), own)
    yield from _changed_preferences(asking.get("prefer", {}), own)
    if "order" in asking:
        replaced = f", instead of your own: {', '.join(own.order)}" * bool(own.order)
        yield f"order: the processors stand in this order: {', '.join(asking['order'])}{replaced}"


def _changed_settings(asking: Mapping[str, object], own: Settings) -> Iterator[str]:
    for name, given in asking.items():
        before = own.options.get(enabled_form(name))
        replaced = f", instead of your own: {_shown(before)}" * (before is not None)
        yield f"settings: {name} gets {_shown(given)}{replaced}"


def _changed_preferences(asking: Mapping[str, str], own: Settings) -> Iterator[str]:
    for name, distribution in asking.items():
        replaced = f", instead of the one of {own.prefer[name]}" if name in own.prefer else ""
        yield f"prefer: {name} means the one of {distribution}{replaced}"


def _local(path: str, fault: str, content: str) -> str:
    doubt = f", but it {fault}" if fault else f" (SHA-256 {content})"
    return f"local: the code in {path} runs here{doubt}. Read it first; if it changes, you must agree again"


def remark_on_project(settings: Settings) -> str:
    """What of the project's file does not count, as a sentence; '' if all of it does."""
    return settings.project.remark if settings.project else ""


def denied_by(project: Project) -> list[str]:
    """What a project's file takes away, a line for each rule."""
    return [f"{key}: {_shown(value)}" for key, value in project.denying.items()]


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
