"""Whoever reads what a command prints may leave early: the command ends, and complains to nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["plugins", "list"], ["plugins", "list", "--json"]])
def test_a_reader_that_is_gone_is_no_error_to_tell(arguments: list[str], unbuffered: str) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with os.fdopen(writable, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "jackfield", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=nobody,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stderr == ""
    assert done.returncode in (0, 1)  # and not 120, with which the interpreter reports what it could not write


def test_an_error_is_told_even_if_the_reader_is_gone() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with os.fdopen(writable, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "jackfield", "nonsense"],
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert "unknown command 'nonsense'" in done.stderr
    assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_full_disk_is_told_in_a_line(unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jackfield", "plugins", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stderr == "jackfield: No space left on device: free some space and try again\n"
    assert done.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell of POSIX")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_command_works_without_the_streams_that_the_caller_has_closed(closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m jackfield plugins list {closed}', sys.executable],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) is (closed == "2>&-")


@pytest.mark.parametrize("errors", ["strict", "surrogateescape", ""], ids=str)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_text_that_the_output_cannot_encode_is_escaped(encoding: str, errors: str) -> None:
    """The locale C sets the handler `surrogateescape`, which raises for it."""
    text = "tide 潮汐 \udce4"
    program = f"from jackfield.cli.main import run_command; raise SystemExit(run_command(lambda: print({text!a}) or 0))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": f"{encoding}:{errors}".rstrip(":")},
        timeout=60,
        check=False,
    )
    shown = "潮汐" if encoding == "utf-8" else "\\u6f6e\\u6c50"
    assert (done.returncode, done.stderr, done.stdout.decode()) == (0, b"", f"tide {shown} \\udce4\n")
