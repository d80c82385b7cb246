"""Bisecting: the smallest set, with few runs, and really with processes."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import time
from itertools import combinations
from math import ceil, log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield_manage.cli.judging import add_commands, seconds
from jackfield_manage.judging.bisect import Result, ask_if_fails, bisect, command_fails, minimise

PLUGINS = st.integers(1, 40).map(lambda count: [f"p{number}" for number in range(count)])


@st.composite
def monotone(draw: st.DrawFn) -> tuple[list[str], list[set[str]]]:
    """Plugins, and the sets of them that fail together, and with whatever is added."""
    plugins = draw(PLUGINS)
    sets = draw(st.lists(st.sets(st.sampled_from(plugins), min_size=1, max_size=4), min_size=1, max_size=3))
    return plugins, sets


@given(case=monotone())
def test_what_is_found_fails_and_without_any_one_of_it_does_not(case: tuple[list[str], list[set[str]]]) -> None:
    plugins, causes = case
    asked: list[tuple[str, ...]] = []

    def fails(subset: tuple[str, ...]) -> bool:
        asked.append(subset)
        return any(cause <= set(subset) for cause in causes)

    result = bisect(plugins, fails)
    found = set(result.culprits)
    assert found in causes
    assert not any(cause < found for cause in causes)
    assert result.outcome == ("culprit" if len(found) == 1 else "together")
    assert result.runs == len(asked) == len(set(asked))
    assert all(list(subset) == [name for name in plugins if name in subset] for subset in asked)


@given(plugins=PLUGINS, number=st.integers(0, 39))
def test_a_single_culprit_takes_about_twice_the_logarithm(plugins: list[str], number: int) -> None:
    culprit = plugins[number % len(plugins)]
    result = bisect(plugins, lambda subset: culprit in subset)
    assert result.culprits == (culprit,)
    assert result.runs <= 2 + 2 * ceil(log2(len(plugins) or 1))


@pytest.mark.parametrize("number", [8, 16])
def test_two_culprits_take_at_most_eight_times_the_logarithm(number: int) -> None:
    plugins = [f"p{index}" for index in range(number)]
    for pair in combinations(plugins, 2):
        result = bisect(plugins, lambda subset, pair=pair: {*pair} <= {*subset})
        assert (result.culprits, result.runs <= 8 * log2(number)) == (pair, True)


@given(items=st.sets(st.integers(0, 30), min_size=1).map(sorted), seed=st.randoms(use_true_random=False))
def test_even_where_more_may_fail_less_no_single_one_can_be_left_out(items: list[int], seed: Any) -> None:
    answers: dict[tuple[int, ...], bool] = {tuple(items): True, (): False}

    def fails(subset: tuple[int, ...]) -> bool:
        return answers.setdefault(subset, seed.random() < 0.3)

    found = minimise(tuple(items), fails)
    assert fails(found)
    for left_out in found:
        assert not fails(tuple(item for item in found if item != left_out))


def test_what_no_plugin_causes_is_said() -> None:
    assert bisect(["a", "b"], lambda subset: True) == Result("without any", (), 2)
    assert bisect(["a", "b"], lambda subset: False) == Result("never", (), 1)
    assert bisect([], lambda subset: True) == Result("without any", (), 1)


# A shell starts in a hundredth of the time of an interpreter.
FAILS_TOGETHER = """
case ",$JACKFIELD_PLUGINS," in
    *,c,*,f,*) echo boom; exit 1;;
    *,c,f,*) echo boom; exit 1;;
    *,k,*) exit 0;;
    *) echo needs k; exit 1;;
