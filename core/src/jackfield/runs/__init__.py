"""What belongs to runs of agents: what they open, and who is told of them."""

from jackfield.runs._observers import Observer
from jackfield.runs._resources import RunResources

__all__ = ["Observer", "RunResources"]
