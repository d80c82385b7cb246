"""Processors, which sit between callers and backends."""

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
