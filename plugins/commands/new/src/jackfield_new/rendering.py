"""The files of the template with answers put in: what copier would write, byte for byte, without copier."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment

SUFFIX = ".jinja"


def rendered(text: str, answers: Mapping[str, str | bool]) -> str:
    """A text of the template with answers put in."""
    return _compiled(text).render(answers)


def rendered_files(folder: Traversable, answers: Mapping[str, str | bool]) -> dict[PurePosixPath, bytes]:
    """Every file that these answers make, by its path in the made plugin.

    Names are templates, too: a file or folder whose name becomes empty is left out.
    """
    return dict(_walk(folder, PurePosixPath(), answers))


def _walk(
    folder: Traversable, inside: PurePosixPath, answers: Mapping[str, str | bool]
) -> Iterator[tuple[PurePosixPath, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        name = rendered(entry.name.removesuffix(SUFFIX), answers)
        if not name or entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _walk(entry, inside / name, answers)
        elif entry.name.endswith(SUFFIX):
            yield inside / name, rendered(entry.read_text(encoding="utf-8"), answers).encode()
        else:
            yield inside / name, entry.read_bytes()


@cache
def _compiled(text: str) -> Template:
    return _environment().from_string(text)


@cache
def _environment() -> SandboxedEnvironment:
    # Sandboxed as copier's is. Unlike copier's it fails at a name that nobody has answered.
    environment = SandboxedEnvironment(keep_trailing_newline=True, undefined=StrictUndefined)
    environment.filters["regex_search"] = _regex_search
    return environment


def _regex_search(text: str, pattern: str) -> str | None:
    """The filter that copier has from Ansible."""
    found = re.search(pattern, text)
    return found.group() if found else None
