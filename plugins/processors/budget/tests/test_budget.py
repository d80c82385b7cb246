"""What answers cost, what is said of them, and where it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from jackfield import FnCallAgent, PluginHost, tool
from jackfield.config import GenerateConfig, LLMConfig
from jackfield.errors import ConfigError, LimitReachedError, ModelOverloadedError, ModelRequestError
from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    RunFinished,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import Message, Usage
from jackfield.models import ONLY_BEFORE_OUTPUT, Retry, fold, get_chat_model
from jackfield.prices import PriceRow
from jackfield.processors import in_order
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, calls
from jackfield_budget.account import Reservation
from jackfield_budget.config import BudgetConfig
from jackfield_budget.processor import UNKNOWN_EVENT, Budget
from jackfield_budget.shared import ledgers
from jackfield_counting.estimating import estimate_tokens
from jackfield_counting.requests import Counts, RequestCounter
from jackfield_local_state.ledger import BusyError
from jackfield_testkit.replies import text
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.streams import Inner, gathered

Ask = Callable[..., list[ModelEvent]]
Make = Callable[..., Budget]
Question = Callable[..., ChatRequest]

# At 1 and 10 dollars for a million, a cent each.
USAGE = Usage(prompt_tokens=5000, completion_tokens=500)
ANSWER: list[ModelEvent] = [TextDelta("a"), UsageReported(USAGE), ModelFinished("stop")]
CENT = Decimal("0.01")


# --- costs ---


def test_the_cost_of_an_answer_is_said_with_its_usage(make_budget: Make, ask: Ask, question: Question) -> None:
    usage = fold(ask(make_budget(), question(), Inner(ANSWER))).usage
    assert (usage.cost, usage.currency) == (CENT, "USD")
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (5000, 500, 5500)


def test_each_report_of_a_stream_has_its_cost_and_the_last_one_counts(
    make_budget: Make, ask: Ask, question: Question
) -> None:
    budget = make_budget(limit=1)
    half = UsageReported(Usage(prompt_tokens=5000, completion_tokens=0))
    events = ask(budget, question(), Inner([half, *ANSWER]))
    costs = [event.usage.cost for event in events if isinstance(event, UsageReported)]
    assert costs == [Decimal("0.005"), CENT]
    assert budget.spent() == CENT


def test_what_a_backend_says_itself_is_kept(make_budget: Make, ask: Ask, question: Question) -> None:
    billed = UsageReported(Usage(prompt_tokens=5000, cost=Decimal(3), currency="USD"))
    budget = make_budget(limit=9)
    assert fold(ask(budget, question(), Inner([billed, ModelFinished("stop")]))).usage.cost == 3
    assert budget.spent() == 3


def test_a_price_that_is_not_known_is_said_once_and_not_guessed(
    make_budget: Make, ask: Ask, question: Question
) -> None:
    budget = make_budget()
    came = [ask(budget, question(model="other", lang=lang), Inner(ANSWER)) for lang in ("en", "zh")]
    assert fold(came[0]).usage == USAGE
    notes = [[event for event in events if isinstance(event, PluginEvent)] for events in came]
    assert [len(one) for one in notes] == [1, 0]
    assert (notes[0][0].name, notes[0][0].data["model"]) == (UNKNOWN_EVENT, "other")
    (note,) = [
        one for one in ask(make_budget(), question(model="x", lang="zh"), Inner(ANSWER)) if isinstance(one, PluginEvent)
    ]
    assert "价格" in note.data["note"]
    quiet = ask(make_budget(), question(model="other", metadata={ONLY_BEFORE_OUTPUT: True}), Inner(ANSWER))
    assert quiet == ANSWER


def test_a_price_that_is_not_known_is_refused_where_there_is_a_limit_or_a_wish(
    make_budget: Make, ask: Ask, question: Question
) -> None:
    for settings in ({"limit": 1}, {"unknown": "refuse"}):
        inner = Inner(ANSWER)
        with pytest.raises(ConfigError, match="no known price for other at s on 2026-11-21"):
            ask(make_budget(**settings), question(model="other"), inner)
        assert inner.requests == []
    assert fold(ask(make_budget(limit=1, unknown="say"), question(model="other"), Inner(ANSWER))).usage == USAGE


def test_a_model_without_a_price_is_reported_once_for_each_server(
    make_budget: Make, ask: Ask, question: Question
) -> None:
    budget = make_budget()
    reports = [
        [event.data["note"] for event in ask(budget, asked, Inner(ANSWER)) if isinstance(event, PluginEvent)]
        for asked in (question(model=model, server=server) for server in ("s", "t") for model in ("x", "y", "x"))
    ]
    assert [len(notes) for notes in reports] == [1, 1, 0, 1, 1, 0]


def test_a_price_in_another_currency_than_the_limit_is_refused(make_budget: Make, ask: Ask, question: Question) -> None:
    with pytest.raises(ConfigError, match="m is priced in USD, but the budget is in EUR"):
        ask(make_budget(limit=1, currency="EUR"), question(), Inner(ANSWER))
    said = make_budget(limit=1, currency="EUR", unknown="say")
    assert fold(ask(said, question(), Inner(ANSWER))).usage.currency == "USD"
    assert said.spent() == 0


def test_the_price_of_the_day_of_the_answer_counts(make_budget: Make, ask: Ask, question: Question, clock: Any) -> None:
    rows = [
        {"models": ["m"], "currency": "USD", "valid_from": day, "input": price, "output": price}
        for day, price in (("2026-01-01", "1"), ("2026-11-22", "2"))
    ]
    budget = make_budget(prices=rows)

    def at_midnight(number: int) -> None:
        clock.now += 12 * 3600 * (number == 1)  # after the first event

    assert fold(ask(budget, question(), Inner(ANSWER, before_each=at_midnight))).usage.cost == Decimal("0.011")


def test_your_prices_come_from_a_file_and_win(make_budget: Make, ask: Ask, question: Question, tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(
        '[[price]]\nmodels = ["gpt-*"]\ncurrency = "USD"\nvalid_from = 2026-01-01\ninput = 1000\noutput = 1000\n'
    )
    known = PriceRow(models=("*",), currency="USD", valid_from=date(2026, 1, 1), input=Decimal(2), output=Decimal(8))
    asked = question(model="gpt-4.1", facts=ModelFacts(prices=(known,)))
    assert fold(ask(make_budget(prices=None), asked, Inner(ANSWER))).usage.cost == Decimal("0.014")
    inner = Inner(ANSWER)
    assert fold(ask(make_budget(prices=path), asked, inner)).usage.cost == Decimal("5.5")
    assert inner.requests[0].facts.prices == ()  # else the model would add a cost at its own prices


# --- the limit ---


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_spent_is_spent_for_all_that_name_the_budget(
    make_budget: Make, ask: Ask, question: Question, path: Path, shared: bool
) -> None:
    settings = {"limit": "0.02", "per": "total", **({"path": path} if shared else {})}
    first, second, other = make_budget(**settings), make_budget(**settings), make_budget(**settings, scope="other")
    ask(first, question(), Inner(ANSWER))
    ask(second, question(model="m2"), Inner(ANSWER))
    inner = Inner(ANSWER)
    with pytest.raises(LimitReachedError, match=r"0\.02 USD per total is used up: 0\.02 is spent, and this") as caught:
        ask(first, question(), inner)
    assert caught.value.limit == "budget"
    assert inner.requests == []
    ask(other, question(), Inner(ANSWER))
    assert (first.spent(), other.spent()) == (2 * CENT, CENT)


def test_a_new_day_has_new_money(make_budget: Make, ask: Ask, question: Question, clock: Any, path: Path) -> None:
    budget = make_budget(limit="0.005", per="day", path=path)
    ask(budget, question(), Inner(ANSWER))
    with pytest.raises(LimitReachedError):
        ask(budget, question(), Inner(ANSWER))
    clock.now += 12 * 3600
    ask(budget, question(), Inner(ANSWER))
    assert budget.spent() == CENT


def test_a_question_that_alone_costs_more_than_is_left_is_not_asked(
    make_budget: Make, ask: Ask, question: Question
) -> None:
    inner = Inner(ANSWER)
    with pytest.raises(LimitReachedError, match="costs at least"):
        ask(make_budget(limit="0.01"), question("word " * 20_000), inner)
    assert inner.requests == []


def test_calls_at_once_set_aside_what_they_are_expected_to_cost(
    make_budget: Make, question: Question, gate: Any
) -> None:
    budget = make_budget(limit="0.10")
    asked = question(config=GenerateConfig(max_tokens=4000))  # four cents, with the question a little more

    async def burst() -> tuple[int, list[Any]]:
        model = gate(*ANSWER)
        tasks = [asyncio.create_task(gathered(budget.wrap(model)(asked))) for _ in range(10)]
        for _ in range(50):
            await asyncio.sleep(0)
        model.let.set()
        return model.asked, await asyncio.gather(*tasks, return_exceptions=True)

    begun, came = asyncio.run(burst())
    assert begun == 3
    assert sum(isinstance(one, LimitReachedError) for one in came) == 7
    assert budget.spent() == 3 * CENT
    assert asyncio.run(gathered(budget.wrap(Inner(ANSWER))(asked)))[-1] == ANSWER[-1]


@pytest.mark.parametrize(
    ("events", "spent"),
    [
        ([ModelRequestError("no")], Decimal(0)),
        ([UsageReported(USAGE), ModelOverloadedError("busy")], CENT),
        ([UsageReported(USAGE), StreamReset("again"), *ANSWER], 2 * CENT),
        ([ModelFinished("stop")], Decimal(0)),
    ],
)
def test_what_failed_is_paid_as_far_as_it_was_reported(
    make_budget: Make, ask: Ask, question: Question, events: list[ModelEvent | Exception], spent: Decimal
) -> None:
    budget = make_budget(limit=1)
    with contextlib.suppress(ModelRequestError, ModelOverloadedError):
        ask(budget, question(), Inner(events))
    assert budget.spent() == spent


def test_an_answer_that_is_left_is_paid_by_an_estimate(make_budget: Make, question: Question) -> None:
    budget = make_budget(limit=1)
    words = "word " * 400

    async def leave() -> None:
        events = budget.wrap(Inner([TextDelta("x" * 300), *ANSWER]))(question(words))
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    assert Decimal("0.001") < budget.spent() < Decimal("0.002")  # 400 tokens at 1, about 100 at 10 for a million


def test_each_attempt_of_a_retry_is_paid_and_rate_limits_stand_inside() -> None:
    class Limits(Retry):
        name = "rate_limits"
        after = ("retry",)

    assert [one.name for one in in_order([Limits(), Budget(), Retry()])] == ["retry", "budget", "rate_limits"]


# --- with agents ---


def test_an_agent_sums_up_the_costs_and_ends_at_its_limit(make_budget: Make) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "nothing"

    def ask_again(_: ChatRequest) -> list[ModelEvent]:
        return [UsageReported(USAGE), *[one for one in calls(("look", {})) if not isinstance(one, UsageReported)]]

    model = ScriptedModel(ask_again, config=LLMConfig(model="m"), processors=[make_budget()])
    agent = FnCallAgent([look], model, limits={"cost": "0.025"})
    finished = [event for event in _events(agent) if isinstance(event, RunFinished)]
    assert [event.stop_reason for event in finished] == ["cost_limit"]
    assert finished[0].usage.cost == 3 * CENT


def _events(agent: FnCallAgent) -> list[Any]:
    async def run() -> list[Any]:
        return [one.event async for one in agent.astream([Message("user", "Look.")])]

    return asyncio.run(run())


def test_it_is_found_by_name_and_prices_a_real_answer(tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        server.reply(text("Hello.", usage={"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}))
        row = {"models": ["m"], "servers": ["openai@127.0.0.1:*"], "currency": "EUR", "valid_from": "2020-01-01"}
        settings = {"name": "budget", "limit": 1, "currency": "EUR", "per": "month", "path": str(tmp_path / "b.sqlite")}
        model = get_chat_model(
            {
                "model_type": "openai",
                "model": "m",
                "base_url": server.url,
                "api_key": "sk-example",
                "processors": [{**settings, "prices": {"price": [{**row, "input": 2, "output": 8}]}}],
            },
            host=PluginHost(),
        )

        async def run() -> Usage:
            response = await model.acomplete([{"role": "user", "content": "Hi"}])
            await model.aclose()
            return response.usage

        usage = asyncio.run(run())
        assert usage.cost == (usage.prompt_tokens * Decimal(2) + usage.completion_tokens * Decimal(8)) / 1_000_000 > 0
        assert usage.currency == "EUR"


# --- settings ---


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": "much"}, "limit"),
        ({"currency": "usd"}, "currency"),
        ({"currency": "USDX"}, "currency"),
        ({"per": "week"}, "per"),
        ({"unknown": "guess"}, "unknown"),
        ({"path": "b.sqlite"}, "set the period of the limit"),
        ({"prices": "no/such/file.toml"}, "cannot be read"),
        ({"prices": [{"models": ["m"]}]}, "currency"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Budget(**settings)
    with pytest.raises(ConfigError, match="'limit'"):
        BudgetConfig.parse({"limits": 3})


def test_making_a_budget_opens_no_file(tmp_path: Path) -> None:
    Budget(path=tmp_path / "folder" / "b.sqlite", per="day", limit=1)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_fails_while_an_answer_comes_does_not_take_the_answer_away(
    make_budget: Make, ask: Ask, question: Question, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    budget = make_budget(limit=1, per="total", path=path)

    def spoil(number: int) -> None:
        if number == 1:
            budget._ledger.close()
            for file in path.parent.iterdir():
                file.write_bytes(b"diary" * 1000)

    assert ask(budget, question(), Inner(ANSWER, before_each=spoil))[-1] == ANSWER[-1]
    assert "0.01 USD was spent, but could not be recorded" in caplog.text
    with pytest.raises(ConfigError, match="cannot be used"):
        ask(budget, question(), Inner(ANSWER))


def test_a_writer_in_another_process_holds_up_its_call_and_not_the_event_loop(
    make_budget: Make, question: Question, path: Path
) -> None:
    async def run() -> Any:
        other = sqlite3.connect(path, isolation_level=None)
        inner = Inner(ANSWER, before_each=lambda number: number or other.execute("BEGIN IMMEDIATE"))
        other.execute("BEGIN IMMEDIATE")
        asking = asyncio.create_task(gathered(budget.wrap(inner)(question())))
        for _ in range(2):  # when money is set aside, and when it is settled
            while not other.in_transaction:
                await asyncio.sleep(0.001)
            for _ in range(20):
                await asyncio.sleep(0.001)
                assert not asking.done()
            other.execute("ROLLBACK")  # by this loop: one that waited inside of SQLite would wait in vain
        other.close()
        return await asking

    budget = make_budget(limit=1, per="total", path=path)
    assert budget.spent() == 0  # makes the file
    assert asyncio.run(run())[-1] == ANSWER[-1]
    assert budget.spent() > 0


def test_money_that_was_set_aside_too_late_for_a_cancelled_call_is_given_back(
    make_budget: Make, question: Question, path: Path
) -> None:
    async def run() -> None:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        asking = asyncio.create_task(gathered(budget.wrap(Inner(ANSWER))(question())))
        await asyncio.sleep(0.05)  # it waits in SQLite now
        asking.cancel()
        await asyncio.wait([asking])
        other.execute("ROLLBACK")
        other.close()

    budget = make_budget(limit=1, per="total", path=path)
    assert budget.spent() == 0
    asyncio.run(run())
    ends = monotonic() + 20
    while budget._ledger.change(budget._account, lambda account: dict(account.running)) and monotonic() < ends:
        sleep(0.001)
    assert budget._ledger.change(budget._account, lambda account: account.running) == {}
    assert budget.spent() == 0


# --- estimates ---


@pytest.mark.parametrize(
    ("options", "answer_tokens"), [({}, 500), ({"max_tokens": 2000}, 2000), ({"max_tokens": 1}, 1)]
)
def test_a_running_call_sets_aside_its_question_and_the_longest_answer_or_500_tokens(
    make_budget: Make, question: Question, gate: Any, options: dict[str, int], answer_tokens: int
) -> None:
    budget = make_budget(limit=1)
    asked = question("word " * 1000, config=GenerateConfig(**options))
    tokens = RequestCounter(Counts(estimate_tokens), 0).request(asked)
    set_aside = (tokens + 10 * Decimal(answer_tokens)) / 1_000_000

    async def look() -> Decimal:
        inner = gate(*ANSWER)
        task = asyncio.create_task(gathered(budget.wrap(inner)(asked)))
        while not inner.asked:
            await asyncio.sleep(0)
        running = budget._ledger.change(budget._account, lambda account: list(account.running.values()))
        inner.let.set()
        await task
        [(amount, until)] = running
        assert until == budget._clock() + 3600
        return amount

    assert asyncio.run(look()) == set_aside


def test_a_call_needs_three_quarters_of_what_its_question_is_estimated_to_cost(
    make_budget: Make, ask: Ask, question: Question
) -> None:
    asked = question("word " * 1000)
    least = RequestCounter(Counts(estimate_tokens), 0).request(asked) * Decimal("0.75") / 1_000_000
    inner = Inner(ANSWER)
    with pytest.raises(LimitReachedError, match=f"this call costs at least {least.normalize():f}; raise `limit`"):
        ask(make_budget(limit=least - Decimal("0.000001")), asked, inner)
    assert inner.requests == []
    ask(make_budget(limit=least), asked, inner)
    assert len(inner.requests) == 1


@pytest.mark.parametrize(
    ("events", "characters"),
    [
        ([TextDelta("x" * 299)], 299),
        ([ReasoningDelta("x" * 100), TextDelta("y" * 200)], 300),
        ([FunctionCallDelta(0, "c", "name", "x" * 98), TextDelta("")], 102),
        ([], 0),
    ],
)
def test_an_answer_without_a_usage_counts_a_token_for_three_characters_of_it(
    make_budget: Make, ask: Ask, question: Question, events: list[ModelEvent], characters: int
) -> None:
    budget = make_budget(limit=1)
    asked = question()
    ask(budget, asked, Inner([*events, ModelFinished("stop")]))
    tokens = RequestCounter(Counts(estimate_tokens), 0).request(asked)
    cost = (tokens + 10 * Decimal(1 + characters // 3)) / 1_000_000 if characters else 0
    assert budget.spent() == cost


@pytest.mark.parametrize(("first", "rate"), [(10**6, 1), (10, 2)])
def test_an_answer_without_a_usage_costs_what_a_question_of_its_length_does(
    make_budget: Make, ask: Ask, question: Question, first: int, rate: int
) -> None:
    row = {"models": ["m"], "currency": "USD", "valid_from": "2026-01-01"}
    tiers = [{"up_to": first, "input": 1, "output": 0}, {"input": 2, "output": 0}]
    budget = make_budget(limit=1, prices=[{**row, "tiers": tiers}])
    asked = question("a longer question " * 10)
    ask(budget, asked, Inner([TextDelta("x"), ModelFinished("stop")]))
    tokens = RequestCounter(Counts(estimate_tokens), 0).request(asked)
    assert budget.spent() == Decimal(rate * tokens) / 1_000_000


def test_answers_that_became_void_are_paid_with_the_one_that_counts(
    make_budget: Make, ask: Ask, question: Question
) -> None:
    budget = make_budget(limit=1)
    void: list[ModelEvent] = [TextDelta("a"), UsageReported(USAGE), StreamReset("again")]
    ask(budget, question(), Inner([*void, *void, StreamReset("again"), *ANSWER]))
    assert budget.spent() == 3 * CENT
    ask(budget, question(), Inner([*void, TextDelta("a"), ModelFinished("stop")]))
    assert budget.spent() == 4 * CENT


@pytest.mark.parametrize("setting", [{"scope": "other"}, {"per": "total"}, {"currency": "EUR", "unknown": "say"}])
def test_each_scope_period_and_currency_has_an_account_of_its_own(
    make_budget: Make, ask: Ask, question: Question, setting: dict[str, Any]
) -> None:
    budget = make_budget(limit=1, per="day")
    ask(budget, question(), Inner(ANSWER))
    assert budget.spent() == CENT
    assert make_budget(**{"limit": 1, "per": "day", **setting}).spent() == 0
    assert make_budget(limit=1, per="day").spent() == CENT


def test_accounts_differ_by_scope_period_and_currency(make_budget: Make) -> None:
    settings = [{"scope": "a"}, {"scope": "b"}, {"scope": "a", "per": "day"}, {"scope": "a", "currency": "EUR"}]
    assert len({make_budget(**each)._account for each in settings}) == 4


def test_a_model_priced_in_another_currency_needs_no_part_of_the_limit(
    make_budget: Make, ask: Ask, question: Question
) -> None:
    budget = make_budget(limit="0.001", currency="EUR", unknown="say")
    assert ask(budget, question("word " * 20_000), Inner(ANSWER))[-1] == ANSWER[-1]


def test_an_answer_that_was_free_is_not_paid_by_an_estimate(make_budget: Make, ask: Ask, question: Question) -> None:
    budget = make_budget(limit=1)
    free = UsageReported(Usage(prompt_tokens=5000, cost=Decimal(0), currency="USD"))
    ask(budget, question(), Inner([TextDelta("x" * 300), free, ModelFinished("stop")]))
    assert budget.spent() == 0


def test_a_reservation_is_held_for_the_lease_of_the_settings(make_budget: Make, question: Question, gate: Any) -> None:
    budget = make_budget(limit=1, lease_s=7)

    async def look() -> float:
        inner = gate(*ANSWER)
        task = asyncio.create_task(gathered(budget.wrap(inner)(question())))
        while not inner.asked:
            await asyncio.sleep(0)
        [(_, until)] = budget._ledger.change(budget._account, lambda account: list(account.running.values()))
        inner.let.set()
        await task
        return until - budget._clock()

    assert asyncio.run(look()) == 7


def test_a_refusal_shows_small_amounts_with_all_their_digits(make_budget: Make, ask: Ask, question: Question) -> None:
    prices = [{"models": ["m"], "currency": "USD", "valid_from": "2026-01-01", "input": "0.001", "output": "10"}]
    budget = make_budget(limit="0.005", prices=prices)
    ask(budget, question(), Inner(ANSWER))
    with pytest.raises(LimitReachedError, match=r"this call costs at least 0\.0{7,}\d+; raise"):
        ask(budget, question(), Inner(ANSWER))


def test_a_ledger_that_stays_busy_takes_no_answer_away(
    make_budget: Make, ask: Ask, question: Question, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise BusyError("others use the file")

    budget = make_budget(limit=1)
    monkeypatch.setattr(type(budget._ledger), "anote", fail)
    assert ask(budget, question(), Inner(ANSWER))[-1] == ANSWER[-1]
    assert "0.01 USD was spent, but could not be recorded: others use the file" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_a_budget_of_its_own() -> None:
    mine = ledgers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
        if not child:
            os._exit(1 if ledgers() is mine else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert ledgers() is mine


def test_a_refusal_names_the_budget_and_what_is_set_aside(make_budget: Make, ask: Ask, question: Question) -> None:
    budget = make_budget(limit="0.02", scope="team budget", per="month")
    ask(budget, question(), Inner(ANSWER))
    held = Reservation("held", Decimal("0.01"))
    budget._ledger.change(
        budget._account,
        lambda account: account.begin(
            held, least=Decimal(0), limit=None, period="2026-11", now=budget._clock(), lease_s=60
        ),
    )
    with pytest.raises(
        LimitReachedError,
        match=r"^the budget 'team budget' of 0\.02 USD per month is used up: 0\.01 is spent, 0\.01 is reserved "
        r"for running calls, and this call costs at least 0\.\d+; raise `limit`, or wait for the next period$",
    ):
        ask(budget, question(), Inner(ANSWER))


def test_a_file_needs_a_period_and_its_path_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, question: Question
) -> None:
    with pytest.raises(ConfigError, match="with `path`, set the period of the limit: per = 'day', 'month' or 'total'"):
        Budget(path="budget.sqlite")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    budgets = [Budget(path=path, per="total", unknown="say") for path in ("budget.sqlite", "~/budget.sqlite")]
    monkeypatch.chdir("/")
    assert [budget._path for budget in budgets] == [tmp_path / "budget.sqlite"] * 2
    ask(budgets[0], question(), Inner(ANSWER))
    assert (tmp_path / "budget.sqlite").exists()
    asyncio.run(budgets[0].aclose())
    assert budgets[1].spent() == 0
    asyncio.run(budgets[1].aclose())


def test_a_budget_says_its_limit() -> None:
    assert repr(Budget()) == "<Budget no limit per process>"
    assert repr(Budget(limit="2.5", currency="EUR", per="day")) == "<Budget 2.5 EUR per day>"
