"""Processors, which act between a caller and a backend."""

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
from jackfield.processors._order import Placed, in_order, placed_in_order

__all__ = [
    "CallFormat",
    "CallFormatProcessor",
    "CallNext",
    "FunctionPostprocessor",
    "FunctionPreprocessor",
    "Phase",
    "Placed",
    "Postprocessor",
    "Preprocessor",
    "Processor",
    "StreamTransform",
    "in_order",
    "placed_in_order",
    "transformed",
]
