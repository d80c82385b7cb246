"""Its names have moved to the library for backends."""

from jackfield._lazy import fetching

__getattr__, _ = fetching(__name__, {}, moved={"Tags": "jackfield_backend.tags"})
