"""A real PostgreSQL server for tests, where its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running_postgresql() -> Iterator[str]:
    """A server of any version, which listens in a folder only; gives its DSN. It ends with the block, and all it held.

    Where `initdb` is neither on the PATH nor where Debian puts it, the test is skipped with the reason.
    """
    programs, owner = _programs(), _owner()
    # The server's user may not enter folders of ours, and the path of a socket has to be short.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    os.chown(folder, owner, -1)

    def run(*command: object) -> None:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        with (folder / "log").open("ab") as log:
            subprocess.run(
                list(map(str, command)), check=True, user=owner, cwd=folder, env=environment, stdout=log, stderr=log
            )

    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_connections=100"
    try:
        run(programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres", "--no-sync")
        run(programs / "pg_ctl", "-D", folder / "data", "-w", "-o", options, "start")
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            run(programs / "pg_ctl", "-D", folder / "data", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def _programs() -> Path:
    found = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = Path(found).resolve() if found else debian[-1] if debian else None
    if program is None or not program.with_name("pg_ctl").exists():
        pytest.skip("there is no PostgreSQL server here: initdb and pg_ctl are not on the PATH")
    return program.parent


def _owner() -> int:
    """Who the server runs as: it refuses to be root."""
    if os.name != "posix":
        pytest.skip("the server is started as another user, and there are none of POSIX here")
    import pwd

    if os.geteuid() != 0:
        return os.geteuid()
    if "postgres" not in {one.pw_name for one in pwd.getpwall()}:
        pytest.skip("a PostgreSQL server refuses to run as root, and there is no user postgres")
    return pwd.getpwnam("postgres").pw_uid
