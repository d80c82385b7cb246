"""Contracts for sandboxes, and the selection of a sandbox."""

from jackfield.sandboxes._choosing import AUTO, NONE, choose_sandbox, needs_approval
from jackfield.sandboxes._contract import (
    PREVENTED,
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

__all__ = [
    "AUTO",
    "NONE",
    "PREVENTED",
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
    "needs_approval",
]
