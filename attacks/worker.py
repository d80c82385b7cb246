"""Make the attempts of one kind, in a process that may be killed.

`python -m attacks.worker KIND SEED FIRST LAST SECONDS`

A line of JSON before and after each attempt is written to the file descriptor given in `REPORT_TO`.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import random
import socket
import sys
import threading
import time
from importlib import import_module
from typing import Any

from attacks.kind import Attempt, Broke, Kind
from jackfield import sync
from jackfield.errors import JackfieldError

MAX_THREADS = 300  # one bounded pool, a loop, and the attack's servers


def kind_named(name: str) -> Kind:
    """Return the kind defined in a module of `attacks.kinds`."""
    kind: Kind = import_module(f"attacks.kinds.{name}").KIND
    return kind


def reasons_against(attempt: Attempt) -> list[str]:
    """Make an attempt, and return the reasons why it broke a law, if any."""
    try:
        attempt.act()
    except Broke as broke:
        return [str(reason) for reason in broke.args]
    except JackfieldError as error:
        if not str(error).strip():
            return [f"a {type(error).__name__} that says nothing"]
    except BaseException as error:
        return [f"a foreign exception: {_told(error)}"]
    sync.run(asyncio.sleep(0))  # check that the next call works; if not, it hangs, and the watchdog reports it
    if threading.active_count() > MAX_THREADS:
        return [f"{threading.active_count()} threads are left"]
    return []


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:
        return type(error).__name__


def stay_here() -> None:
    """Resolve only names of this machine, so that a hostile address reaches no one."""
    look_up = socket.getaddrinfo

    def here_only(host: Any, *args: Any, **kwargs: Any) -> Any:
        found = str(host or "")
        if isinstance(host, str):
            host.encode("idna")  # fails in the same way as the real function
        if found not in ("", "localhost") and not found.startswith(("127.", "::1")):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *args, **kwargs)

    socket.getaddrinfo = here_only


def main(kind_name: str, seed: str, first: int, last: int, seconds: float) -> None:
    """Make the attempts from number `first` up to but not including `last`, stopping after some seconds."""
    ends_at = time.monotonic() + seconds
    stay_here()
    with os.fdopen(int(os.environ["REPORT_TO"]), "w", buffering=1) as report:

        def tell(*what: Any) -> None:
            report.write(json.dumps(what) + "\n")

        attempts = kind_named(kind_name).attempts(random.Random(f"{seed}:{kind_name}"))
        for number, attempt in itertools.islice(enumerate(attempts), first, last):
            if time.monotonic() > ends_at:
                break
            tell("start", number, attempt.name, attempt.counts, attempt.timeout_s)
            tell("done", number, reasons_against(attempt))
            gc.collect(0)
        tell("end")
    os._exit(0)  # do not wait for anything that a broken attempt left behind


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
