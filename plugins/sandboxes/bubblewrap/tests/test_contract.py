"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from jackfield.sandboxes import Risk
from jackfield_bubblewrap import landlock
from jackfield_confine.barriers import NAMESPACES, best_barrier, restricts_files
from jackfield_confine.syscalls import filters_this_machine
from jackfield_testkit.suites import PluginSuite, SandboxSuite

# The memory of all processes together is limited only where the machine offers a control group.
EVERYWHERE: frozenset[Risk] = frozenset({"files", "network", "cpu", "file_size"})
IF_FILTERED: frozenset[Risk] = frozenset({"memory"} if filters_this_machine() else ())


class TestPlugin(PluginSuite):
    dist = "jackfield-bubblewrap"


class TestBubblewrap(SandboxSuite):
    component = "jackfield-bubblewrap/bubblewrap"
    must_cover = EVERYWHERE | IF_FILTERED | {"processes", "process_count"}
    unusable_because = "" if shutil.which("bwrap") else "bubblewrap is not installed on this machine"


class TestLandlock(SandboxSuite):
    component = "jackfield-bubblewrap/landlock"
    must_cover = EVERYWHERE | IF_FILTERED | ({"processes"} if best_barrier([NAMESPACES]) == NAMESPACES else set())
    unusable_because = "" if restricts_files() else "this kernel has no Landlock"


class TestLandlockAlone(TestLandlock):
    """As on a machine that allows no user namespaces."""

    must_cover = EVERYWHERE | IF_FILTERED

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _without_namespaces(cls) -> Iterator[None]:
        known = (landlock._probe, landlock._has_namespaces)
        with pytest.MonkeyPatch.context() as monkeypatch:
            for one in known:
                one.cache_clear()
            monkeypatch.setattr(landlock, "NAMESPACES", "none of them")
            yield
        for one in known:
            one.cache_clear()
