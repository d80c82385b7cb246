"""Bisecting: the smallest set, with few runs, and really with processes."""

from __future__ import annotations

import os
import sys
import time
from math import ceil, log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
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
    with pytest.raises(ConfigError, match="stopped before anything was found"):
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
    assert said.splitlines()[-1] == "two makes it fail (6 runs). To disable it: jackfield plugins disable two"
    ran = place.run("bisect", place.python, "-c", "raise SystemExit(0)")
    assert (ran.returncode, "does not fail with all plugins" in ran.stdout) == (1, True)
    ran = place.run("bisect", "--", place.python, "-c", "0", JACKFIELD_SAFE="1")
    assert "no plugin loads in safe mode" in ran.stderr
    ran = place.run("bisect", "--keep", "four", "--", "true")
    assert "--keep four: this is not a plugin that may load" in ran.stderr
