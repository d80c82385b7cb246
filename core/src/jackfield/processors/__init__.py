"""Processors, which act between a caller and a backend."""

from jackfield._lazy import fetching
from jackfield.processors._base import (
    CallFormat,
    CallFormatProcessor,
    CallNext,
    FunctionPostprocessor,
    FunctionPreprocessor,
    Phase,
    Postprocessor,
    Preprocessor,
    Processor,
    StreamTransform,
    transformed,
)
from jackfield.processors._order import in_order
from jackfield.streams import closing

__all__ = [
    "CallFormat",
    "CallFormatProcessor",
    "CallNext",
    "FunctionPostprocessor",
    "FunctionPreprocessor",
    "Phase",
    "Postprocessor",
    "Preprocessor",
    "Processor",
    "StreamTransform",
    "closing",
    "in_order",
    "transformed",
]

__getattr__, _ = fetching(
    __name__, {}, moved=dict.fromkeys(("Placed", "placed_in_order"), "jackfield_manage.pipelines")
)
