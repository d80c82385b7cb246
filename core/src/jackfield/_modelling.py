"""pydantic's `BaseModel`, guarded against broken distributions.

The first model of a process makes pydantic look for its plugins through the standard library. One malformed
`entry_points.txt` of any distribution makes that fail. The second model would not look again, so it is built here.
"""

from __future__ import annotations

from pydantic import BaseModel, create_model

__all__ = ["BaseModel"]

try:
    create_model("First")
except Exception:  # noqa: BLE001 - if something else is wrong, this one says so
    create_model("Second")
