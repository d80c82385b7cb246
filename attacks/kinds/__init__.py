"""The kinds of attack, a module each, with its `KIND`."""

from __future__ import annotations

NAMES = (
    "faults",
    "cuts",
    "breaks",
    "connections",
    "tools",
    "answers",
    "documents",
    "images",
    "services",
    "secrets",
    "terminals",
    "kills",
    "ownership",
    "serving",
    "trees",
    "stops",
    "projects",
    "files",
    "approval",
    "interpreter",
    "sandbox",
    "borders",
    "patterns",
    "messages",
    "mcp",
)
