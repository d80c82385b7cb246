"""What a name that somebody typed means among the plugins that are installed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from jackfield.errors import PluginNotFoundError, closest
from jackfield.plugins import Catalog, Row, install_hint
from jackfield.settings import normalise


def rows_named(name: str, catalog: Catalog) -> list[Row]:
    """The components that a name means: a distribution, `kind.name`, `distribution/name`, both, or a bare name."""
    wanted = normalise(name)
    return [
        row
        for row in catalog.rows
        if wanted == row.distribution or name in (row.id, row.address, row.name, whole_name(row))
    ]


def whole_name(row: Row) -> str:
    """The name that means one component and no other: `kind.distribution/name`."""
    return f"{row.kind}.{row.address}"


def distributions_named(name: str, catalog: Catalog) -> list[str]:
    """The distributions that a name means: the one that is called so, broken or not, or those that offer it; sorted."""
    wanted = normalise(name)
    if wanted in distributions_in(catalog):
        return [wanted]
    return sorted({row.distribution for row in rows_named(name, catalog)})


def by_distribution(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Components grouped by who offers them, the distributions sorted."""
    by_name = attrgetter("distribution")
    return {name: list(of_one) for name, of_one in groupby(sorted(rows, key=by_name), by_name)}


def distributions_in(catalog: Catalog) -> set[str]:
    """The distributions with plugins, and those whose metadata are too broken to tell."""
    return {row.distribution for row in catalog.rows} | {problem.distribution for problem in catalog.problems}


def not_installed(name: str, catalog: Catalog) -> PluginNotFoundError:
    """The error for a name that means nothing here; it names what is close, and what to install."""
    names = {row.id if "." in name else row.name for row in catalog.rows}
    kind, _, short = name.partition(".")
    near = closest(name, sorted(names | distributions_in(catalog)))
    return PluginNotFoundError(f"no plugin {name!r:.200} is installed{near}{install_hint(kind, short)}")
