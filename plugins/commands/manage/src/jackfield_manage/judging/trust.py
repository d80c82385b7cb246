"""Record which projects the user trusts, and show what their files request.

The core reads these records before it lets a project file do more than restrict.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError
from jackfield.projects import Project, trust_file
from jackfield.settings import CONSIDERED_KINDS, Settings, enabled_form, settings_form
from jackfield_manage.choices import replace_file

_EFFECT = {
    "processor": "sees and may change all questions and answers",
    "observer": "sees every event of every run",
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """A recorded agreement to a project file's content. `file` is the record."""

    path: Path
    content: str
    file: Path


def agree(project: Project, folder: Path) -> Path:
    """Record an agreement to a project file's content as it was read, and return the record's path.

    Raises:
        ConfigError: The record cannot be written.
    """
    target = trust_file(folder, project.path)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(target, json.dumps({"path": str(project.path), "content": project.content}, indent=1))
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def revoke(path: Path, folder: Path) -> bool:
    """Delete the agreement to a project file; return False if there was none.

    Raises:
        ConfigError: The record cannot be removed.
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
    """Return all agreements, sorted by path. Records in another format are omitted."""
    records: list[Agreement] = []
    for file in folder.glob("*.json"):
        try:
            entry = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        match entry:
            case {"path": str(path), "content": str(content)}:
                records.append(Agreement(Path(path), content, file))
    return sorted(records, key=lambda agreement: agreement.path)


def describe_request(project: Project, own: Settings, by_default: Collection[str] = ()) -> list[str]:
    """Describe in full what a project file changes once the user agrees.

    Args:
        project: The project file.
        own: The rules without it, to show what it would replace.
        by_default: The names of components that act in every run by default.

    Raises:
        ConfigError: The file enables or configures a component of a kind that it cannot.
    """
    request = project.asking
    return [
        *(_describe_enabled(enabled_form(name), own, by_default) for name in request.get("enabled", ())),
        *_describe_settings(request.get("settings", {}), own),
        *_describe_preferences(request.get("prefer", {}), own),
        *_describe_order(request, own),
        *(_describe_local_file(str(file.path), file.fault, file.content) for file in project.local),
    ]


def _describe_enabled(name: str, own: Settings, by_default: Collection[str]) -> str:
    already = ""
    if name in own.enabled:
        already = ", as it does already"
    elif name in by_default:
        already = ", as it already does by default"
    kind, _, address = name.partition(".")
    if address.endswith("/*"):
        return f"enabled: {address[:-2]} is used here for each {kind} that no other package provides{already}"
    if kind in CONSIDERED_KINDS:
        return f"enabled: {name} may be selected here without being named{already}"
    return f"enabled: {name} acts in every run here{already}: it {_EFFECT[kind]}"


def _describe_settings(request: Mapping[str, object], own: Settings) -> Iterator[str]:
    for name, settings in request.items():
        current = own.options.get(settings_form(name))
        replaced = "" if current is None else f", instead of your own: {_as_json(current)}"
        yield f"settings: {name} gets {_as_json(settings)}{replaced}"


def _describe_preferences(request: Mapping[str, str], own: Settings) -> Iterator[str]:
    for name, distribution in request.items():
        replaced = f", instead of the one from {own.prefer[name]}" if name in own.prefer else ""
        yield f"prefer: {name} refers to the one from {distribution}{replaced}"


def _describe_order(request: Mapping[str, Any], own: Settings) -> Iterator[str]:
    if "order" in request:
        replaced = f", instead of your own: {', '.join(own.order)}" if own.order else ""
        yield f"order: processors run in this order: {', '.join(request['order'])}{replaced}"


def _describe_local_file(path: str, fault: str, content: str) -> str:
    note = f", but it {fault}" if fault else f" (SHA-256 {content})"
    return f"local: the code in {path} runs here{note}. Read it first; if it changes, you must agree again"


def remark_on_project(settings: Settings) -> str:
    """Return a sentence about the ignored part of the project file, or '' if nothing is ignored."""
    return settings.project.remark if settings.project else ""


def describe_restrictions(project: Project) -> list[str]:
    """Describe a project file's restrictions, one line per rule."""
    return [f"{key}: {_as_json(value)}" for key, value in project.denying.items()]


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
