"""The parser of all our commands: its errors say what is wrong first, then how to get help."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from jackfield.cli._terminal import printable

USAGE_ERROR = 2


class Parser(argparse.ArgumentParser):
    """An `argparse` parser with errors of two lines, without control characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """Write what is wrong and how to get help, and exit with 2."""
        sys.stderr.write(f"{self.prog}: {printable(message)}\nTry: {self.prog} --help\n")
        raise SystemExit(USAGE_ERROR)
