"""The argument parser of all our commands."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any, NoReturn

from jackfield.cli._terminal import escape_line

USAGE_ERROR = 2


class Parser(argparse.ArgumentParser):
    """An `argparse` parser that reports an error and how to get help in two lines, without control characters.

    It measures the terminal only for a help text.
    """

    def __init__(self, **options: Any) -> None:
        # argparse makes a formatter for every argument. Without a width, the formatter loads `shutil` to find one.
        super().__init__(formatter_class=partial(argparse.HelpFormatter, width=1000), **options)

    def format_usage(self) -> str:
        """Return argparse's text, laid out for the terminal."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_usage()

    def format_help(self) -> str:
        """Return argparse's text, laid out for the terminal."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Write the error and how to get help, and exit with 2."""
        sys.stderr.write(f"{self.prog}: {escape_line(message)}\nTry: {self.prog} --help\n")
        raise SystemExit(USAGE_ERROR)
