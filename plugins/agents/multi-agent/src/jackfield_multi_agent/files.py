"""Paths of this package's data files."""

from __future__ import annotations

from pathlib import Path

PROMPTS = Path(__file__).with_name("prompts.toml")