esac
"""


def test_a_command_is_run_with_fewer_and_fewer_plugins() -> None:
    told: list[str] = []
    fails = command_fails(["sh", "-c", FAILS_TOGETHER], keep=["k"], tell=told.append)
    result = bisect(list("abcdefgh"), fails)
    assert result.outcome == "together"
    assert result.culprits == ("c", "f")
    assert len(told) == result.runs
    assert told[:2] == ["run 1: 8 plugins: fails (exit code 1)", "run 2: no plugin: does not fail (exit code 0)"]


def test_only_the_failure_that_is_meant_counts() -> None:
    command = ["sh", "-c", FAILS_TOGETHER]
    assert bisect(list("abcdef"), command_fails(command, tell=list)).outcome == "without any"
    result = bisect(list("abcdef"), command_fails(command, match="boom", tell=list))
    assert result.culprits == ("c", "f")


@pytest.mark.parametrize("output", [b"caf\xe9", "café".encode(), b"\xff\n\xfe"])
def test_text_in_any_encoding_is_found_in_the_output(output: bytes) -> None:
    text = os.fsdecode(output)  # as a command line gets it
    command = [sys.executable, "-c", f"import os; os.write(1, b'no ' + {output!r})"]
    assert command_fails(command, match=text, tell=list)(())
    assert not command_fails(command, match=f"{text}{text}", tell=list)(())


HANGS = """
case "$JACKFIELD_PLUGINS" in *slow*)
    sleep 600 &
    echo "$$ $!" >> "$1"
    wait
