"""The command line, and what plugin commands may use of it. It starts in `main`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching

if TYPE_CHECKING:
    from jackfield.cli._consent import with_consent
    from jackfield.cli._parser import Parser
    from jackfield.cli._plugins import add_list_options, print_rows, row_facts, state_of_source, states
    from jackfield.cli._tables import in_ascii, print_json, print_table
    from jackfield.cli._terminal import Terminal, guarded, printable, shown_text

__all__ = [
    "Parser",
    "Terminal",
    "add_list_options",
    "guarded",
    "in_ascii",
    "print_json",
    "print_rows",
    "print_table",
    "printable",
    "row_facts",
    "shown_text",
    "state_of_source",
    "states",
    "with_consent",
]

__getattr__, __dir__ = fetching(
    __name__,
    {
        "Parser": "cli._parser",
        "with_consent": "cli._consent",
        **dict.fromkeys(("add_list_options", "print_rows", "row_facts", "state_of_source", "states"), "cli._plugins"),
        **dict.fromkeys(("in_ascii", "print_json", "print_table"), "cli._tables"),
        **dict.fromkeys(("Terminal", "guarded", "printable", "shown_text"), "cli._terminal"),
    },
)
