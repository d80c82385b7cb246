"""Fetch web resources safely, without reaching private networks. A library, not a plugin."""

from __future__ import annotations

from jackfield_fetch.fetcher import Fetched, Fetcher, FetchError
from jackfield_fetch.networks import is_public
from jackfield_fetch.rules import MAX_URL_CHARS, FetchConfig, shown

__all__ = ["MAX_URL_CHARS", "FetchConfig", "FetchError", "Fetched", "Fetcher", "is_public", "shown"]
