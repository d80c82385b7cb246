"""Serve agents with `jackfield serve`, or with `serving_app` from an application of your own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_serve.app import ServingApp, serving_app
    from jackfield_serve.tokens import Tokens

__all__ = ["ServingApp", "Tokens", "serving_app"]

_MODULES = {
    "ServingApp": "jackfield_serve.app",
    "Tokens": "jackfield_serve.tokens",
    "serving_app": "jackfield_serve.app",
}


def __getattr__(name: str) -> Any:
    # Imported on first use, so that describing the command loads nothing.
    if name not in _MODULES:
        raise AttributeError(f"module 'jackfield_serve' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
