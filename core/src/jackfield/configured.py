"""Moved to `jackfield.config`."""

from jackfield._lazy import fetching

__getattr__, _ = fetching(__name__, {}, moved=dict.fromkeys(("Configured", "PathText"), "jackfield.config"))
