"""Build the command that runs a program under its guard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from jackfield.sandboxes import Limits
from jackfield_confine.interpreters import this_python

GUARD = Path(__file__).with_name("guard.py")


@dataclass(frozen=True, slots=True)
class Gift:
    """Folders that root transfers to the user who runs the program, together with root's files in them.

    Attributes:
        user: The user id, which is also used as the group id.
        folders: The folders. Links in them are not followed, and files with several hard links keep their owner.
    """

    user: int
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """Limits on the files and network a program can reach.

    Without namespaces, Landlock blocks only TCP, but the filter blocks all sockets.

    Attributes:
        readable, writable: Paths, including everything below them.
        network: True if the program may use the network.
    """

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    network: bool = False


def guarded(
    argv: Sequence[str],
    *,
    limits: Limits,
    barriers: Sequence[str] = (),
    files: FileRules | None = None,
    gift: Gift | None = None,
    keeps_rights: bool = False,
    report: Path | None = None,
    leftovers: str = "",
    filtered_by: Literal["", "guard", "bubblewrap"] = "",
    is_grouped: bool = False,
    own_processes: int = 0,
) -> list[str]:
    """Return the command that runs a program within limits.

    The program and everything it started end with the process that runs the command.

    Args:
        argv: The program and its arguments.
        limits: The program's resource limits; `wall_s` is ignored here.
        barriers: The acceptable barriers against other processes, best first: `NAMESPACES`, `LANDLOCK`.
        files: The files and network the program may reach. None allows all.
        gift: Folders to transfer to another user before the program starts.
        keeps_rights: True if the program drops root's privileges itself, so that only the limits are applied.
        report: A file to which the name of the barrier in effect is written.
        leftovers: A folder to remove if the starting process ends first, or '' for none.
        filtered_by: The process that installs the `syscalls` filter: the guard, or the program itself, which is then
            `bwrap`. '' means no filter.
        is_grouped: True to also count memory and processes in a control group, where the machine offers one.
        own_processes: The number of processes in the group that belong to the sandbox and not to the program.
    """
    processes = limits.processes and limits.processes + own_processes
    plan = {
        "limits": {name: value for name, value in asdict(limits).items() if value is not None and name != "wall_s"},
        "barriers": list(barriers),
        "files": None if files is None else asdict(files),
        "gift": None if gift is None else asdict(gift),
        "keeps_rights": keeps_rights,
        "report": str(report or ""),
        "leftovers": leftovers,
        "filter": filtered_by,
        "group": {"memory_bytes": limits.memory_bytes, "processes": processes} if is_grouped else None,
    }
    return [this_python(), "-I", "-S", str(GUARD), json.dumps(plan), *argv]
