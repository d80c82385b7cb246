"""pydantic's `BaseModel`, guarded against broken distributions.

For the first model of a process, pydantic looks for its plugins with the standard library, which fails if any
distribution has a malformed `entry_points.txt`. It does not look again for the second model, so this module builds the
first one, and ignores its failure.
"""

from __future__ import annotations

from pydantic import BaseModel, create_model

__all__ = ["BaseModel"]

try:
    create_model("First")
except Exception:  # noqa: BLE001 - for any other problem, the second attempt raises
    create_model("Second")