esac
"""


def test_a_run_without_end_has_failed_and_leaves_no_process(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    fails = command_fails(["sh", "-c", HANGS, "sh", str(pids)], timeout_s=3, tell=list)
    assert bisect(["a", "slow"], fails).culprits == ("slow",)
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) >= 4
    assert not [pid for pid in started if _is_running(pid)]


def _is_running(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            if sys.platform == "linux":
                return False
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return False
            state = "?"
        if state == "Z":  # ended, and whoever started it has not looked yet
            return False
        time.sleep(0.05)
    return True


def test_a_process_left_behind_is_ended_after_a_good_run_too(tmp_path: Path) -> None:
    fails = command_fails(["sh", "-c", 'sleep 600 & echo $! > "$1"', "sh", str(tmp_path / "pid")], tell=list)
    assert not fails(())
    assert not _is_running(int((tmp_path / "pid").read_text()))


def test_a_run_allows_its_plugins_and_blocks_the_others_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACKFIELD_PLUGINS_BLOCK", "mine")
    command = ["sh", "-c", 'echo "$JACKFIELD_PLUGINS without $JACKFIELD_PLUGINS_BLOCK."']
    for subset, said in (
        (("a",), "k,a without mine,b,c."),
        (("b", "c"), "k,b,c without mine,a."),
        ((), "k without mine,a,b,c."),
    ):
        fails = command_fails(command, keep=["k"], plugins=["a", "k", "b", "c"], match=said, tell=list)
        assert fails(subset)


def test_with_a_match_the_exit_code_does_not_count() -> None:
    assert not command_fails(["sh", "-c", "exit 3"], match="boom", tell=list)(())


def test_a_command_that_is_not_there_is_no_fault_of_a_plugin() -> None:
    with pytest.raises(ConfigError, match="'no-such-command' cannot be run"):
        bisect(["a"], command_fails(["no-such-command"], tell=list))
    with pytest.raises(ConfigError, match="'sh' exited with code 127"):
        bisect(["a"], command_fails(["sh", "-c", "no-such-command"], tell=list))


def test_a_person_may_be_asked() -> None:
    told: list[str] = []
    answers = iter(["what?", "bad", "g", "B", "quit"])
    fails = ask_if_fails(lambda question: next(answers), keep=["k"], tell=told.append)
    with pytest.raises(ConfigError, match="stopped before the cause of the failure was found"):
        bisect(["a", "b", "c", "d"], fails)
    assert told[1] == "Try it with no plugin: JACKFIELD_PLUGINS=k"
    assert told[2] == "Try it with 2 plugins: JACKFIELD_PLUGINS=k,a,b"


def test_the_command_line_finds_the_plugin_that_breaks_a_command(place: Any, wheelhouse: Any) -> None:
    breaks = "import sys\nsys.modules['jackfield_broke_it'] = sys\n"
    for name in ("one", "two", "three"):
        wheelhouse.add(name, offers=[f"tool.{name}"], source=breaks if name == "two" else "")
    place.done("install", "--any", *place.offline, "one", "two", "three")
    source = "import importlib, sys; from jackfield.plugins._host import PluginHost\n"
    source += "for row in PluginHost().policy.rows(): importlib.import_module(row.module)\n"
    source += "sys.exit('jackfield_broke_it' in sys.modules)"
    said = place.done("bisect", "--timeout", "60", "--", place.python, "-c", source, "--option-of-the-command")
    assert said.splitlines()[-1] == "two causes the failure (6 runs). To disable it, run: jackfield plugins disable two"
    ran = place.run("bisect", place.python, "-c", "raise SystemExit(0)")
    assert (ran.returncode, "does not occur with all plugins" in ran.stdout) == (1, True)
    ran = place.run("bisect", "--", place.python, "-c", "0", JACKFIELD_SAFE="1")
    assert "no plugins load in safe mode" in ran.stderr
    ran = place.run("bisect", "--keep", "four", "--", "true")
    assert "--keep four: the plugin is not installed, or is not allowed to load" in ran.stderr


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (
            Result("culprit", ("a",), 5),
            "a causes the failure (5 runs). To disable it, run: jackfield plugins disable a",
        ),
        (
            Result("together", ("a", "b"), 7),
            "the failure occurs only with all of these together: a, b (7 runs). Disabling one is enough",
        ),
        (
            Result("without any", (), 2),
            "the failure also occurs without any plugins (2 runs), so plugins are not the cause",
        ),
        (Result("never", (), 1), "the failure does not occur with all plugins (1 run), so there is nothing to find"),
    ],
)
def test_each_outcome_is_a_sentence(result: Result, sentence: str) -> None:
    assert result.sentence() == sentence


def test_each_run_is_told_with_its_plugins_and_how_it_ended() -> None:
    told: list[str] = []
    environ = {"PATH": os.environ["PATH"], "CODE": "7"}
    fails = command_fails(["sh", "-c", 'test -n "$HOME" || exit $CODE'], keep=["k"], environ=environ, tell=told.append)
    assert [fails(()), fails(("a",)), fails(("a", "b"))] == [True] * 3
    command_fails(["sh", "-c", "kill -9 $$"], match="boom", tell=told.append)(("a",))
    assert told == [
        "run 1: no plugin: fails (exit code 7)",
        "run 2: a: fails (exit code 7)",
        "run 3: 2 plugins: fails (exit code 7)",
        "run 1: a: does not fail (exit code -9)",
    ]


def test_without_a_rule_of_the_user_only_the_others_are_blocked() -> None:
    command = ["sh", "-c", 'echo "<$JACKFIELD_PLUGINS_BLOCK>"']
    environ = {"PATH": os.environ["PATH"]}
    assert command_fails(command, plugins=["a", "b", "c"], environ=environ, match="<b,c>", tell=list)(("a",))


def test_a_plugin_that_is_kept_is_named_once() -> None:
    command = ["sh", "-c", 'echo "<$JACKFIELD_PLUGINS>"']
    assert command_fails(command, keep=["k"], match="<k,a>", tell=list)(("a", "k"))
    told: list[str] = []
    ask_if_fails(lambda _: "good", keep=["k"], tell=told.append)(("a", "k"))
    assert told == ["Try it with 2 plugins: JACKFIELD_PLUGINS=k,a"]


@pytest.mark.parametrize("stream", [1, 2])
def test_the_text_that_is_looked_for_may_come_late_and_on_either_stream(stream: int) -> None:
    script = f"i=0; while [ $i -lt 2000 ]; do echo {'0123456789' * 10}; i=$((i+1)); done; echo boom >&{stream}"
    assert command_fails(["sh", "-c", script], match="boom", tell=list)(())


def test_a_command_never_reads_what_the_user_types() -> None:
    script = "from jackfield_manage.judging.bisect import command_fails\n"
    script += "print(command_fails(['sh', '-c', 'read line'], tell=list)(()))"
    done = subprocess.run([sys.executable, "-c", script], input="typed\n", capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("code", [126, 127])
def test_a_shell_that_cannot_run_the_command_blames_no_plugin(code: int) -> None:
    with pytest.raises(ConfigError, match=f"^'sh' exited with code {code}: the command itself cannot be run$"):
        command_fails(["sh", "-c", f"exit {code}"], tell=list)(())
    with pytest.raises(ConfigError, match=r"^'/srv/none' cannot be run: No such file or directory$"):
        command_fails(["/srv/none"], tell=list)(())


@pytest.mark.parametrize(
    ("answer", "fails"), [("g", False), ("GOOD", False), ("b", True), (" Bad \n", True), ("good", False)]
)
def test_an_answer_counts_in_any_form(answer: str, fails: bool) -> None:
    answers = iter([answer, "quit"])
    assert ask_if_fails(lambda _: next(answers), tell=list)(()) is fails


def test_the_end_of_the_input_stops_the_search() -> None:
    def ask(_: str) -> str:
        raise EOFError

    told: list[str] = []
    with pytest.raises(ConfigError, match="stopped before the cause of the failure was found"):
        ask_if_fails(ask, tell=told.append)(())
    assert told == ["Try it with no plugin: JACKFIELD_PLUGINS=''"]


# --- on the command line ---

SAYS = """
case ",$JACKFIELD_PLUGINS," in *,two,*) echo boom; exit 1;; *,three,*) exit 2;; esac
"""


@pytest.fixture
def search(site: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `bisect` beside three plugins and the manager; it returns the exit code and the lines."""
    for name in ("one", "two", "three"):
        site.add_tools(name, name)
    monkeypatch.setenv("JACKFIELD_PLUGINS", "one,two,three")
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers())

    def run(*words: str, typed: str = "") -> tuple[int, list[str]]:
        options = parser.parse_args(["bisect", *words])
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = options.handler(options)
        return code, capsys.readouterr().out.splitlines()

    return run


