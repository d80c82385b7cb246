"""Render the template's files without copier, byte for byte as copier would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment

SUFFIX = ".jinja"


def render(text: str, answers: Mapping[str, str | bool]) -> str:
    """Render a string from the template."""
    return _compile(text).render(answers)


def render_files(folder: Traversable, answers: Mapping[str, str | bool]) -> dict[PurePosixPath, bytes]:
    """Render all files of the plugin, by their paths within it.

    Names are templates as well. A file or directory whose name renders to nothing is omitted.
    """
    return dict(_render_below(folder, PurePosixPath(), answers))


def _render_below(
    folder: Traversable, parent: PurePosixPath, answers: Mapping[str, str | bool]
) -> Iterator[tuple[PurePosixPath, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = render(entry.name.removesuffix(SUFFIX), answers)
        if not name or entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _render_below(entry, parent / name, answers)
        elif entry.name.endswith(SUFFIX):
            yield parent / name, render(entry.read_text(encoding="utf-8"), answers).encode()
        else:
            yield parent / name, entry.read_bytes()


@cache
def _compile(text: str) -> Template:
    return _environment().from_string(text)


@cache
def _environment() -> SandboxedEnvironment:
    # Sandboxed like copier's, except that unknown names are errors.
    environment = SandboxedEnvironment(keep_trailing_newline=True, undefined=StrictUndefined)
    environment.filters["regex_search"] = _regex_search
    return environment


def _regex_search(text: str, pattern: str) -> str | None:
    """Jinja filter that copier adopts from Ansible."""
    match = re.search(pattern, text)
    return match.group() if match else None
