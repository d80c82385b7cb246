"""The command line, with `main` as the entry point, and building blocks for plugin commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackfield.cli._consent import with_consent
    from jackfield.cli._parser import Parser
    from jackfield.cli._plugins import add_list_options, print_rows, row_facts, state_of_source, states
    from jackfield.cli._tables import needs_ascii, print_json, print_table, terminal_columns
    from jackfield.cli._terminal import Terminal, escape_line, escape_text, guard_output
    from jackfield.cli._wrapping import find_breaks, split_line, width_of, wrap_line

__all__ = [
    "Parser",
    "Terminal",
    "add_list_options",
    "escape_line",
    "escape_text",
    "find_breaks",
    "guard_output",
    "needs_ascii",
    "print_json",
    "print_rows",
    "print_table",
    "row_facts",
    "split_line",
    "state_of_source",
    "states",
    "terminal_columns",
    "width_of",
    "with_consent",
    "wrap_line",
]

_MODULES = {
    "Parser": "jackfield.cli._parser",
    "Terminal": "jackfield.cli._terminal",
    "add_list_options": "jackfield.cli._plugins",
    "escape_line": "jackfield.cli._terminal",
    "escape_text": "jackfield.cli._terminal",
    "find_breaks": "jackfield.cli._wrapping",
    "guard_output": "jackfield.cli._terminal",
    "needs_ascii": "jackfield.cli._tables",
    "print_json": "jackfield.cli._tables",
    "print_rows": "jackfield.cli._plugins",
    "print_table": "jackfield.cli._tables",
    "row_facts": "jackfield.cli._plugins",
    "split_line": "jackfield.cli._wrapping",
    "state_of_source": "jackfield.cli._plugins",
    "states": "jackfield.cli._plugins",
    "terminal_columns": "jackfield.cli._tables",
    "width_of": "jackfield.cli._wrapping",
    "with_consent": "jackfield.cli._consent",
    "wrap_line": "jackfield.cli._wrapping",
}


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # type checkers use the imports above

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value
