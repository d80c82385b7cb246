"""The names of the kinds of components; what describes each is in `descriptors`, which costs more to import."""

from __future__ import annotations

STABLE_KINDS = ("llm", "tool", "searcher", "processor", "agent")
PROVISIONAL_KINDS = (
    "call_format",
    "tokenizer",
    "embedder",
    "parser",
    "sandbox",
    "store",
    "runner",
    "observer",
    "command",
    "server",
)
"""Kinds whose contract may still change: each has fewer than two real plugins, or is young."""


def is_kind(name: str) -> bool:
    """Whether this core knows a kind."""
    return name in STABLE_KINDS or name in PROVISIONAL_KINDS


def hook_name(kind: str) -> str:
    """The hook that returns the descriptors of a kind: its plural."""
    return "sandboxes" if kind == "sandbox" else f"{kind}s"
