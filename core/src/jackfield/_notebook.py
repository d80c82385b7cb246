"""How values look in notebooks: jackfield-notebook says it where it is installed; elsewhere they are shown as text."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_LIBRARY = "jackfield_notebook"


class InNotebooks:
    """What notebooks ask of a value."""

    def _repr_markdown_(self) -> str | None:
        library = _library()
        return None if library is None else str(library.markdown_of(self))

    def _ipython_display_(self) -> None:
        library = _library()
        if library is None:
            raise NotImplementedError  # the notebook then looks for another form
        library.show(self)


def _library() -> Any:
    try:
        return import_module(_LIBRARY)
    except ModuleNotFoundError as error:
        if error.name != _LIBRARY:
            raise
        return None
