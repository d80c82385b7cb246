"""Suggest corrections for misspelt names, and list names in a sentence."""

from __future__ import annotations

from collections.abc import Collection


def suggest(name: str, known: Collection[str]) -> str:
    """Return the end of an error message: names similar to `name` or, if there are none, up to eight known names."""
    close = close_names(name, known)
    if close:
        return f"; did you mean {' or '.join(repr(one) for one in close)}?"
    return f"; known: {list_names(known) or 'nothing'}"


def close_names(name: str, known: Collection[str]) -> list[str]:
    """Return up to three known names that are similar to `name`, closest first."""
    import difflib

    return difflib.get_close_matches(name, known, n=3, cutoff=0.6)


def list_names(names: Collection[str], max_names: int = 8) -> str:
    """Return sorted names for use in a sentence. If there are many, list the first names and the number of others."""
    ordered = sorted(set(names))
    more = f" and {len(ordered) - max_names} more" if len(ordered) > max_names else ""
    return ", ".join(ordered[:max_names]) + more


def shell_path(path: object) -> str:
    """Return a path as a word of a suggested command. A name that starts with a dash would be parsed as an option.

    >>> print(shell_path("my agent.yaml"), shell_path("-agent.yaml"))
    'my agent.yaml' ./-agent.yaml
    """
    import shlex  # only needed in messages

    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)
