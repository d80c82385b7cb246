"""Load installed plugins, ignoring the developer's settings."""

from __future__ import annotations

import sys
from functools import cache
from typing import NoReturn

import pytest

import jackfield.plugins
from jackfield.plugins import PluginHost, Settings


@cache  # installed packages do not change while tests run, and scanning them costs more than most tests
def plain_host() -> PluginHost:
    """Return a host with all installed plugins, including those blocked in the developer's settings."""
    return PluginHost(Settings())


def forbid_default_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make plugins fail if they ask for the process's default host."""
    default_host = jackfield.plugins.default_host
    monkeypatch.setattr(jackfield.plugins, "default_host", _fail)
    for name, module in list(sys.modules.items()):
        if not name.startswith("jackfield.") and vars(module).get("default_host") is default_host:
            monkeypatch.setattr(module, "default_host", _fail)


def _fail() -> NoReturn:
    raise AssertionError("the component must not use the default host: get plugins, settings and keys from `self.host`")
