"""Render the files of the template, byte for byte as copier would write them, without copier."""

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
    """Render a text of the template."""
    return _compile(text).render(answers)


def render_files(folder: Traversable, answers: Mapping[str, str | bool]) -> dict[PurePosixPath, bytes]:
    """Render every file of the plugin, by its path in the plugin.

    Names are templates as well: a file or folder whose name becomes empty is left out.
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
    # Sandboxed like copier's, but an unknown name is an error.
    environment = SandboxedEnvironment(keep_trailing_newline=True, undefined=StrictUndefined)
    environment.filters["regex_search"] = _regex_search
    return environment


def _regex_search(text: str, pattern: str) -> str | None:
    """Jinja filter that copier takes from Ansible."""
    match = re.search(pattern, text)
    return match.group() if match else None
