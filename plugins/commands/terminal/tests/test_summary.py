"""What is told of a run when it is over."""

from __future__ import annotations

from decimal import Decimal

import pytest

from jackfield.events import PluginEvent, RunEvent, RunFinished, RunStarted, ToolFinished, TurnStarted
from jackfield.messages import Message, Usage
from jackfield_terminal.summary import Summary, money


def test_sources_are_told_once_and_what_it_used_as_far_as_it_is_known() -> None:
    times = iter((10.0, 12.5))
    summary = Summary(clock=lambda: next(times))
    usage = Usage(prompt_tokens=20, completion_tokens=5, cost=Decimal("0.0021"), currency="USD")
    message = Message("function", "x", name="search")
    for number, event in enumerate(
        (
            RunStarted(()),
            TurnStarted(1),
            PluginEvent("acme.found", {"sources": ["a.pdf", "b.md", "a.pdf"]}),
            PluginEvent("acme.odd", {"sources": "text"}),
            ToolFinished(0, "c", message, 0.1, "", {"sources": ("b.md", "c.md", 5)}),
            TurnStarted(2),
            RunFinished("finished", (), usage),
        )
    ):
        summary.feed(RunEvent("r", number, "a", 0, event))
    assert summary.lines() == ["sources: a.pdf; b.md; c.md", "20 + 5 tokens, 0.0021 USD, 2 turns, 2.5 s"]
    assert summary.calls == 1


def test_each_source_can_be_told_from_the_next() -> None:
    summary = Summary(clock=lambda: 1.0)
    found = [{"location": "a.pdf", "page": 3}, "b.pdf", {"location": "b.pdf", "page": 12}]
    summary.feed(RunEvent("r", 1, "a", 0, PluginEvent("acme.found", {"sources": found})))
    assert summary.lines()[0] == "sources: a.pdf, page 3; b.pdf; b.pdf, page 12"


def test_citations_are_footnotes_in_place_of_the_sources() -> None:
    summary = Summary(clock=lambda: 1.0)
    answer = Message("assistant", "48 [1]. Red [3]. Blue [3].")
    marks = [
        {"mark": "1", "location": "a.pdf", "page": 3, "quote": "48\nsockets", "answer_ranges": [[3, 6]]},
        {"mark": "3", "location": "b.md", "headings": ["Plugs"], "answer_ranges": [[12, 15]]},
        {"mark": "2", "location": "c.md", "answer_ranges": [[3, 6]]},  # of another answer
        {"mark": "3", "location": "b.md", "headings": ["Plugs"], "answer_ranges": [[22, 25]]},  # once more
    ]
    data = {"sources": ["a.pdf", "b.md", "c.md"], "citations": marks}
    summary.feed(RunEvent("r", 1, "a", 0, PluginEvent("acme.cited", data)))
    summary.feed(RunEvent("r", 2, "a", 0, RunFinished("finished", (answer,), Usage())))
    assert summary.lines() == ["[1] a.pdf, page 3: “48 sockets”", "[3] b.md, Plugs", "0.0 s"]


def test_of_an_offline_model_only_the_time_is_known() -> None:
    times = iter((1.0, 1.25))
    summary = Summary(clock=lambda: next(times))
    summary.feed(RunEvent("r", 1, "a", 0, RunStarted(())))
    summary.feed(RunEvent("r", 2, "a", 0, RunFinished("finished", (), Usage())))
    assert summary.lines() == ["0.2 s"]


def test_a_cancelled_answer_without_counts_is_not_reported_as_free() -> None:
    summary = Summary(clock=lambda: 1.0)
    for run, usage in (("a", Usage(prompt_tokens=7)), ("b", Usage())):
        summary.feed(RunEvent(run, 1, "a", 0, RunFinished("cancelled", (), usage)))
    assert summary.figures()[:3] == ["7 + 0 tokens", "tokens of the cancelled answer unknown", "price unknown"]


@pytest.mark.parametrize(
    ("cost", "shown"), [("1.5", "1.5000 USD"), ("0.00002", "0.00002 USD"), ("0", "0 USD"), ("12.34567", "12.3457 USD")]
)
def test_a_small_amount_is_not_told_as_zero(cost: str, shown: str) -> None:
    assert money(Decimal(cost), "USD") == shown


def ended(run: str, usage: Usage, *, depth: int = 0, reason: str = "finished") -> RunEvent:
    return RunEvent(run, 2, "a", depth, RunFinished(reason, (), usage))  # type: ignore[arg-type]


def test_runs_are_summed_and_those_of_agents_below_are_part_of_theirs() -> None:
    times = iter((1.0, 2.0, 10.0, 13.0))
    summary = Summary(clock=lambda: next(times))
    for run in ("one", "two"):
        summary.feed(RunEvent(run, 1, "a", 0, TurnStarted(1)))
        summary.feed(ended("below", Usage(prompt_tokens=100, completion_tokens=1), depth=1))
        summary.feed(ended(run, Usage(prompt_tokens=4, completion_tokens=2)))
    assert summary.run_id == "two"
    assert summary.figures() == ["8 + 4 tokens", "price unknown", "2 turns", "4.0 s"]


def test_a_run_that_began_has_not_ended() -> None:
    summary = Summary(clock=lambda: 1.0)
    summary.feed(ended("one", Usage()))
    assert summary.end is not None
    summary.feed(RunEvent("two", 1, "a", 0, RunStarted(())))
    assert summary.end is None


def test_one_turn_is_not_worth_a_word_and_several_uncounted_answers_are_counted() -> None:
    summary = Summary(clock=lambda: 1.0)
    summary.feed(RunEvent("one", 1, "a", 0, TurnStarted(1)))
    for run in ("one", "two"):
        summary.feed(ended(run, Usage(), reason="cancelled"))
    assert summary.figures() == ["tokens of the cancelled 2 answers unknown", "0.0 s"]


@pytest.mark.parametrize(
    ("cost", "currency", "shown"),
    [
        ("0.0001", "USD", "0.0001 USD"),
        ("0.00009", "USD", "0.00009 USD"),
        ("1", None, "1.0000"),
        ("100", "CNY", "100.0000 CNY"),
    ],
)
def test_an_amount_has_four_decimals_unless_it_is_smaller(cost: str, currency: str | None, shown: str) -> None:
    assert money(Decimal(cost), currency) == shown
