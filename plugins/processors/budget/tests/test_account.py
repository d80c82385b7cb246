"""The decision whether one more call may begin, and what is written down."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_budget.account import Account, Refusal, Reservation, period_of
from jackfield_budget.processor import Budget

NOW = 1_000_000.0
MONEY = st.decimals(0, 5, places=3)


def _begin(
    account: Account,
    name: str,
    amount: str | Decimal,
    *,
    least: str | Decimal = "0",
    limit: str | None = "10",
    now: float = NOW,
) -> Reservation | Refusal:
    return account.begin(
        Reservation(name, Decimal(amount)),
        least=Decimal(least),
        limit=None if limit is None else Decimal(limit),
        period="p",
        now=now,
        lease_s=100,
    )


@given(
    st.lists(st.tuples(MONEY, st.decimals(0, 1, places=2), st.decimals(0, 1, places=2), st.booleans()), max_size=30),
    st.booleans(),
)
def test_what_is_spent_never_passes_the_limit_by_more_than_one_call(
    calls: list[tuple[Decimal, Decimal, Decimal, bool]], through_a_file: bool
) -> None:
    """Where calls cost no more than was set aside for them, and no less than their least."""
    account, running, paid = Account(), [], Decimal(0)
    dearest = Decimal(0)
    for number, (expected, least_part, part, ends) in enumerate(calls):
        least = expected * least_part
        outcome = _begin(account, str(number), expected, least=least)
        if isinstance(outcome, Reservation):
            cost = least + (expected - least) * part
            dearest = max(dearest, expected)
            running.append((outcome, cost))
        if ends and running:
            reservation, cost = running.pop(0)
            account.settle(reservation, cost, period="p")
            paid += cost
        if through_a_file:
            account = Account.from_json(account.to_json())
    for reservation, cost in running:
        account.settle(reservation, cost, period="p")
        paid += cost
    assert account.spent.get("p", Decimal(0)) == paid <= 10 + dearest
    assert account.running == {}


def test_what_is_set_aside_counts_until_it_is_settled() -> None:
    account = Account()
    first = _begin(account, "1", "6")
    assert isinstance(first, Reservation)
    assert isinstance(_begin(account, "2", "6"), Reservation)
    assert _begin(account, "3", "1") == Refusal(Decimal(0), Decimal(12))
    account.settle(first, Decimal("0.5"), period="p")
    assert isinstance(_begin(account, "3", "1"), Reservation)


def test_a_call_whose_least_would_pass_the_limit_does_not_begin() -> None:
    account = Account(spent={"p": Decimal(9)})
    assert isinstance(_begin(account, "1", "3", least="1.001"), Refusal)
    assert isinstance(_begin(account, "1", "3", least="1"), Reservation)
    running = Account()
    assert isinstance(_begin(running, "1", "9"), Reservation)
    assert _begin(running, "2", "3", least="1.001") == Refusal(Decimal(0), Decimal(9))
    assert isinstance(_begin(running, "2", "3", least="1"), Reservation)
    assert isinstance(_begin(Account(spent={"p": Decimal(10)}), "1", "0"), Refusal)
    assert isinstance(_begin(Account(spent={"p": Decimal(99)}), "1", "1", limit=None), Reservation)


def test_a_call_of_which_nothing_is_heard_is_charged_once() -> None:
    account = Account()
    silent = _begin(account, "silent", "4")
    assert isinstance(silent, Reservation)
    assert isinstance(_begin(account, "next", "0", now=NOW + 101), Reservation)
    assert account.spent["p"] == 4
    account.settle(silent, Decimal(3), period="p")  # it was only slow
    assert account.spent["p"] == 3


def test_a_call_is_silent_for_too_long_when_its_lease_ends() -> None:
    account = Account()
    _begin(account, "silent", "4")
    _begin(account, "next", "0", now=NOW + 99.9)
    assert "silent" in account.running
    _begin(account, "later", "0", now=NOW + 100)
    assert "silent" not in account.running
    assert account.spent == {"p": 4}


def test_periods_are_those_of_utc() -> None:
    moment = 1_798_761_599.0  # a second before the year 2027
    assert [period_of(per, moment) for per in ("day", "month", "total", "process")] == [
        "2026-12-31",
        "2026-12",
        "total",
        "process",
    ]
    assert [period_of(per, moment + 1) for per in ("day", "month")] == ["2027-01-01", "2027-01"]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process cannot be set here")
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_periods_do_not_depend_on_the_time_zone_of_the_process(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    moments = [1_798_761_599.0 - 6 * 3600, 1_798_761_599.0 + 6 * 3600]
    expected = [period_of("day", moment) for moment in moments], [period_of("month", moment) for moment in moments]
    assert expected == (["2026-12-31", "2027-01-01"], ["2026-12", "2027-01"])
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", zone)
            time.tzset()
            assert (
                [period_of("day", one) for one in moments],
                [period_of("month", one) for one in moments],
            ) == expected
            assert [Budget(clock=lambda one=one: one)._today().isoformat() for one in moments] == expected[0]
    finally:
        time.tzset()


def test_amounts_come_back_exactly_from_their_text() -> None:
    account = Account(spent={"p": Decimal("0.1")})
    _begin(account, "1", "0.3")
    assert Account.from_json(account.to_json()) == account


def test_old_periods_are_forgotten_and_the_latest_kept() -> None:
    account = Account()
    for number in range(500):
        account.settle(Reservation("x", Decimal(0)), Decimal(1), period=f"{number:04}")
    assert len(account.spent) == 400
    assert min(account.spent) == "0100"


@pytest.mark.parametrize(
    "text", ["", "7", "{}", "[]", '{"spent": [], "running": {}}', '{"spent": {"p": "x"}, "running": {}}']
)
def test_what_is_no_account_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of json or of ours
        Account.from_json(text)
