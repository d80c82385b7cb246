"""Fetching from the web without being led into a private network. A library, not a plugin."""

from __future__ import annotations

from jackfield_fetch.fetcher import Fetched, Fetcher, FetchError
from jackfield_fetch.rules import FetchConfig, is_public, shown

__all__ = ["FetchConfig", "FetchError", "Fetched", "Fetcher", "is_public", "shown"]
