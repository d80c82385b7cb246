"""Jackfield's messages and results in notebooks. This is a library, not a plugin: they ask it how they look."""

from __future__ import annotations

from jackfield_notebook.display import pictures_in, show
from jackfield_notebook.markdown import markdown_of

__all__ = ["markdown_of", "pictures_in", "show"]
