"""Suggest what a misspelt name may mean, and list names in a sentence."""

from __future__ import annotations

from collections.abc import Collection


def suggest(name: str, known: Collection[str]) -> str:
    """Return the rest of an error's sentence: the names close to `name`, else the known names, eight at most."""
    close = close_names(name, known)
    if close:
        return f"; did you mean {' or '.join(repr(one) for one in close)}?"
    return f"; known: {list_names(known) or 'nothing'}"


def close_names(name: str, known: Collection[str]) -> list[str]:
    """Return the known names that are close to a name, the closest first, three at most."""
    import difflib

    return difflib.get_close_matches(name, known, n=3, cutoff=0.6)


def list_names(names: Collection[str], max_names: int = 8) -> str:
    """Return names for a sentence, sorted; of many, only the first ones and the number of the others."""
    ordered = sorted(set(names))
    more = f" and {len(ordered) - max_names} more" if len(ordered) > max_names else ""
    return ", ".join(ordered[:max_names]) + more
