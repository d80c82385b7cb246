"""The parser of all our commands: it says what is wrong before how it would be right."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from jackfield.cli.terminal import shown_name

USAGE_ERROR = 2


class Parser(argparse.ArgumentParser):
    """As `argparse` has it, with errors of two lines, in which nothing is written that a terminal obeys."""

    def error(self, message: str) -> NoReturn:
        """Write what is wrong and how to get help, and exit with 2."""
        sys.stderr.write(f"{self.prog}: {shown_name(message)}\nTry: {self.prog} --help\n")
        raise SystemExit(USAGE_ERROR)
