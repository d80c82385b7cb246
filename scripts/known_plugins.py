"""Write the core's list of known plugins from the distributions in this repository, without loading any of them.

python scripts/known_plugins.py            write the list
python scripts/known_plugins.py --check    only report by exit code if the list is up to date
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jackfield.plugins import API, Known, Row
from jackfield_manage.judging.source import described_in_source

ROOT = Path(__file__).resolve().parent.parent
KNOWN_FILE = ROOT / "core/src/jackfield/plugins/known.json"
GROUP = "jackfield.v1"


def known_plugins(root: Path) -> dict[str, Known]:
    """Return every `kind.name` in the repository, sorted, with information from its descriptor.

    Raises:
        SystemExit: Two of our distributions offer the same name or claim models of the same name, or a component cannot
            be described from its source.
    """
    known: dict[str, Known] = {}
    for path in sorted(root.glob("plugins/*/*/pyproject.toml")):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for component, module in project.get("entry-points", {}).get(GROUP, {}).items():
            if component in known:
                sys.exit(f"{component} is offered by {known[component].distribution} and by {project['name']}")
            values = _described(component, module, path.parent / "src")
            known[component] = Known.of(project["name"], values)
    _check_patterns(known)
    return dict(sorted(known.items()))


def _check_patterns(known: Mapping[str, Known]) -> None:
    said = [pattern for one in known.values() for pattern in (*one.keys, *one.names)]
    if twice := {pattern for pattern in said if said.count(pattern) > 1}:
        sys.exit(f"two backends say that these mean them: {', '.join(sorted(twice))}")


def _described(component: str, module: str, sources: Path) -> Mapping[str, Any]:
    kind, _, name = component.partition(".")
    row = Row(kind, name, module, "", "", API, "")
    described = described_in_source(row, [str(sources)])
    if described is None or described.unknown:
        sys.exit(
            f"{component}: {module} must describe it with literal values, so that it can be told without loading it"
        )
    return described.values


def as_text(known: dict[str, Known]) -> str:
    """Return the text of the file."""
    return json.dumps({name: _without_empty(one) for name, one in known.items()}, indent=2, ensure_ascii=False) + "\n"


def _without_empty(one: Known) -> dict[str, Any]:
    return {key: value for key, value in one._asdict().items() if value or key == "summary"}


def main(arguments: list[str]) -> int:
    """Write or check the list. Return 1 if a check finds it outdated."""
    wanted = as_text(known_plugins(ROOT))
    if "--check" in arguments:
        return int(KNOWN_FILE.read_text(encoding="utf-8") != wanted)
    KNOWN_FILE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
