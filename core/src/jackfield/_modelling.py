"""pydantic's `BaseModel`, started so that no other distribution can keep it from starting.

At the first model of a process, pydantic looks for plugins of its own through the standard library, which fails as a
whole on one malformed `entry_points.txt`, whosever it is. pydantic does not look twice: the second model is built.
"""

from __future__ import annotations

from pydantic import BaseModel, create_model

__all__ = ["BaseModel"]

try:
    create_model("First")
except Exception:  # noqa: BLE001 - if something else is wrong, this one says so
    create_model("Second")
