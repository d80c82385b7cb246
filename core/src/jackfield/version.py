"""The version of the core; `pyproject.toml` says the same."""

__version__ = "0.1.0"
