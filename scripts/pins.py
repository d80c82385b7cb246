"""Write version bounds for dependencies on our own distributions, following `docs/versions.md`: `make known`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENT = re.compile(r'"(?P<name>jackfield(?:-[a-z0-9-]+)?)(?P<extras>\[[^"\]]*\])?(?P<bounds>[<>=!~][^";]*)')
IMPORT = re.compile(r"^\s*(?:from|import) (jackfield_\w+)", re.MULTILINE)


def bounds_for(name: str, bounds: str, version: str, *, is_imported: bool) -> str:
    """Return the bounds for a dependency on one of our distributions.

    Args:
        name: The name of the distribution.
        bounds: The current bounds, whose lower bound is kept as long as the rule allows.
        version: The distribution's version in the repository.
        is_imported: True for libraries and anything else whose modules the dependent package imports.
    """
    current = Version(version)
    lowest = next((Version(one.version) for one in SpecifierSet(bounds) if one.operator == ">="), current)
    if name == "jackfield":
        return f">={lowest},<{max(current.major, 1) + 1}"  # 0.x and 1.x have the same plugin API
    if not is_imported:
        return f">={lowest}"
    if current.major:
        series, following = Version(f"{current.major}"), f"{current.major + 1}"
    else:
        series, following = Version(f"0.{current.minor}"), f"0.{current.minor + 1}"
    return f">={max(lowest, series)},<{following}"


def texts_with_pins(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file that contains pins, with its text as the rule requires."""
    projects = {
        path: tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for path in [root / "core/pyproject.toml", *sorted(root.glob("plugins/*/*/pyproject.toml"))]
    }
    versions = {str(project["name"]): str(project["version"]) for project in projects.values()}
    libraries = {str(project["name"]) for path, project in projects.items() if path.parent.parent.name == "libraries"}
    for path in projects:
        yield path, _apply(path, versions, libraries | _imported_below(path.parent / "src"))
    template = root / "plugin-template/template/pyproject.toml.jinja"
    for path in [template, *sorted(root.glob("docs/authors/*.md")), *sorted(root.glob("docs/kinds/*.md"))]:
        yield path, _apply(path, versions, libraries)


def _imported_below(source: Path) -> set[str]:
    names = {name for path in source.rglob("*.py") for name in IMPORT.findall(path.read_text(encoding="utf-8"))}
    return {name.replace("_", "-") for name in names}


def _apply(path: Path, versions: Mapping[str, str], imported: set[str]) -> str:
    def rewrite(match: re.Match[str]) -> str:
        name, extras = match["name"], match["extras"] or ""
        if name not in versions:
            return match[0]
        bounds = bounds_for(name, match["bounds"], versions[name], is_imported=name in imported)
        return f'"{name}{extras}{bounds}'

    return REQUIREMENT.sub(rewrite, path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for file, text in texts_with_pins(ROOT):
        if file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
