"""Show messages and results in notebooks."""

from jackfield.display._markdown import markdown_of, messages_of
from jackfield.display._pictures import pictures_in, show

__all__ = ["markdown_of", "messages_of", "pictures_in", "show"]
