"""Whoever reads what a command prints may leave early: the command ends, and complains to nobody."""

from __future__ import annotations

import os
import subprocess
import sys

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
    assert "no command 'nonsense'" in done.stderr
    assert done.returncode == 1
