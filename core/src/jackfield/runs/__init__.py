"""Runs of agents: the resources that they open, and the observers that follow them."""

from __future__ import annotations

from jackfield.runs._observers import Observer
from jackfield.runs._resources import RunResources

__all__ = ["Observer", "RunResources"]
