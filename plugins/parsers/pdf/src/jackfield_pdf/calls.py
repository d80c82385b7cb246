"""Call PDFium functions with minimal overhead."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def function(name: str) -> Callable[..., Any]:
    """Return a PDFium function that takes and returns pointers as integers, and that does not release the GIL.

    The declarations in pypdfium2 release the GIL on each call and wrap each pointer in an object. For functions that
    only look up a value, either costs more than the function itself.
    """
    import pypdfium2.raw as pdfium

    declared = getattr(pdfium, name)
    prototype = ctypes.PYFUNCTYPE(_as_number(declared.restype), *map(_as_number, declared.argtypes))
    return prototype(address(declared))


def address(pointer: Any) -> int:
    """Return the address of a function, or the address a pointer points to."""
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def _as_number(kind: Any) -> Any:
    is_pointer = hasattr(kind, "contents")
    return ctypes.c_void_p if is_pointer else kind
