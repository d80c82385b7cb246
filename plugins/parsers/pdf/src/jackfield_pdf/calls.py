"""PDFium's functions, at the lowest cost of a call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def function(name: str) -> Callable[..., Any]:
    """Return a function of PDFium that takes and returns pointers as numbers, and keeps the GIL.

    The declarations of pypdfium2 release the GIL for each call and make an object of each pointer. For a function that
    only looks up a value, both take longer than its work.
    """
    import pypdfium2.raw as pdfium

    declared = getattr(pdfium, name)
    prototype = ctypes.PYFUNCTYPE(_as_number(declared.restype), *map(_as_number, declared.argtypes))
    return prototype(address(declared))


def address(pointer: Any) -> int:
    """Return the address of a function, or of a pointer's target."""
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def _as_number(kind: Any) -> Any:
    is_pointer = hasattr(kind, "contents")
    return ctypes.c_void_p if is_pointer else kind
