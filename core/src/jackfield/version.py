"""The version of the core, which must match `pyproject.toml`."""

__version__ = "0.1.0"
