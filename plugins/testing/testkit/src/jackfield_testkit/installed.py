"""Load installed plugins, ignoring the developer's settings."""

from __future__ import annotations

from functools import cache
from typing import NoReturn

import pytest

from jackfield.plugins import PluginHost, Settings, default_host


@cache  # installed packages do not change while tests run, and scanning them costs more than most tests
def plain_host() -> PluginHost:
    """Return a host with all installed plugins, including those blocked in the developer's settings."""
    return PluginHost(Settings())


def forbid_default_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a component fail that asks for the process's default host, directly or by passing no host on."""
    # The code rather than the name, because modules that are imported later would keep a replaced function.
    monkeypatch.setattr(default_host, "__code__", _fail.__code__)


def _fail() -> NoReturn:
    raise AssertionError(
        "the component must not use the default host: get plugins, settings and keys from the host that it was given, "
        "and pass that host on"
    )
