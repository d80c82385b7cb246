"""Write the core's list of known plugins from the entry points of the distributions in this repository.

python scripts/known_plugins.py            writes it
python scripts/known_plugins.py --check    only says whether it is up to date, by its exit code
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KNOWN_FILE = ROOT / "core/src/jackfield/plugins/known.py"
GROUP = "jackfield.v1"
_ASSIGNMENT = re.compile(r"^KNOWN: dict\[str, str\] = \{.*?\}$", re.MULTILINE | re.DOTALL)


def known_plugins(root: Path) -> dict[str, str]:
    """The distribution of every `kind.name` in the repository, sorted.

    Raises:
        SystemExit: Two of our own distributions offer one name.
    """
    known: dict[str, str] = {}
    for path in sorted(root.glob("plugins/*/*/pyproject.toml")):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for component in project.get("entry-points", {}).get(GROUP, {}):
            if component in known:
                sys.exit(f"{component} is offered by {known[component]} and by {project['name']}: rename one")
            known[component] = project["name"]
    return dict(sorted(known.items()))


def with_known(source: str, known: dict[str, str]) -> str:
    """The source of `known.py` with another list."""
    lines = "".join(f'    "{component}": "{distribution}",\n' for component, distribution in known.items())
    body = f"{{\n{lines}}}" if known else "{}"
    written, count = _ASSIGNMENT.subn(f"KNOWN: dict[str, str] = {body}", source)
    if count != 1:
        sys.exit(f"{KNOWN_FILE} has {count} assignments of KNOWN, and must have one")
    return written


def main(arguments: list[str]) -> int:
    """Write, or check; 1 if the list was checked and is old."""
    source = KNOWN_FILE.read_text(encoding="utf-8")
    wanted = with_known(source, known_plugins(ROOT))
    if "--check" in arguments:
        return int(source != wanted)
    KNOWN_FILE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
