"""The `tir_math` agent.

Importing this package is cheap: `TIRMathAgent` is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_math.agent import TIRMathAgent

__all__ = ["TIRMathAgent"]


def __getattr__(name: str) -> Any:
    if name == "TIRMathAgent":
        from jackfield_math.agent import TIRMathAgent

        return TIRMathAgent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