def test_the_command_may_contain_options_and_dashes(search: Any) -> None:
    check = 'test "$1 $2" = "-- --keep" && test -z "$JACKFIELD_PLUGINS"'
    assert search("--", "sh", "-c", check, "sh", "--", "--keep") == (0, [
        "run 1: 3 plugins: fails (exit code 1)",
        "run 2: no plugin: does not fail (exit code 0)",
        "run 3: one: fails (exit code 1)",
        "one causes the failure (3 runs). To disable it, run: jackfield plugins disable one",
    ])  # fmt: skip
    assert search("sh", "-c", 'test "$1" != --', "sh", "--") == (1, [
        "run 1: 3 plugins: fails (exit code 1)",
        "run 2: no plugin: fails (exit code 1)",
        "the failure also occurs without any plugins (2 runs), so plugins are not the cause",
    ])  # fmt: skip


def test_a_plugin_that_is_kept_is_in_every_run_and_is_no_suspect(search: Any) -> None:
    assert search("--keep", "Three", "--match", "boom", "--", "sh", "-c", SAYS) == (0, [
        "run 1: 2 plugins: fails (exit code 1)",
        "run 2: no plugin: does not fail (exit code 2)",
        "run 3: one: does not fail (exit code 2)",
        "run 4: two: fails (exit code 1)",
        "two causes the failure (4 runs). To disable it, run: jackfield plugins disable two",
    ])  # fmt: skip


def test_a_run_blocks_the_plugins_that_it_leaves_out(search: Any) -> None:
    script = 'case "$JACKFIELD_PLUGINS_BLOCK" in *one*) exit 0;; *) exit 1;; esac'
    assert search("--keep", "three", "--", "sh", "-c", script)[1][1:] == [
        "run 2: no plugin: does not fail (exit code 0)",
        "run 3: one: fails (exit code 1)",
        "one causes the failure (3 runs). To disable it, run: jackfield plugins disable one",
    ]


def test_a_run_that_takes_too_long_fails(search: Any) -> None:
    code, lines = search("--timeout", "0.5", "--", "sleep", "600")
    assert (code, lines[0]) == (1, "run 1: 3 plugins: fails (timed out after 0.5 s)")


def test_without_a_command_the_user_is_asked(search: Any) -> None:
    assert search("--keep", "one", typed="bad\ngood\nbad\n") == (0, [
        "Try it with 2 plugins: JACKFIELD_PLUGINS=one,three,two",
        "good, bad or quit? Try it with no plugin: JACKFIELD_PLUGINS=one",
        "good, bad or quit? Try it with three: JACKFIELD_PLUGINS=one,three",
        "good, bad or quit? three causes the failure (3 runs). To disable it, run: jackfield plugins disable three",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"), [("0.5", 0.5), ("1e8", 1e8), ("0", None), ("-1", None), ("1e9", None), ("nan", None)]
)
def test_a_time_is_a_number_of_seconds_above_0(text: str, value: float | None) -> None:
    if value is not None:
        assert seconds(text) == value
        return
    with pytest.raises(argparse.ArgumentTypeError, match="must be a positive number of seconds"):
        seconds(text)
