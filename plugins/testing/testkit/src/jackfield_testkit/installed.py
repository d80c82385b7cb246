"""What is installed, as it is without anybody's settings."""

from __future__ import annotations

from functools import cache

from jackfield.plugins import PluginHost, Settings


@cache  # what is installed does not change while tests run, and looking costs more than most tests
def plain_host() -> PluginHost:
    """The plugins that are installed; one that the developer has blocked is tested all the same."""
    return PluginHost(Settings())
