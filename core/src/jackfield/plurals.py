"""Write a count with its noun."""

from __future__ import annotations


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, as in `1 page` and `1,204 pages`.

    Args:
        count: The number of things.
        noun: The noun for one thing. It may follow an adjective, as in `more file`.
        plural: The noun for other counts, if it is not `noun` with an "s".
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
