"""What belongs to runs of agents: what they open, and who is told of them."""

from jackfield.runs.observers import Observer
from jackfield.runs.resources import RunResources

__all__ = ["Observer", "RunResources"]
