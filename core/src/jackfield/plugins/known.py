"""The distributions we publish, for the sentence that says what to install."""

from __future__ import annotations

# kind.name → distribution. A test holds this against the plugins in the repository.
KNOWN: dict[str, str] = {}


def install_line(kind: str, name: str) -> str:
    """` Install it: pip install …` for a component that a known distribution offers, else ''."""
    distribution = KNOWN.get(f"{kind}.{name}")
    return f". Install it: pip install {distribution}" if distribution else ""
