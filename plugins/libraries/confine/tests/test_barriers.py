"""Namespaces are entered one by one: a process keeps the network unless it is told to leave it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jackfield_confine.barriers import NAMESPACES, best_barrier

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
