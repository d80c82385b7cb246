"""Run LibreOffice on a file, isolated from the rest of the machine.

The profile, home and temporary files are in a private folder. Network access is blocked where the machine allows it,
and all proxies point nowhere. Memory and time are limited. LibreOffice and its children always end: when it is done,
when it times out, or when the calling process is killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_MEMORY_KIB = 4 * 2**20  # more than a parser may have
_CPU_S = 90
# No link of a document is loaded, and no code in it is run. LibreOffice 7.4 ignores the first setting for links in
# files from before 2007.
_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop>
<prop oor:name="DisableActiveContent" oor:op="fuse"><value>true</value></prop>
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop>
</item></oor:items>
"""
# `$0` is the folder, followed by the command. Standard input is a pipe without data, which closes when the process at
# its other end ends; then the whole session is killed.
_WATCHED = f"""
exec 3<&0 </dev/null
ulimit -S -v {_MEMORY_KIB}; ulimit -S -t {_CPU_S}
"$@" 3<&- &
office=$!
{{ read -r _ <&3; trap "" TERM; kill -9 $office; rm -rf -- "$0"; kill -9 0; }} &
watcher=$!
exec 3<&-
wait $office
kill $watcher
wait
kill -9 0
"""
_NOWHERE = "http://127.0.0.1:9"
# Variables of the user's session, which point to other folders and to programs that LibreOffice would talk to.
_LEFT_OUT = ("xdg_", "dbus_", "display", "wayland_display")


def convert(program: str, file: Path, kind: str, folder: Path, *, timeout_s: float) -> Path:
    """Convert a file. If LibreOffice could not convert it, the returned path does not exist.

    Args:
        program: The path of LibreOffice.
        file: The file to convert, inside `folder`.
        kind: The extension of the target format.
        folder: The folder for all files that LibreOffice writes.
        timeout_s: The time limit.

    Raises:
        subprocess.TimeoutExpired: The conversion took longer than `timeout_s`.
        OSError: LibreOffice cannot be started.
    """
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(_SETTINGS)
    (folder / "tmp").mkdir()
    options = ["--headless", "--norestore", "--nolockcheck", f"-env:UserInstallation={profile.as_uri()}"]
    made = folder / "made"
    _run([program, *options, "--convert-to", kind, "--outdir", str(made), str(file)], folder, timeout_s)
    return made / f"{file.stem}.{kind}"


def _run(command: Sequence[str], folder: Path, timeout_s: float) -> None:
    if os.name == "posix":
        command = ["/bin/sh", "-c", _WATCHED, str(folder), *_without_network(), *command]
    process = subprocess.Popen(  # noqa: S603 - a program that the user has installed
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=_environment(folder),
    )
    try:
        process.wait(timeout_s)
    finally:
        if process.poll() is None:
            _kill(process)
        if process.stdin:
            process.stdin.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _environment(folder: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        # A user's `no_proxy` names hosts of the local network, which would be reached without the proxy.
        if not name.lower().startswith(_LEFT_OUT) and not name.lower().endswith("_proxy")
    }
    proxies = {f"{scheme}_proxy": _NOWHERE for scheme in ("http", "https", "ftp", "all")}
    return {**kept, **proxies, "HOME": str(folder), "TMPDIR": str(folder / "tmp")}


@cache
def _without_network() -> tuple[str, ...]:
    """Return a command prefix that blocks network access, or () if the machine does not allow that."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    command = (unshare, "--user", "--map-root-user", "--net", "--")
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, timeout=30, check=False)  # noqa: S603 - as above
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return command if tried.returncode == 0 else ()
