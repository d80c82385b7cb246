"""Display messages and results in notebooks. The message and result classes call this package to render themselves."""

from jackfield.display._markdown import markdown_of
from jackfield.display._pictures import pictures_in, show
from jackfield.display._progress import ProgressOutput

__all__ = ["ProgressOutput", "markdown_of", "pictures_in", "show"]
