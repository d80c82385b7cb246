"""The argument parser for all Jackfield commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

from jackfield.cli._terminal import escape_line
from jackfield.suggestions import shell_path

USAGE_ERROR = 2
_AFTER_DASHES = "\0"  # marks words after `--`; no word of a command line contains it


class Parser(argparse.ArgumentParser):
    """An `argparse` parser with two-line errors. The second line points to the help. Control characters are escaped.

    An empty value of an option, as from `--save "$FILE"` without such a variable, is an error. Options with `type=str`
    or the default "" accept one. The terminal width is only read for help texts.
    """

    def __init__(self, **options: Any) -> None:
        # argparse makes a formatter for every argument. Without a width, it imports `shutil` to find the width.
        self._is_intermixing = False
        self._words: Sequence[str] = ()
        super().__init__(formatter_class=partial(argparse.HelpFormatter, width=1000), **options)

    def format_usage(self) -> str:
        """Return argparse's usage text, formatted for the terminal width."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_usage()

    def format_help(self) -> str:
        """Return argparse's help text, formatted for the terminal width."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_help()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse like `argparse`, but suggest the closest known option in errors about unknown options."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._explain(unknown)}")
        return options

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse like `argparse`, but allow options between repeated positional arguments, even in subcommands."""
        self._words = sys.argv[1:] if args is None else list(args)
        if self._is_intermixing or not self._takes_lists():
            return super().parse_known_args(args, namespace)
        self._is_intermixing = True  # `parse_known_intermixed_args` calls this method twice
        words = list(self._words)
        if "--" in words:  # which argparse forgets between the two calls
            start = words.index("--") + 1
            words[start:] = [f"{_AFTER_DASHES}{word}" for word in words[start:]]
        try:
            options, unknown = self.parse_known_intermixed_args(words, namespace)
        finally:
            self._is_intermixing = False
        return options, [word.removeprefix(_AFTER_DASHES) for word in unknown]

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        value = arg_string.removeprefix(_AFTER_DASHES)
        if not value and action.option_strings and action.type is None and "" not in (action.default, action.const):
            raise argparse.ArgumentError(action, "the value is empty")
        return super()._get_value(action, value)

    def _takes_lists(self) -> bool:
        """Return True if a positional argument is repeated and options may come between its values.

        argparse does not support this for parsers with subcommands.
        """
        lengths = {action.nargs for action in self._get_positional_actions()}
        rest = {argparse.PARSER, argparse.REMAINDER}
        return bool(lengths & {argparse.ZERO_OR_MORE, argparse.ONE_OR_MORE}) and not lengths & rest

    def _explain(self, words: Sequence[str]) -> str:

        from jackfield.suggestions import close_names

        takes_text = any(action.nargs == argparse.OPTIONAL for action in self._get_positional_actions())
        if takes_text and not any(word.startswith("-") for word in words):
            return "; put text with spaces in quotes"
        names = [word.partition("=")[0] for word in words if word.startswith("--")]
        # Without the words themselves, because an option of another subcommand would not help.
        known = [option for option in _option_names(self) if option not in names]
        close = list(dict.fromkeys(option for name in names for option in close_names(name, known)[:1]))
        if close:
            return f"; did you mean {' and '.join(close)}?"
        # Not `Path.exists`, which raises for a name that is too long.
        files = [shell_path(word) for word in words if word.startswith("-") and os.path.exists(word)]  # noqa: PTH110
        return f"; to pass a file, use {' '.join(files)}" if files else ""

    def _how_to_pass_dashes(self, names: Sequence[str]) -> str:
        """Return a hint on how to pass a value that starts with a dash, or ''. argparse rejects such values."""
        import shlex  # only needed for errors

        for option, value in pairwise(self._words):
            is_option = value.partition("=")[0] in self._option_string_actions or value == "--"
            if option in names and value.startswith("-") and not is_option:
                return f"; to pass the value {value!r}, use {shlex.quote(f'{option}={value}')}"
        return ""

    def error(self, message: str) -> NoReturn:
        """Write the error and a pointer to the help, then exit with code 2."""
        if message.endswith(": expected one argument"):
            message += self._how_to_pass_dashes(message.removeprefix("argument ").partition(":")[0].split("/"))
        sys.stderr.write(f"{self.prog}: {escape_line(message)}\nTry: {self.prog} --help\n")
        raise SystemExit(USAGE_ERROR)


def _option_names(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a parser and its subcommands."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _option_names(subparser)
