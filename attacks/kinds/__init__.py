"""The kinds of attack, each in a module that defines `KIND`."""

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
