"""Every command takes options between the words of a list: `jackfield serve a.yaml --port 0 b.yaml`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pytest

from jackfield_eval.command import _parser as eval_parser
from jackfield_index.options import make_parser as index_parser
from jackfield_manage.cli import parsers as manage_parsers
from jackfield_manage.cli.keys import parser as keys_parser
from jackfield_serve.parser import make_parser as serve_parser
from jackfield_terminal.models import models_parser
from jackfield_terminal.options import chat_parser, run_parser
from jackfield_terminal.runs import runs_parser

_LISTS = (argparse.ZERO_OR_MORE, argparse.ONE_OR_MORE)


def _index_parser() -> Any:
    names = ("build", "add", "remove", "set_values", "watch", "list_all", "info", "search")
    return index_parser(**dict.fromkeys(names, print))  # type: ignore[arg-type]


PARSERS = [
    *manage_parsers().values(),
    *(make() for make in (eval_parser, _index_parser, keys_parser, serve_parser)),
    *(make() for make in (chat_parser, models_parser, run_parser, runs_parser)),
]


def _with_subcommands(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subparser in action.choices.items():
                yield from _with_subcommands(subparser, (*words, name))


def _cases() -> Iterator[Any]:
    """Yield a parser, the words before a list, the name of the list, and an option without a value."""
    for root in PARSERS:
        for words, parser in _with_subcommands(root):
            positionals = parser._get_positional_actions()
            lists = [action for action in positionals if action.nargs in _LISTS]
            flags = [one for one in parser._actions if one.nargs == 0 and "--help" not in one.option_strings]
            flags = [one for one in flags if one.help != argparse.SUPPRESS and "--version" not in one.option_strings]
            if not lists or not flags or any(one.nargs == argparse.REMAINDER for one in positionals):
                continue
            before = [next(iter(one.choices)) if one.choices else "word" for one in positionals if one.nargs is None]
            name = " ".join([root.prog, *words])
            yield pytest.param(root, [*words, *before], lists[0].dest, flags[-1].option_strings[-1], id=name)


@pytest.mark.parametrize(("parser", "before", "name", "flag"), list(_cases()))
def test_a_list_may_have_an_option_in_between(parser: Any, before: list[str], name: str, flag: str) -> None:
    between = parser.parse_args([*before, "a=1", flag, "b=2"])
    together = parser.parse_args([*before, flag, "a=1", "b=2"])
    assert getattr(between, name) == ["a=1", "b=2"]
    assert vars(between) == vars(together)
