"""The sandbox `landlock`: no package of the system is needed, only a kernel that has it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache

from jackfield.errors import SandboxError
from jackfield_bubblewrap.system import SYSTEM, files_of_etc, folders_of_python, resolved
from jackfield_confine.barriers import NAMESPACES, best_barrier, restricts_files
from jackfield_confine.guarding import FileRules, guarded
from jackfield_confine.sandboxes import Limits, Program, ProgramSandbox, Protection, Risk

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random", "/dev/tty")
_PROBE_S = 30


class LandlockSandbox(ProgramSandbox):
    """Keeps programs from files by Landlock; from network and other processes by namespaces, where those can be had."""

    def protection(self) -> Protection:
        """Depends on the kernel, and on whether it allows user namespaces."""
        problem = _problem()
        if problem:
            raise SandboxError(problem)
        covers: set[Risk] = {"files", "memory", "cpu", "file_size"}
        if os.geteuid() != 0:  # root's processes are not counted
            covers.add("process_count")
        if not _has_namespaces():
            return Protection("landlock", frozenset(covers))
        return Protection("namespaces and landlock", frozenset(covers | {"network", "processes"}))

    def command(self, program: Program) -> list[str]:
        """The command: the guard, which sets limits and rules, and the program."""
        program = resolved(program)
        readable = [*SYSTEM, *files_of_etc(network=program.network), *folders_of_python(), *program.readable, "/proc"]
        rules = FileRules(
            readable=tuple(readable),
            writable=(program.work_dir, *program.writable, *_DEVICES),
            network=program.network,
        )
        return guarded(
            program.argv,
            limits=program.limits,
            barriers=(NAMESPACES,),
            files=rules,
            leftovers=program.leftovers,
        )


@cache
def _has_namespaces() -> bool:
    return best_barrier([NAMESPACES]) == NAMESPACES


@cache
def _problem() -> str:
    """What keeps it from being used on this machine, found out by running this Python in it; '' for nothing."""
    if not restricts_files():
        return "Landlock needs Linux 6.2 or later, with Landlock among the kernel's security modules"
    with tempfile.TemporaryDirectory() as folder:
        program = Program(argv=(sys.executable, "-I", "-S", "-c", "print('works')"), work_dir=folder, limits=Limits())
        command = LandlockSandbox().command(program)
        try:
            done = subprocess.run(command, env={}, capture_output=True, text=True, timeout=_PROBE_S, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            return f"Landlock does not work here: a program did not end within {_PROBE_S} s"
    said = done.stderr.strip() or f"exit code {done.returncode}"
    return "" if done.stdout == "works\n" else f"Landlock does not work here: {said:.300}"
