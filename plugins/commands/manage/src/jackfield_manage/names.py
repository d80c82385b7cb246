"""Resolve names typed by the user to installed plugins."""

from __future__ import annotations

from collections.abc import Iterable

from jackfield.errors import PluginNotFoundError
from jackfield.plugins import Catalog, Row, install_hint
from jackfield.settings import normalise
from jackfield.suggestions import suggest


def find_rows(name: str, catalog: Catalog) -> list[Row]:
    """Return the components that match a name.

    Args:
        name: A distribution, `kind.name`, `distribution/name`, `kind.distribution/name`, or a component's bare name.
        catalog: The installed components.
    """
    normalised = normalise(name)
    return [
        row
        for row in catalog.rows
        if normalised == row.distribution or name in (row.id, row.address, row.name, full_name(row))
    ]


def full_name(row: Row) -> str:
    """Return a component's only unambiguous name: `kind.distribution/name`."""
    return f"{row.kind}.{row.address}"


def find_distributions(name: str, catalog: Catalog) -> list[str]:
    """Return the distribution with this name, even if broken, or else those that offer a component with this name."""
    normalised = normalise(name)
    if normalised in all_distributions(catalog):
        return [normalised]
    return sorted({row.distribution for row in find_rows(name, catalog)})


def group_by_distribution(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group components by distribution, sorted by the distribution's name."""
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.distribution):
        groups.setdefault(row.distribution, []).append(row)
    return groups


def all_distributions(catalog: Catalog) -> set[str]:
    """Return the distributions that have plugins, or whose metadata cannot be read."""
    return {row.distribution for row in catalog.rows} | {problem.distribution for problem in catalog.problems}


def not_installed_error(name: str, catalog: Catalog) -> PluginNotFoundError:
    """Return the error for a name that is not installed, suggesting similar names and packages to install."""
    names = {row.id if "." in name else row.name for row in catalog.rows}
    kind, _, short = name.partition(".")
    suggestion = suggest(name, sorted(names | all_distributions(catalog)))
    return PluginNotFoundError(f"no plugin {name!r:.200} is installed{suggestion}{install_hint(kind, short)}")
