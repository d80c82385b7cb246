"""Show the progress of preparations while a notebook cell waits for the answer."""

from __future__ import annotations

import sys
from typing import Any
from uuid import uuid4


class ProgressOutput:
    """A line of output below the running cell. Each update replaces the line, and it is cleared at the end.

    Outside a notebook, nothing is shown.
    """

    def __init__(self) -> None:
        self._publish = _find_publish()
        self._display_id = ""

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._publish is None:
            return
        is_new = not self._display_id
        self._display_id = self._display_id or uuid4().hex
        self._publish({"text/plain": text}, transient={"display_id": self._display_id}, update=not is_new)

    def clear(self) -> None:
        """Clear the line, if there is one."""
        if self._display_id:
            self.show("")
            self._display_id = ""


def _find_publish() -> Any:
    """Return the function that publishes output in a notebook. Outside a notebook, even in IPython, return None."""
    module = sys.modules.get("IPython")
    shell: Any = None if module is None else module.get_ipython()
    return shell.display_pub.publish if hasattr(shell, "kernel") else None
