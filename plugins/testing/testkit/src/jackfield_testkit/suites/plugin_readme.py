"""Read a distribution's README and the defaults stated in its tables of settings."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

_TABLE = re.compile(r"(?:^\|.*(?:\n|\Z))+", re.MULTILINE)
_CELL = re.compile(r"(?<!\\)\|")
_NAME = re.compile(r"`(\w+)`")
_WORD = re.compile(r"`[a-z][a-z_0-9]*`")
_NUMBER = re.compile(r"(?P<number>\d[\d,. ]*)(?: (?P<unit>KiB|MiB|GiB|million))?")
_UNITS = {None: 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "million": 10**6}
_TRUTHS = {"true": True, "false": False}


def readme_of(dist: str) -> str:
    """Return a distribution's README, reading the file itself for an editable install."""
    distribution = metadata.distribution(dist)
    installed = json.loads(distribution.read_text("direct_url.json") or "{}")
    if installed.get("dir_info", {}).get("editable"):
        file = Path(url2pathname(urlsplit(installed["url"]).path), "README.md")
        if file.is_file():
            return file.read_text(encoding="utf-8")
    about = distribution.metadata
    return str(about["Description"] or about.get_payload())  # type: ignore[attr-defined] # it is a message


def stated_defaults(text: str) -> Iterator[tuple[str, object]]:
    """Yield the settings and defaults from all tables with a `default` column whose cell is a literal."""
    for table in _TABLE.findall(text):
        head, *rows = map(_cells, table.splitlines())
        names_in = next((place for place, cell in enumerate(head) if "setting" in cell or cell.endswith("key")), None)
        if names_in is None or "default" not in head:
            continue
        for row in rows[1:]:  # without the separator below the header
            if len(row) != len(head):
                continue
            names, cell = _NAME.findall(row[names_in]), row[head.index("default")]
            cells = cell.split(", ") if len(names) > 1 else [cell]
            if len(cells) == len(names):
                yield from ((name, value) for name, one in zip(names, cells, strict=True) for value in _values(one))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _CELL.split(line)[1:-1]]


def _values(cell: str) -> Iterator[object]:
    """Yield the value in a cell, or nothing if the cell contains words."""
    text = cell.strip("`")
    number = _NUMBER.fullmatch(text)
    if number:
        yield float(re.sub("[, ]", "", number["number"])) * _UNITS[number["unit"]]
    elif text in _TRUTHS:
        yield _TRUTHS[text]
    else:
        try:
            yield ast.literal_eval(text)
        except (ValueError, SyntaxError):
            if _WORD.fullmatch(cell):
                yield text
