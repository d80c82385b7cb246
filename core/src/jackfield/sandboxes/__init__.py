"""Sandboxes: where code runs that nobody has read, what it may do there, and how one is chosen."""

from __future__ import annotations

from jackfield.sandboxes._base import (
    RISKS,
    CodeResult,
    CodeSandbox,
    Finished,
    Limits,
    Program,
    ProgramSandbox,
    Protection,
    Risk,
    Sandbox,
)
from jackfield.sandboxes._choosing import AUTO, NONE, choose_sandbox

__all__ = [
    "AUTO",
    "NONE",
    "RISKS",
    "CodeResult",
    "CodeSandbox",
    "Finished",
    "Limits",
    "Program",
    "ProgramSandbox",
    "Protection",
    "Risk",
    "Sandbox",
    "choose_sandbox",
]
