"""Moved to `jackfield.errors`."""

from jackfield.errors import LocalsForgotten, forget_locals

__all__ = ["LocalsForgotten", "forget_locals"]
