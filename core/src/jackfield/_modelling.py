"""pydantic's `BaseModel`, guarded against broken distributions.

When a process builds its first model, pydantic uses the standard library to look for plugins. The lookup fails if any
distribution has a malformed `entry_points.txt`. pydantic does not look again, so this module builds a first model and
ignores the failure.
"""

from __future__ import annotations

from pydantic import BaseModel, create_model

__all__ = ["BaseModel"]

try:
    create_model("First")
except Exception:  # noqa: BLE001 - for any other problem, the second attempt raises
    create_model("Second")
