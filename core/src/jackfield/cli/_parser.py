"""The parser of all our commands: its errors say what is wrong first, then how to get help."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any, NoReturn

from jackfield.cli._terminal import printable

USAGE_ERROR = 2


class Parser(argparse.ArgumentParser):
    """An `argparse` parser with errors of two lines, without control characters.

    It measures the terminal only for a help text.
    """

    def __init__(self, **options: Any) -> None:
        # argparse makes a formatter for every argument, which loads `shutil` to ask for the width unless it has one.
        super().__init__(formatter_class=partial(argparse.HelpFormatter, width=1000), **options)

    def format_usage(self) -> str:
        """As argparse does, for the terminal there is."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_usage()

    def format_help(self) -> str:
        """As argparse does, for the terminal there is."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Write what is wrong and how to get help, and exit with 2."""
        sys.stderr.write(f"{self.prog}: {printable(message)}\nTry: {self.prog} --help\n")
        raise SystemExit(USAGE_ERROR)
