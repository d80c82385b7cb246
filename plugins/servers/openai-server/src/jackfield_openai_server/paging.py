"""Paginate lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield_openai_server.errors import ParameterError

_MOST = 100
_DEFAULT = 20
_KNOWN = frozenset({"limit", "order", "after", "include"})


def page_of(items: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the requested page of items, which are given oldest first.

    Raises:
        ParameterError: A query parameter is unknown or invalid.
    """
    if unknown := sorted(query.keys() - _KNOWN):
        raise ParameterError(
            f"Unknown parameter: {unknown[0][:60]!r}.", param=unknown[0][:60], code="unknown_parameter"
        )
    limit = query.get("limit", str(_DEFAULT))
    if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:9]) <= _MOST:
        raise ParameterError(f"`limit` must be a number from 1 to {_MOST}.", param="limit")
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise ParameterError("`order` must be 'asc' or 'desc'.", param="order")
    listed = list(items) if order == "asc" else list(reversed(items))
    if "after" in query:
        positions = [index for index, item in enumerate(listed) if item["id"] == query["after"]]
        if not positions:
            raise ParameterError("`after` must be the ID of an item in this list.", param="after")
        listed = listed[positions[0] + 1 :]
    page = listed[: int(limit)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": len(listed) > len(page),
    }
