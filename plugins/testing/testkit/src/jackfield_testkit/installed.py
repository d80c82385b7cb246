"""Load the installed plugins without a developer's settings."""

from __future__ import annotations

from functools import cache

from jackfield.plugins import PluginHost, Settings


@cache  # what is installed does not change while tests run, and looking costs more than most tests
def plain_host() -> PluginHost:
    """Return a host with the installed plugins; plugins blocked by the developer's settings are included."""
    return PluginHost(Settings())
