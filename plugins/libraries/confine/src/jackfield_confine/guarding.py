"""The command that runs a program under its guard."""

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
    """Folders that root gives to the user who runs the program, with all files of root in them.

    Attributes:
        user: The number of the user, and of its group.
        folders: Links in them are not followed, and files with several names stay as they are.
    """

    user: int
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """The limits of a program's reach. Without namespaces, Landlock blocks only TCP; the filter blocks all sockets.

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
    """Return the command for a program within limits. The program and everything it started end with the process that
    starts it.

    Args:
        barriers: The barriers that may keep it from other processes, the best first: `NAMESPACES`, `LANDLOCK`.
        files: The files and the network that it may reach; None leaves both open.
        gift: The folders that another user receives before the program starts.
        keeps_rights: The program drops root's rights itself; only the limits are then applied here.
        report: The file into which the barrier that works is written.
        leftovers: A folder that is removed if the starting process ends first; '' for none.
        filtered_by: Installs the filter of `syscalls`: the guard, or the program itself, which is `bwrap`; '' for none.
        is_grouped: Count memory and processes in a control group as well, where the machine offers one.
        own_processes: Processes of the sandbox itself in that group, which are not the program's.
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
