"""The parser of commands: options anywhere, errors in two lines with the nearest option, and help that fits."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import pytest

from jackfield.cli import Parser


def parser(**options: Any) -> Parser:
    made = Parser(prog="acme", **options)
    made.add_argument("files", nargs="*")
    made.add_argument("--colour")
    made.add_argument("--count", type=int)
    made.add_argument("-k", "--kind")
    return made


def test_options_may_be_anywhere_in_a_list_of_arguments() -> None:
    for words in (["a", "b", "--colour", "red"], ["a", "--colour", "red", "b"], ["--colour", "red", "a", "b"]):
        chosen = parser().parse_args(words)
        assert (chosen.files, chosen.colour) == (["a", "b"], "red")
    made = parser()
    for _ in range(2):
        chosen = made.parse_args(["a", "--colour", "red", "b"])
        assert (chosen.files, chosen.colour) == (["a", "b"], "red")
        with pytest.raises(SystemExit):
            made.parse_args(["a", "--count", "x"])


def test_no_words_are_not_those_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["acme", "--colour", "red"])
    assert parser().parse_args().colour == "red"
    assert parser().parse_args([]).colour is None


def test_all_that_follows_may_be_left_to_another_program() -> None:
    made = Parser(prog="acme")
    made.add_argument("files", nargs="*")
    made.add_argument("rest", nargs=argparse.REMAINDER)
    assert made.parse_args(["a", "b"]).files == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "files", "count"),
    [
        (["--", "-a"], ["-a"], None),
        (["a", "--count", "2", "--", "-b", "c", "--count"], ["a", "-b", "c", "--count"], 2),
        (["--count", "2", "--", "--", "-1"], ["--", "-1"], 2),
        (["a", "--"], ["a"], None),
    ],
)
def test_all_words_after_two_dashes_are_arguments(words: list[str], files: list[str], count: int | None) -> None:
    outer = Parser(prog="acme")
    inner = outer.add_subparsers(parser_class=Parser).add_parser("do")
    inner.add_argument("files", nargs="*")
    inner.add_argument("--count", type=int)
    for chosen in (parser().parse_args(words), outer.parse_args(["do", *words])):
        assert (chosen.files, chosen.count) == (files, count)
    numbers = Parser(prog="acme")
    numbers.add_argument("numbers", nargs="+", type=int)
    assert numbers.parse_args(["1", "--", "-2"]).numbers == [1, -2]


def test_words_after_two_dashes_are_shown_as_they_were_typed(capsys: pytest.CaptureFixture[str]) -> None:
    made = Parser(prog="acme")
    made.add_argument("numbers", nargs="+", type=int)
    with pytest.raises(SystemExit):
        made.parse_args(["--", "-x"])
    assert "invalid int value: '-x'" in capsys.readouterr().err


def test_a_file_whose_name_begins_with_a_dash_is_shown_as_it_must_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "-my$file").touch()
    monkeypatch.chdir(tmp_path)
    for words, told in (
        (["a", "-my$file"], "unrecognized arguments: -my$file; to pass a file, use './-my$file'\n"),
        (["-my"], "unrecognized arguments: -my\n"),
        (["-" * 300], f"unrecognized arguments: {'-' * 300}\n"),
    ):
        with pytest.raises(SystemExit):
            parser().parse_args(words)
        assert told in capsys.readouterr().err


def test_options_may_be_anywhere_below_a_subcommand() -> None:
    outer = Parser(prog="acme")
    inner = outer.add_subparsers(parser_class=Parser).add_parser("do")
    inner.add_argument("files", nargs="+")
    inner.add_argument("--colour")
    chosen = outer.parse_args(["do", "a", "--colour", "red", "b"])
    assert (chosen.files, chosen.colour) == (["a", "b"], "red")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--color", "red"], "unrecognized arguments: --color; did you mean --colour?"),
        (["--color=red", "--coun=3", "--zzz"], "--zzz; did you mean --colour and --count?"),
        (["--zzz"], "acme: unrecognized arguments: --zzz\n"),
        (["--count", "x\x1b"], "invalid int value: 'x\\x1b'"),
        (["--zz\x1b[2J\n"], "unrecognized arguments: --zz\\x1b[2J\\n\n"),
    ],
)
def test_an_error_is_two_lines_with_the_nearest_option(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser(allow_abbrev=False).parse_args(words)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.startswith("acme: ")
    assert error.endswith("\nTry: acme --help\n")
    assert error.count("\n") == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--colour", "-red"], "expected one argument; to pass the value '-red', use --colour=-red\n"),
        (["a", "--colour", "-$x"], "expected one argument; to pass the value '-$x', use '--colour=-$x'\n"),
        (["--count", "--colour", "-dark red"], "--count: expected one argument\n"),
        (["--colour", "--count", "1"], "--colour: expected one argument\n"),
        (["--colour", "--", "a"], "--colour: expected one argument\n"),
        (["--colour", "--count=1"], "--colour: expected one argument\n"),
        (["--kind", "-red"], "expected one argument; to pass the value '-red', use --kind=-red\n"),
        (["-k", "-red"], "expected one argument; to pass the value '-red', use -k=-red\n"),
        (["a", "--colour"], "--colour: expected one argument\n"),
    ],
)
def test_a_value_that_begins_with_a_dash_is_shown_as_it_must_be_written(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(words)
    assert told in capsys.readouterr().err
    if "use " in told:
        (word,) = shlex.split(told.partition("use ")[2])
        options = parser().parse_args([word])
        assert words[-1] in (options.colour, options.kind)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--colour", ""], "--colour"),
        (["--colour="], "--colour"),
        (["a", "-k", "", "b"], "-k/--kind"),
        (["--colour", "red", "--kind="], "-k/--kind"),
    ],
)
def test_an_empty_value_of_an_option_is_an_error(
    words: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parser().parse_args(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"acme: argument {option}: the value is empty\nTry: acme --help\n"


def test_an_option_may_accept_an_empty_value_and_arguments_always_do() -> None:
    accepting = parser()
    accepting.add_argument("--system", type=str)
    accepting.add_argument("--match", default="")
    accepting.add_argument("--open", nargs="?", const="")
    words = ["", "--system", "", "--match", "", "--open", "--", ""]
    options = accepting.parse_args(words)
    assert (options.files, options.system, options.match, options.open) == (["", ""], "", "", "")
    assert (options.colour, accepting.parse_args([]).match) == (None, "")


def test_options_of_subcommands_are_suggested_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    outer = Parser(prog="acme", allow_abbrev=False)
    outer.add_subparsers(parser_class=Parser).add_parser("do", allow_abbrev=False).add_argument("--colour")
    with pytest.raises(SystemExit):
        outer.parse_args(["do", "--color"])
    assert "did you mean --colour?" in capsys.readouterr().err


def test_an_option_of_another_subcommand_is_not_suggested_for_itself(capsys: pytest.CaptureFixture[str]) -> None:
    outer = Parser(prog="acme")
    subcommands = outer.add_subparsers(parser_class=Parser)
    subcommands.add_parser("do").add_argument("--colour")
    subcommands.add_parser("undo")
    with pytest.raises(SystemExit):
        outer.parse_args(["undo", "--colour"])
    assert "unrecognized arguments: --colour\n" in capsys.readouterr().err


def test_a_text_without_quotes_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    made = Parser(prog="acme")
    made.add_argument("prompt", nargs="?")
    with pytest.raises(SystemExit):
        made.parse_args(["how", "are", "you"])
    assert "unrecognized arguments: are you; put text with spaces in quotes\n" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        made.parse_args(["how", "--are"])
    assert "unrecognized arguments: --are\n" in capsys.readouterr().err


def test_help_keeps_the_lines_of_its_texts_and_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    made = parser(description="one\n  two", epilog="examples:\n  acme a\n")
    text = made.format_help()
    assert "one\n  two" in text
    assert "examples:\n  acme a\n" in text
    long = Parser(prog="acme")
    for number in range(9):
        long.add_argument(f"--option-{number}")
    assert max(map(len, long.format_usage().splitlines())) <= 60
