"""What belongs to one run of an agent."""

from jackfield.runs.resources import RunResources

__all__ = ["RunResources"]
