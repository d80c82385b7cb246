"""Runs as metrics, read by Prometheus' own parser."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from jackfield import FnCallAgent, tool
from jackfield.agents import CancelToken
from jackfield.errors import ModelRequestError, ModelServiceError
from jackfield.events import (
    HandedOff,
    ModelFinished,
    RetryScheduled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamReset,
    TextDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from jackfield.messages import Message, Usage
from jackfield.streams import closing
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_prometheus import exposition, metrics_app, set_queue_length
from jackfield_prometheus.metrics import MAX_NAMES, OTHER
from jackfield_prometheus.observer import PrometheusObserver

QUESTION = [{"role": "user", "content": "Hi"}]


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} is a tree"


@tool
def burn(word: str) -> str:
    """Fail."""
    raise RuntimeError(word)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def _agent(registry: CollectorRegistry, *script: Any, name: str = "helper", **options: Any) -> FnCallAgent:
    observer = PrometheusObserver(registry)
    return FnCallAgent([look_up, burn], ScriptedModel(list(script)), name=name, observers=[observer], **options)


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def _value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """Return the sum of the samples of this name that have these labels."""
    return sum(
        value for each, its, value in _samples(exposition(registry)) if each == name and labels.items() <= its.items()
    )


def test_a_run_is_counted_with_its_outcome_tokens_and_calls(registry: CollectorRegistry) -> None:
    script = (calls(("look_up", {"word": "oak"}), ("burn", {"word": "oak"})), answer("A tree."))
    result = _agent(registry, *script).ask("What is an oak?")
    assert _value(registry, "jackfield_runs_total", agent="helper", outcome="finished") == 1
    assert _value(registry, "jackfield_tokens_total", type="input") == result.usage.prompt_tokens > 0
    assert _value(registry, "jackfield_tokens_total", type="output") == result.usage.completion_tokens > 0
    assert _value(registry, "jackfield_tool_calls_total", tool="look_up") == 1
    assert _value(registry, "jackfield_tool_failures_total", tool="burn", error="RuntimeError") == 1
    assert _value(registry, "jackfield_tool_failures_total") == 1
    assert _value(registry, "jackfield_tool_duration_seconds_count") == 2
    assert _value(registry, "jackfield_time_to_first_token_seconds_count") == 2
    assert _value(registry, "jackfield_answer_duration_seconds_count") == 2
    assert _value(registry, "jackfield_run_duration_seconds_count", agent="helper") == 1
    assert _value(registry, "jackfield_runs_in_progress") == 0


def test_cost_is_counted_by_currency_and_unknown_cost_by_answer(registry: CollectorRegistry) -> None:
    observer = PrometheusObserver(registry)
    prices = [Usage(prompt_tokens=3, cost=Decimal("0.25"), currency="EUR", cached_tokens=2), Usage(prompt_tokens=1)]
    observer.observe(RunEvent("r", 1, "a", 0, RunStarted((Message("user", "Hi"),))))
    for usage in prices:
        for event in (TurnStarted(1), ModelFinished("stop", "m"), TurnFinished(1, (), usage)):
            observer.observe(RunEvent("r", 2, "a", 0, event))
    assert _value(registry, "jackfield_cost_total", model="m", currency="EUR") == 0.25
    assert _value(registry, "jackfield_unpriced_answers_total", model="m") == 1
    assert _value(registry, "jackfield_cached_tokens_total", model="m") == 2
    assert _value(registry, "jackfield_runs_in_progress", agent="a") == 1


def test_an_answer_without_a_model_is_not_counted_for_the_model_before(registry: CollectorRegistry) -> None:
    observer = PrometheusObserver(registry)
    answers = [(TurnStarted(1), ModelFinished("stop", "m")), (TurnStarted(2),)]
    observer.observe(RunEvent("r", 1, "a", 0, RunStarted((Message("user", "Hi"),))))
    for number, events in enumerate(answers, start=1):
        for event in (*events, TurnFinished(number, (), Usage(prompt_tokens=number))):
            observer.observe(RunEvent("r", 2, "a", 0, event))
    assert _value(registry, "jackfield_tokens_total", model="m", type="input") == 1
    assert _value(registry, "jackfield_tokens_total", model="", type="input") == 2


def test_the_first_token_is_that_of_the_answer_that_counts(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = (2.0**number for number in range(100))
    clock = SimpleNamespace(perf_counter=lambda: next(times))
    monkeypatch.setattr("jackfield_prometheus.observer.time", clock)
    observer = PrometheusObserver(registry)
    withdrawn = (TextDelta("Oa"), StreamReset("broken"))
    for event in (
        RunStarted(()),
        TurnStarted(1),
        *withdrawn,
        TextDelta("An "),
        TextDelta("oak."),
        TurnFinished(1, (), Usage()),
    ):
        observer.observe(RunEvent("r", 1, "a", 0, event))
    # Asked at 2, withdrawn at 4, the first piece at 8, the end at 16.
    assert _value(registry, "jackfield_time_to_first_token_seconds_sum") == 6
    assert _value(registry, "jackfield_answer_duration_seconds_sum") == 14
    for event in (TurnStarted(2), TurnFinished(2, (), Usage())):  # it comes in no pieces
        observer.observe(RunEvent("r", 1, "a", 0, event))
    assert _value(registry, "jackfield_time_to_first_token_seconds_count") == 1
    assert _value(registry, "jackfield_answer_duration_seconds_count") == 2


def test_a_run_that_begins_again_is_one_run(registry: CollectorRegistry) -> None:
    """Runs with people do, at each of their turns."""
    observer = PrometheusObserver(registry)
    for event in (RunStarted(()), RunStarted(()), RunFinished("finished", (), Usage())):
        observer.observe(RunEvent("r", 1, "a", 0, event))
        assert _value(registry, "jackfield_runs_in_progress") == isinstance(event, RunStarted)
    assert _value(registry, "jackfield_runs_total") == 1


def test_runs_of_one_agent_at_once_are_counted_together(registry: CollectorRegistry) -> None:
    observer = PrometheusObserver(registry)
    counts = []
    for run_id, event in (
        ("r", RunStarted(())),
        ("s", RunStarted(())),
        ("r", RunFinished("finished", (), Usage())),
        ("s", RunFailed("no", "StoreError")),
    ):
        observer.observe(RunEvent(run_id, 1, "a", 0, event))
        counts.append(_value(registry, "jackfield_runs_in_progress", agent="a"))
    assert counts == [1, 2, 1, 0]


def test_after_a_handoff_answers_and_calls_count_for_the_agent_that_took_over(registry: CollectorRegistry) -> None:
    """The run itself counts for the agent that began it."""
    observer = PrometheusObserver(registry)
    call = ToolFinished(0, "c", Message("function", "x", name="look_up", extra={"function_id": "c"}), 0.5)
    turn = TurnFinished(1, (), Usage(prompt_tokens=3))
    events = (RunStarted(()), HandedOff("first", "second"), TurnStarted(1), RetryScheduled(1, 0.5, "busy"), turn, call)
    for event in (*events, RunFinished("finished", (), Usage())):
        agent = "first" if isinstance(event, RunStarted | HandedOff) else "second"
        observer.observe(RunEvent("r", 1, agent, 0, event))
    for name in ("tokens_total", "retries_total", "tool_calls_total"):
        values = [_value(registry, f"jackfield_{name}", agent=agent) for agent in ("first", "second")]
        assert (values[0], values[1] > 0) == (0, True), name
    assert _value(registry, "jackfield_runs_total", agent="first") == 1
    assert _value(registry, "jackfield_runs_in_progress") == 0


def test_a_registry_is_shown_from_the_start_and_beside_the_files_of_other_processes(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ("jackfield_runs_queued", 0.0) in [(name, value) for name, _, value in _samples(exposition(registry))]
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert _value(registry, "jackfield_runs_queued") == 0
    set_queue_length(7, registry)
    assert _value(registry, "jackfield_runs_queued") == 7


def test_every_outcome_is_counted_once(registry: CollectorRegistry) -> None:
    with suppress(ModelServiceError):
        _agent(registry, [ModelRequestError("no such model")]).ask("Hi")
    token = CancelToken()
    token.cancel()
    _agent(registry, answer("Hello.")).ask("Hi", cancel=token)

    async def leave() -> None:
        async with closing(_agent(registry, answer("Hello.")).astream(QUESTION)) as events:
            await anext(events)
            assert _value(registry, "jackfield_runs_in_progress", agent="helper") == 1

    asyncio.run(leave())
    outcomes = {
        its["outcome"]: value for name, its, value in _samples(exposition(registry)) if name == "jackfield_runs_total"
    }
    assert outcomes == {"failed": 1, "cancelled": 1, "abandoned": 1}
    assert _value(registry, "jackfield_runs_in_progress") == 0


def test_nested_runs_are_counted_under_their_own_agent(registry: CollectorRegistry) -> None:
    clerk = _agent(registry, answer("Done."), name="clerk", description="Works.")
    boss = FnCallAgent(
        [clerk.as_tool()],
        ScriptedModel([calls(("clerk", {"request": "Work."})), answer("Good.")]),
        name="boss",
        observers=[PrometheusObserver(registry)],
    )
    result = boss.ask("Hi")
    assert _value(registry, "jackfield_runs_total", agent="clerk", outcome="finished") == 1
    assert _value(registry, "jackfield_runs_total", agent="boss", outcome="finished") == 1
    assert _value(registry, "jackfield_tokens_total", type="input") == result.usage.prompt_tokens


def test_names_that_models_make_up_become_no_labels(registry: CollectorRegistry) -> None:
    script = [calls((f"made_up_{number}", {})) for number in range(5)]
    _agent(registry, *script, answer("No.")).ask("Hi")
    for name in ("tool_calls_total", "tool_duration_seconds_count", "tool_failures_total"):
        assert _value(registry, f"jackfield_{name}", tool=OTHER) == _value(registry, f"jackfield_{name}") == 5


def test_only_retries_are_counted_as_retries(registry: CollectorRegistry) -> None:
    observer = PrometheusObserver(registry)
    for event in (RunStarted(()), TurnStarted(1), RetryScheduled(1, 0.5, "busy"), StreamReset("x"), StreamReset("y")):
        observer.observe(RunEvent("r", 1, "a", 0, event))
    assert _value(registry, "jackfield_retries_total", agent="a") == 1


def test_a_tool_of_the_agent_keeps_its_name_when_it_fails_first(registry: CollectorRegistry) -> None:
    """A name that failed is known from the agent only, also from an agent that the observer saw before."""
    observer = PrometheusObserver(registry)
    one, other = (
        SimpleNamespace(function_map=dict.fromkeys(names)) for names in (("look_up", "burn"), ("burn", "send"))
    )
    for agent in (one, other, SimpleNamespace()):
        observer.prepare(agent)
    observer.observe(RunEvent("r", 1, "a", 0, RunStarted(())))
    for name, error in (("look_up", "E"), ("burn", "E"), ("send", "E"), ("made_up", "E"), ("made_by_client", "")):
        message = Message("function", "x", name=name, extra={"function_id": "c"})
        observer.observe(RunEvent("r", 2, "a", 0, ToolFinished(0, "c", message, 0.5, error)))
    counts = {
        its["tool"]: value
        for name, its, value in _samples(exposition(registry))
        if name == "jackfield_tool_calls_total"
    }
    assert counts == dict.fromkeys(("look_up", "burn", "send", OTHER, "made_by_client"), 1)
    assert _value(registry, "jackfield_tool_failures_total", agent="a", error="E") == 4
    assert _value(registry, "jackfield_tool_duration_seconds_sum", tool="burn") == 0.5


def test_the_number_of_tools_whose_names_are_remembered_is_bounded(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_prometheus.observer._MAX_KNOWN_TOOLS", 2)
    observer = PrometheusObserver(registry)
    observer.observe(RunEvent("r", 1, "a", 0, RunStarted(())))
    for name in ("first", "second", "third"):
        observer.prepare(SimpleNamespace(function_map={name: None}))
        message = Message("function", "x", name=name, extra={"function_id": "c"})
        observer.observe(RunEvent("r", 2, "a", 0, ToolFinished(0, "c", message, 0.5, "E")))
    assert [_value(registry, "jackfield_tool_calls_total", tool=name) for name in ("first", "second", OTHER)] == [1] * 3


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (Usage(prompt_tokens=3, completion_tokens=5), {"tokens_total": 8, "unpriced_answers_total": 1}),
        (Usage(reasoning_tokens=7), {"reasoning_tokens_total": 7, "unpriced_answers_total": 1}),
        (Usage(cached_tokens=4, cost=Decimal(0)), {"cached_tokens_total": 4}),
        (Usage(cost=Decimal("0.5")), {"cost_total": 0.5}),
    ],
    ids=str,
)
def test_each_kind_of_usage_has_a_metric_of_its_own(
    usage: Usage, counts: Mapping[str, float], registry: CollectorRegistry
) -> None:
    observer = PrometheusObserver(registry)
    for event in (RunStarted(()), TurnStarted(1), ModelFinished("stop", "m"), TurnFinished(1, (), usage)):
        observer.observe(RunEvent("r", 1, "a", 0, event))
    names = (
        "tokens_total", "cached_tokens_total", "reasoning_tokens_total", "cost_total", "unpriced_answers_total",
    )  # fmt: skip
    values = {name: _value(registry, f"jackfield_{name}", agent="a", model="m") for name in names}
    assert values == {**dict.fromkeys(names, 0), **counts}
    currencies = [its["currency"] for name, its, _ in _samples(exposition(registry)) if name == "jackfield_cost_total"]
    assert currencies == ([""] if "cost_total" in counts else []), "a free answer is in no currency"
    assert _value(registry, "jackfield_tokens_total", type="input") == usage.prompt_tokens
    assert _value(registry, "jackfield_time_to_first_token_seconds_count") == 0  # it came in no pieces


@pytest.mark.parametrize("label", ["agent", "model"])
def test_a_label_has_a_bounded_number_of_values(label: str, registry: CollectorRegistry) -> None:
    observer, limit = PrometheusObserver(registry), MAX_NAMES[label]
    for number in range(limit + 50):
        names = {"agent": "a", "model": "m", label: f"{label}-{number}"}
        events = (RunStarted(()), TurnStarted(1), ModelFinished("stop", names["model"]), TurnFinished(1, (), Usage()))
        for event in events:
            observer.observe(RunEvent(f"r{number}", 1, names["agent"], 0, event))
    values = {
        its[label]
        for name, its, _ in _samples(exposition(registry))
        if name == "jackfield_answer_duration_seconds_count"
    }
    assert len(values) == limit + 1
    assert _value(registry, "jackfield_answer_duration_seconds_count", **{label: OTHER}) == 50


@example(["a\ud800"])
@given(st.lists(st.text(alphabet=st.characters(exclude_categories=()), max_size=150), min_size=1, max_size=4))
@settings(max_examples=settings().max_examples // 2)
def test_any_name_can_be_exposed_and_parsed(names: list[str]) -> None:
    registry = CollectorRegistry()
    observer = PrometheusObserver(registry)
    for number, name in enumerate(names):
        usage = Usage(prompt_tokens=1)
        for event in (
            RunStarted(()),
            TextDelta(name),
            UsageReported(usage),
            ModelFinished("stop", name),
            TurnFinished(1, (), usage),
        ):
            observer.observe(RunEvent(str(number), 1, name, 0, event))
    assert _value(registry, "jackfield_tokens_total", type="input") == len(names)


def test_the_queue_is_a_gauge(registry: CollectorRegistry) -> None:
    set_queue_length(7, registry)
    assert _value(registry, "jackfield_runs_queued") == 7
    PrometheusObserver(registry).set_queue_length(0)
    assert _value(registry, "jackfield_runs_queued") == 0


def test_the_app_answers_with_what_prometheus_reads(registry: CollectorRegistry) -> None:
    _agent(registry, answer("Hello.")).ask("Hi")
    sent: list[dict[str, Any]] = []

    async def call() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
        await metrics_app(registry)(scope, receive, send)

    asyncio.run(call())
    assert sent[0]["status"] == 200
    assert dict(sent[0]["headers"])[b"Content-Type"].startswith(b"text/plain")
    body = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    assert ("jackfield_runs_total", 1.0) in [(name, value) for name, _, value in _samples(body)]


README = Path(__file__).parent.parent / "README.md"


def test_the_readme_names_every_metric_with_its_type_and_labels(registry: CollectorRegistry) -> None:
    metrics = vars(PrometheusObserver(registry)._metrics)
    made = {
        metric._name + ("_total" if metric._type == "counter" else ""): (metric._type, metric._labelnames)
        for name, metric in metrics.items()
        if name != "labels"
    }
    rows = [line.split("|") for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    told = {name.strip(" `"): (kind.strip(), tuple(re.findall(r"\w+", labels))) for _, name, kind, labels, *_ in rows}
    assert made == told
    assert MAX_NAMES == {"agent": 100, "model": 100, "tool": 200, "error": 50}


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("GeneratorExit", "abandoned"), ("CancelledError", "abandoned"), ("StoreError", "failed")],
)
def test_a_run_whose_reader_leaves_is_abandoned_and_any_other_error_is_a_failure(
    kind: str, outcome: str, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((10.0, 11.0, 12.5))
    clock = SimpleNamespace(perf_counter=lambda: next(times))
    monkeypatch.setattr("jackfield_prometheus.observer.time", clock)
    observer = PrometheusObserver(registry)
    for event in (RunStarted(()), TurnStarted(1), RunFailed("no", kind), RunFailed("again", kind)):
        observer.observe(RunEvent("r", 1, "a", 0, event))
    assert _value(registry, "jackfield_runs_total", agent="a", outcome=outcome) == 1
    assert _value(registry, "jackfield_runs_total") == 1
    assert _value(registry, "jackfield_run_duration_seconds_sum", agent="a") == 2.5


@pytest.mark.parametrize(("label", "error"), [("tool", ""), ("error", "E")])
def test_names_of_tools_and_errors_are_bounded_in_number_and_length(
    label: str, error: str, registry: CollectorRegistry
) -> None:
    observer, limit = PrometheusObserver(registry), MAX_NAMES[label]
    observer.observe(RunEvent("r", 1, "a", 0, RunStarted(())))
    for number in range(limit + 3):
        name = f"{number:03}{'x' * 200}"
        message = Message("function", "x", name=name if label == "tool" else "t")
        call = ToolFinished(0, "c", message, 0.5, error and f"{error}{name}")
        for _ in range(2):
            observer.observe(RunEvent("r", 2, "a", 0, call))
    counted = "jackfield_tool_calls_total" if label == "tool" else "jackfield_tool_failures_total"
    values = {its[label] for name, its, _ in _samples(exposition(registry)) if name == counted}
    assert len(values) == limit + 1
    assert {len(value) for value in values} == {100, len(OTHER)}
    assert _value(registry, counted, **{label: OTHER}) == 6


_WORKER = """
import sys
from jackfield import BasicAgent
from jackfield.testing import ScriptedModel, answer
from jackfield_prometheus import exposition
if sys.argv[1] == "run":
    BasicAgent(llm=ScriptedModel([answer("Hello.")]), name="helper", observers=["prometheus"]).ask("Hi")
else:
    print(exposition())
"""


def test_the_processes_of_a_server_are_shown_together(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", _WORKER, "run"], env=environment, check=True, timeout=120)
    shown = subprocess.run(
        [sys.executable, "-c", _WORKER, "show"],
        env=environment,
        check=True,
        timeout=120,
        capture_output=True,
        text=True,
    )
    runs = [
        value
        for name, its, value in _samples(shown.stdout)
        if name == "jackfield_runs_total" and its["agent"] == "helper"
    ]
    assert runs == [2]
    gauges = [
        its for name, its, _ in _samples(shown.stdout) if name.startswith("jackfield_runs_") and "total" not in name
    ]
    assert gauges
    assert all("pid" not in its for its in gauges), "the gauges of all processes are added up"
