"""Namespaces are entered one by one: a process keeps the network unless it is told to leave it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jackfield_confine import barriers
from jackfield_confine.barriers import LANDLOCK, NAMESPACES, NONE, best_barrier, restricts_files

CODE = """
import os
from jackfield_confine.barriers import enter_namespaces
before = [os.stat(f"/proc/self/ns/{name}").st_ino for name in ("net", "ipc", "mnt")]
enter_namespaces(leave_network={leave_network})
print(*(os.stat(f"/proc/self/ns/{name}").st_ino == inode for name, inode in zip(("net", "ipc", "mnt"), before)))
"""


@pytest.mark.skipif(best_barrier([NAMESPACES]) != NAMESPACES, reason="namespaces do not work here")
@pytest.mark.parametrize(("leave_network", "is_shared"), [(False, "True True True"), (True, "False False True")])
def test_a_process_leaves_the_network_only_if_it_is_told_to(leave_network: bool, is_shared: str) -> None:
    code = CODE.replace("{leave_network}", str(leave_network))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == is_shared


@pytest.mark.parametrize("is_root", [True, False])
def test_a_user_who_is_not_root_gets_a_user_namespace_in_which_others_do_not_exist(
    is_root: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags: list[int] = []

    def unshare(new: int) -> None:
        flags.append(new)
        if len(flags) == 1 and not is_root:
            raise PermissionError

    monkeypatch.setattr(barriers, "_unshare", unshare)
    monkeypatch.setattr(barriers, "Path", lambda _: tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 100)
    assert barriers.enter_namespaces() is not is_root
    # CLONE_NEWPID, and CLONE_NEWUSER with it
    assert flags == ([0x20000000] if is_root else [0x20000000, 0x30000000])
    # Without "deny" the kernel refuses the map of groups.
    maps = {"setgroups": "deny", "uid_map": "1000 1000 1", "gid_map": "100 100 1"}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == ({} if is_root else maps)


# Most tests of a barrier are skipped where it does not work: these say where it does.


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="other users may be refused namespaces")
def test_namespaces_work_wherever_the_system_gives_root_one() -> None:
    unshare = [shutil.which("unshare") or "", "--pid", "--fork", "--mount-proc", "true"]
    if not unshare[0] or subprocess.run(unshare, capture_output=True, check=False).returncode:
        pytest.skip("the system gives none")
    assert best_barrier([NAMESPACES]) == NAMESPACES


def test_landlock_works_wherever_a_kernel_that_is_new_enough_has_it() -> None:
    modules = Path("/sys/kernel/security/lsm")
    if not modules.exists() or "landlock" not in modules.read_text():
        pytest.skip("this kernel has no Landlock, or does not say so")
    release = tuple(map(int, os.uname().release.split(".")[:2]))
    assert restricts_files() is (release >= (6, 2))
    assert (best_barrier([LANDLOCK]) == LANDLOCK) is (release >= (6, 12))


@pytest.mark.parametrize(
    ("works", "allowed", "best"),
    [
        ({NAMESPACES, LANDLOCK}, [NAMESPACES, LANDLOCK], NAMESPACES),
        ({NAMESPACES, LANDLOCK}, [LANDLOCK, NAMESPACES], LANDLOCK),
        ({LANDLOCK}, [NAMESPACES, LANDLOCK], LANDLOCK),
        ({LANDLOCK}, [NAMESPACES], NONE),
        ({NAMESPACES, LANDLOCK}, ["other"], NONE),
        ({NAMESPACES, LANDLOCK}, [], NONE),
    ],
)
def test_the_first_barrier_that_works_is_the_best(
    works: set[str], allowed: list[str], best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barriers, "_LINUX", True)
    monkeypatch.setattr(barriers, "_namespaces_work", lambda: NAMESPACES in works)
    monkeypatch.setattr(barriers, "_landlock_works", lambda: LANDLOCK in works)
    assert best_barrier(allowed) == best
    monkeypatch.setattr(barriers, "_LINUX", False)
    assert best_barrier(allowed) == NONE


@pytest.mark.parametrize(("abi", "files", "signals"), [(-1, False, False), (2, False, False), (3, True, False),
                                                       (5, True, False), (6, True, True)])  # fmt: skip
def test_landlock_is_used_for_what_its_version_can(
    abi: int, files: bool, signals: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barriers, "_LINUX", True)
    monkeypatch.setattr(barriers, "_landlock_abi", lambda: abi)
    assert (restricts_files(), barriers._landlock_works()) == (files, signals)


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is part of Linux")
def test_a_rule_that_the_kernel_refuses_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"Bad file descriptor|not implemented|not supported"):
        barriers._allow(-1, str(tmp_path), 1)


def test_the_numbers_of_system_calls_are_those_of_the_headers() -> None:
    header = Path("/usr/include/asm-generic/unistd.h")
    if not header.exists():
        pytest.skip(f"needs {header}, of linux-libc-dev")
    numbers = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(encoding="ascii")))
    names = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "mount_setattr", "keyctl")
    ours = (
        barriers._LANDLOCK_CREATE_RULESET, barriers._LANDLOCK_ADD_RULE, barriers._LANDLOCK_RESTRICT_SELF,
        barriers._MOUNT_SETATTR, barriers._KEYCTL["aarch64"],
    )  # fmt: skip
    assert [int(numbers[name]) for name in names] == [*ours]


@pytest.mark.parametrize(
    ("release", "counts"), [("5.13.19", False), ("5.14.0", True), ("5.4-x", False), ("6.1", True), ("strange", False)]
)
def test_processes_are_counted_by_namespace_since_linux_5_14(
    release: str, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "", release, "", "x86_64")))
    assert barriers.counts_processes_by_namespace() is counts


@pytest.mark.parametrize(
    ("abi", "network", "tcp", "scopes"),
    [(3, False, 0, 0), (4, False, 2, 0), (4, True, 0, 0), (5, False, 2, 0), (6, False, 2, 3), (6, True, 0, 3)],
)
def test_each_version_of_landlock_restricts_all_that_it_can(
    abi: int, network: bool, tcp: int, scopes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Source: https://docs.kernel.org/userspace-api/landlock.html: TCP since 4, signals and abstract sockets since 6.
    rulesets: list[tuple[barriers._LandlockRuleset, list[tuple[str, int]]]] = []
    monkeypatch.setattr(barriers, "_landlock_abi", lambda: abi)
    monkeypatch.setattr(barriers, "_restrict", lambda ruleset, rules: rulesets.append((ruleset, rules)))
    barriers.restrict_files(readable=["/a"], writable=["/b"], network=network)
    barriers.forbid_signals_outward()
    (files, rules), (signals, none) = rulesets
    assert (files.files, files.network, files.scoped) == (barriers.rights_of(abi), tcp, scopes)
    assert rules == [("/a", 0b1101), ("/b", barriers.rights_of(abi))], "execute, read files, read folders"
    assert (signals.files, signals.network, signals.scoped, none) == (0, 0, 2, [])
