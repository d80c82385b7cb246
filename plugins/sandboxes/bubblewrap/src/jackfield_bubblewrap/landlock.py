"""The `landlock` sandbox, which requires no system package, only kernel support."""

from __future__ import annotations

from functools import cache

from jackfield.errors import SandboxError
from jackfield.sandboxes import Program, ProgramSandbox, Protection, Risk
from jackfield_bubblewrap.system import SYSTEM, files_of_etc, folders_of_python, resolved
from jackfield_confine.barriers import NAMESPACES, best_barrier, restricts_files
from jackfield_confine.guarding import FileRules, guarded
from jackfield_confine.probing import probe_protection

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random", "/dev/tty")


class LandlockSandbox(ProgramSandbox):
    """Restricts file access with Landlock, and everything else with namespaces if available.

    Without namespaces, a system call filter replaces them. Programs then cannot open network sockets, connect to any
    socket, or change the permissions, owners, timestamps and attributes of files, not even of their own. They can see
    the names of other processes.
    """

    def protection(self) -> Protection:
        """Return the protection on this machine, which depends on the kernel and on user namespaces.

        Raises:
            SandboxError: Landlock is not usable here.
        """
        covers, problem = _probe()
        if problem:
            raise SandboxError(problem)
        return Protection("namespaces and landlock" if _has_namespaces() else "landlock", covers)

    def command(self, program: Program) -> list[str]:
        """Return the command: the guard, which sets limits and rules, and the program.

        Raises:
            SandboxError: The program needs the network, and namespaces are not available.
        """
        if program.network and not _has_namespaces():
            raise SandboxError(
                "a program with network access cannot be isolated without namespaces, because it could reach the "
                "sockets of other programs, such as Docker's: install bubblewrap, allow user namespaces, or run the "
                "program without network access"
            )
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
            filtered_by="guard",
            is_grouped=True,
        )


@cache
def _has_namespaces() -> bool:
    return best_barrier([NAMESPACES]) == NAMESPACES


@cache
def _probe() -> tuple[frozenset[Risk], str]:
    """Determine by trial which risks are covered here, or why the sandbox is unusable."""
    if not restricts_files():
        return (
            frozenset(),
            "Landlock requires Linux 6.2 or later, with Landlock enabled among the kernel's security modules",
        )
    try:
        return probe_protection(LandlockSandbox()), ""
    except SandboxError as error:
        return frozenset(), f"Landlock does not work here: {error}"
