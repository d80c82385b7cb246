"""How values look in notebooks: jackfield-notebook says it where it is installed; elsewhere they are shown as text."""

from __future__ import annotations

from jackfield._lazy import installed

_LIBRARY = "jackfield.display"


class InNotebooks:
    """What notebooks ask of a value."""

    def _repr_markdown_(self) -> str | None:
        library = installed(_LIBRARY)
        return None if library is None else str(library.markdown_of(self))

    def _ipython_display_(self) -> None:
        library = installed(_LIBRARY)
        if library is None:
            raise NotImplementedError  # the notebook then looks for another form
        library.show(self)
