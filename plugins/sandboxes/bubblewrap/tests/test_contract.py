"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from jackfield_bubblewrap import landlock
from jackfield_confine.barriers import restricts_files
from jackfield_testkit.suites import PluginSuite, SandboxSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-bubblewrap"


class TestBubblewrap(SandboxSuite):
    component = "jackfield-bubblewrap/bubblewrap"
    unusable_because = "" if shutil.which("bwrap") else "bubblewrap is not installed on this machine"


class TestLandlock(SandboxSuite):
    component = "jackfield-bubblewrap/landlock"
    unusable_because = "" if restricts_files() else "this kernel has no Landlock"


class TestLandlockAlone(TestLandlock):
    """As on a machine that allows no user namespaces."""

    @pytest.fixture(autouse=True, scope="class")
    def _without_namespaces(self) -> Iterator[None]:
        known = (landlock._probe, landlock._has_namespaces)
        with pytest.MonkeyPatch.context() as monkeypatch:
            for one in known:
                one.cache_clear()
            monkeypatch.setattr(landlock, "NAMESPACES", "none of them")
            yield
        for one in known:
            one.cache_clear()
