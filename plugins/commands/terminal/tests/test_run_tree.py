"""Recorded runs as trees: each step with its figures, nested agents indented, within the width of the terminal."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent, sync, tool
from jackfield.cli import width_of
from jackfield.cli.main import main
from jackfield.events import UsageReported
from jackfield.messages import Usage
from jackfield.plugins import default_host
from jackfield.stores import StoredRun
from jackfield.testing import ScriptedModel, Step, answer, calls
from jackfield_terminal.run_tree import RunStep, _plus, _time, tree_lines, tree_of
from jackfield_terminal.runs import _print_tree


@tool
def search(city: str) -> str:
    """Search."""
    return "3 flights"


@tool
def burn(word: str) -> str:
    """Fail."""
    raise RuntimeError("no")


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


def _used(step: Step, prompt: int, completion: int, cost: str | None) -> Step:
    usage = Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=None if cost is None else Decimal(cost),
        currency=None if cost is None else "USD",
    )
    return [UsageReported(usage) if isinstance(event, UsageReported) else event for event in step]


def _record(folder: Path, *, content: bool = True) -> tuple[str, list[dict[str, Any]]]:
    store = default_host().load("store", "sqlite")(path=str(folder / "runs.db"), content=content)
    work = [_used(calls(("search", {"city": "Bonn"}), ("burn", {"word": "x"})), 1210, 88, "0.5"), answer("Found.")]
    clerk = FnCallAgent([search, burn], ScriptedModel(work), name="clerk", description="Works.")
    script = [
        _used(calls(("clerk", {"request": "Go"}), text="I ask."), 800, 40, "0.25"),
        _used(calls(("pay", {"amount": 3})), 900, 30, "0.25"),
    ]
    agent = FnCallAgent([clerk.as_tool(), pay], ScriptedModel(script), name="boss", store=store)
    run_id = agent.ask("Book it.").run_id
    _, entries = sync.run(store.read(run_id))
    return run_id, [json.loads(entry) for entry in entries]


def _names(step: RunStep, depth: int = 0) -> list[str]:
    return ["  " * depth + step.name, *(name for one in step.steps for name in _names(one, depth + 1))]


@pytest.mark.parametrize("content", [True, False])
def test_a_tree_has_the_steps_of_all_agents_in_order(content: bool, tmp_path: Path) -> None:
    tree = tree_of("boss", _record(tmp_path, content=content)[1])
    assert sorted(_names(tree)) == sorted([
        "boss",
        "  answer 1",
        "  clerk",
        "    answer 1",
        "    search",
        "    burn",
        "    answer 2",
        "  answer 2",
        "  approval needed",
    ])  # fmt: skip
    assert [step.name for step in tree.steps] == ["answer 1", "clerk", "answer 2", "approval needed"]


def test_an_agent_has_the_sum_of_its_tree_and_an_unknown_cost_is_marked(tmp_path: Path) -> None:
    tree = tree_of("boss", _record(tmp_path)[1])
    clerk = tree.steps[1]
    assert clerk.seconds is not None
    assert clerk.usage == Usage(prompt_tokens=1211, completion_tokens=89, cost=Decimal("0.5"), currency="USD")
    assert tree.usage == Usage(prompt_tokens=2911, completion_tokens=159, cost=Decimal("1.0"), currency="USD")
    assert not tree.is_cost_known
    lines = tree_lines(tree, 100)
    assert lines[0].split() == ["step", "time", "in", "out", "cost"]
    assert lines[1].split() == ["boss", "approval", "needed", "2,911", "159", "1.0000", "USD", "+"]
    assert "I ask.; calls clerk" in lines[2]
    failed = next(line for line in lines if line.strip().startswith("burn"))
    assert 'RuntimeError {"word": "x"}' in failed


def test_times_of_answers_are_recorded(tmp_path: Path) -> None:
    record = _record(tmp_path)[1]
    assert all(isinstance(entry["seconds"], float) for entry in record if entry["event"] == "TurnFinished")


TEXTS = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)


@given(
    st.recursive(
        st.builds(lambda name, detail: RunStep(name=name, detail=detail), name=TEXTS, detail=TEXTS),
        lambda steps: st.builds(
            lambda name, steps: RunStep(name=name, steps=steps), name=TEXTS, steps=st.lists(steps, max_size=3)
        ),
        max_leaves=12,
    ),
    st.integers(60, 140),
)
def test_no_line_is_wider_than_the_terminal_or_controls_it(root: RunStep, columns: int) -> None:
    lines = tree_lines(root, columns)
    assert all(width_of(line) <= columns for line in lines)
    assert not any(re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", line) for line in lines)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_command_shows_the_tree(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    FnCallAgent([search], ScriptedModel([calls(("search", {"city": "Bonn " * 60})), answer("ok")]), store="sqlite").ask(
        "?"
    )
    monkeypatch.setattr("jackfield_terminal.runs.terminal_columns", lambda _: columns)
    assert main(["runs", "show", "last", "--tree"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("run ")
    head = next(number for number, line in enumerate(lines) if line.startswith("step "))
    assert max(map(len, lines[head:])) <= columns
    assert [line.split()[0] for line in lines[head:]] == ["step", "FnCallAgent", "answer", "search", "answer"]
    assert "…" in lines[head + 3]


@pytest.mark.parametrize(
    ("total", "usage", "cost", "currency"),
    [
        ((None, None), (None, None), None, None),
        (("1", "USD"), (None, None), "1", "USD"),
        ((None, None), ("2", "USD"), "2", "USD"),
        (("1", "USD"), ("2", "USD"), "3", "USD"),
        (("1", "USD"), ("2", "EUR"), "1", "USD"),
        ((None, "USD"), ("2", "EUR"), None, "USD"),
    ],
)
def test_costs_are_summed_in_one_currency(total: Any, usage: Any, cost: str | None, currency: str | None) -> None:
    def of(pair: Any) -> Usage:
        return Usage(prompt_tokens=1, completion_tokens=2, cost=pair[0] and Decimal(pair[0]), currency=pair[1])

    summed = _plus(of(total), of(usage))
    assert (summed.prompt_tokens, summed.completion_tokens) == (2, 4)
    assert (summed.cost, summed.currency) == (cost and Decimal(cost), currency)


def _turn(cost: str | None, currency: str | None, **more: Any) -> dict[str, Any]:
    usage = Usage(prompt_tokens=1, completion_tokens=2, cost=None if cost is None else Decimal(cost), currency=currency)
    return {"event": "TurnFinished", "usage": usage.model_dump(mode="json"), **more}


@pytest.mark.parametrize(
    ("costs", "shown"),
    [
        ([("1", "USD"), ("2", "USD")], "3.0000 USD"),
        ([("1", "USD"), ("2", "EUR")], "1.0000 USD +"),
        ([("1", "EUR"), ("2", "USD"), ("3", "EUR")], "4.0000 EUR +"),
        ([("1", "USD"), (None, None), ("2", "USD")], "3.0000 USD +"),
        ([(None, None), ("2", "USD")], "2.0000 USD +"),
        ([("0", "USD"), ("2", "USD")], "2.0000 USD"),
    ],
)
def test_a_total_that_lacks_a_cost_is_marked_at_every_depth(
    costs: list[tuple[str | None, str | None]], shown: str
) -> None:
    asked = {"agent": "clerk", "place": "call c1 #1"}
    nested = [_turn(*cost, below=1, **({"asked": asked} if number == 0 else {})) for number, cost in enumerate(costs)]
    lines = tree_lines(tree_of("boss", nested), 100)
    assert [line.strip().split()[0] for line in lines[1:3]] == ["boss", "clerk"]
    assert [line.endswith(f"{2 * len(costs)}  {shown}") for line in lines[1:3]] == [True, True]


@pytest.mark.parametrize(("state", "seconds"), [("finished", 5.0), ("running", None)])
def test_a_run_that_goes_on_has_no_time_yet(state: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[RunStep] = []
    monkeypatch.setattr("jackfield_terminal.run_tree.tree_lines", lambda tree, columns: shown.append(tree) or [])
    run = StoredRun(run_id="r", state=state, began=10.0, changed=15.0, agent="boss")
    _print_tree(run, [{"event": "RunStarted", "messages": []}])
    assert shown[0].seconds == seconds


def test_each_entry_of_a_record_is_a_step_or_says_how_an_agent_ended() -> None:
    call = {"function_call": {"name": "look", "arguments": '{"a": 1}'}, "extra": {"function_id": "c1"}}
    nested = {"above": 0, "agent": "clerk", "place": "call c2 #1"}
    finished = {"event": "ToolFinished", "call_id": "c1", "message": {"name": "look"}}
    tree = tree_of(
        "boss",
        [
            {"event": "TurnFinished", "turn": 1, "messages": [{"content": "Hm"}, call], "seconds": 0},
            {**finished, "seconds": 2, "error": "OSError"},
            finished,  # another call of the same id, which no answer made
            {"event": "TurnFinished", "below": 1, "asked": nested, "turn": 1},
            {"event": "RunFinished", "below": 1, "stop_reason": "turn_limit"},
            {"event": "ToolFinished", "call_id": "c2", "seconds": 3, "error": "ToolServiceError"},
            {"event": "ToolFinished", "call_id": "c2"},  # models use ids again: this call asked no agent
            {"event": "TurnFinished", "turn": 7, "below": 9},  # of a run whose beginning is lost
            {"event": "HandedOff", "to": "clerk"},
            {"event": "Resumed"},
            {"event": "RunFailed", "kind": "OSError", "error": "gone"},
        ],
    )
    assert tree.detail == "failed: OSError gone"
    assert [(step.name, step.detail, step.seconds) for step in tree.steps] == [
        ("answer 1", "Hm; calls look", None), ("look", 'OSError {"a": 1}', 2), ("look", "", None),
        ("clerk", "turn limit", 3), ("tool", "", None), ("hand-off", "to clerk", None), ("resumed", "", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, ""), (0.25, "250 ms"), (0.9994, "999 ms"), (1, "1.0 s"), (99.9, "99.9 s"), (100, "1:40 min")],
)
def test_a_time_has_the_unit_of_its_size(seconds: float | None, shown: str) -> None:
    assert _time(seconds) == shown


@pytest.mark.parametrize(("columns", "shown"), [(0, 100), (60, 60), (10, 24), (2000, 503)])
def test_a_long_detail_is_cut_to_the_terminal_and_in_a_pipe_to_a_hundred_columns(columns: int, shown: int) -> None:
    head, line = tree_lines(RunStep(name="a", detail="x" * 600), columns)
    assert head.split() == ["step", "time", "in", "out"], "no column for a cost that is unknown everywhere"
    rest = len(head) - len(head[: head.index("  time")].rstrip().ljust(head.index("  time")))
    assert len(line) == (shown if columns in (0, 10, 2000) else columns - rest)
