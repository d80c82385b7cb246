"""The one decision: no minute has more than is allowed, and nobody waits longer than needed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_rate_limits.state import WINDOW_S, Entry, Limits, State, Wait, Wanted

NOW = 1_000_000.25


def _entered(state: State, wanted: Wanted, now: float) -> Entry:
    entry = state.enter(wanted, now)
    assert isinstance(entry, Entry), entry
    return entry


def _waits(state: State, wanted: Wanted, now: float) -> Wait:
    wait = state.enter(wanted, now)
    assert isinstance(wait, Wait), wait
    return wait


def test_a_request_that_was_never_sent_leaves_no_trace() -> None:
    state, limits = State(), Limits(requests=1, tokens=10, concurrency=1)
    state.forget(_entered(state, Wanted("a", limits, 10), NOW))
    assert (list(state.used.values()), state.running) == ([[0, 0]], {})
    _entered(state, Wanted("b", limits, 10), NOW)


def test_a_request_that_used_nothing_leaves_room_for_all_tokens() -> None:
    state, limits = State(), Limits(tokens=10)
    state.leave(_entered(state, Wanted("a", limits, 10), NOW), 0, NOW)
    assert list(state.used.values()) == [[1, 0]]
    _entered(state, Wanted("b", limits, 10), NOW)


def test_what_was_not_foreseen_counts_when_its_second_has_left_the_minute() -> None:
    state, limits = State(), Limits(tokens=10)
    entry = _entered(state, Wanted("a", limits, 1), NOW)
    later = NOW + WINDOW_S + 2
    state.leave(entry, 8, later)
    assert list(state.used.values()) == [[0, 7]]
    _entered(state, Wanted("b", limits, 3), later)
    _waits(state, Wanted("c", limits, 1), later)


CALLS = st.lists(
    st.tuples(
        st.floats(0, 40), st.integers(1, 40), st.integers(0, 40)
    ),  # after seconds, tokens foreseen, tokens in truth
    max_size=40,
)


@given(CALLS, st.integers(1, 6), st.integers(40, 120), st.booleans())
def test_no_minute_has_more_than_is_allowed_and_a_wait_is_long_enough(
    calls: list[tuple[float, int, int]], requests: int, tokens: int, through_a_file: bool
) -> None:
    state, now, log = State(), NOW, []
    for number, (pause, foreseen, in_truth) in enumerate(calls):
        now += pause
        wanted = Wanted(str(number), Limits(requests, tokens), foreseen)
        outcome = state.enter(wanted, now)
        if isinstance(outcome, Wait):
            assert outcome.seconds is not None
            assert 0 < outcome.seconds <= WINDOW_S + 1
            now += outcome.seconds + 1e-6
            outcome = state.enter(wanted, now)
        assert isinstance(outcome, Entry), "it waited as long as it was told"
        used = min(in_truth, foreseen)
        state.leave(outcome, used, now)
        log.append((now, used))
        if through_a_file:
            state = State.from_json(state.to_json())
    for start, _ in log:
        minute = [used for at, used in log if start <= at < start + WINDOW_S]
        assert len(minute) <= requests
        assert sum(minute) <= tokens


def test_an_answer_that_became_longer_counts_also_when_its_minute_is_over() -> None:
    state, limits = State(), Limits(tokens=100)
    entry = _entered(state, Wanted("a", limits, 10), NOW)
    state.leave(entry, 95, NOW + 200)
    assert _waits(state, Wanted("b", limits, 20), NOW + 201).why == "tokens"
    assert _entered(state, Wanted("b", limits, 10), NOW + 201)


def test_what_was_not_used_is_nothing_when_its_minute_is_over() -> None:
    state = State()
    entry = _entered(state, Wanted("a", Limits(tokens=100), 10), NOW)
    state.leave(entry, 3, NOW + 200)
    assert state.is_idle


def test_places_are_counted_and_given_back() -> None:
    state, limits = State(), Limits(concurrency=2)
    one = _entered(state, Wanted("1", limits), NOW)
    _entered(state, Wanted("2", limits), NOW)
    assert _waits(state, Wanted("3", limits), NOW) == Wait(None, "concurrency")
    state.leave(one, 0, NOW)
    assert _entered(state, Wanted("3", limits), NOW)


def test_a_place_whose_owner_is_gone_or_silent_for_too_long_is_free() -> None:
    limits = Limits(concurrency=1)
    for later, gone in ((5.0, True), (11.0, False)):
        state = State()
        entry = _entered(state, Wanted("1", limits, lease_s=10, owner="p"), NOW)
        assert isinstance(state.enter(Wanted("2", limits), NOW + 5), Wait)
        assert isinstance(state.enter(Wanted("2", limits), NOW + later, is_gone=lambda _, gone=gone: gone), Entry)
        state.leave(entry, 0, NOW + later)
        assert list(state.running) == ["2"]


def test_a_sign_of_life_keeps_a_place() -> None:
    state, limits = State(), Limits(concurrency=1)
    entry = _entered(state, Wanted("1", limits, lease_s=10), NOW)
    state.renew(entry, NOW + 20)
    assert _waits(state, Wanted("2", limits), NOW + 15)
    assert _entered(state, Wanted("2", limits), NOW + 21)
    state.renew(entry, NOW + 99)
    assert list(state.running) == ["2"]


def test_a_pause_holds_everybody_and_a_shorter_one_does_not_end_it() -> None:
    state = State()
    state.pause(30, NOW)
    state.pause(2, NOW + 1)
    assert _waits(state, Wanted("1", Limits()), NOW + 10) == Wait(20, "pause")
    assert _entered(state, Wanted("1", Limits()), NOW + 30)


def test_a_clock_that_was_set_back_makes_nobody_wait_longer() -> None:
    state, limits = State(), Limits(requests=2, tokens=100)
    _entered(state, Wanted("1", limits, 60), NOW)
    state.pause(30, NOW)
    back = NOW - 5000
    assert _waits(state, Wanted("2", limits, 60), back) == Wait(30, "pause")
    wait = _waits(state, Wanted("2", limits, 60), back + 31)
    assert wait.why == "tokens"
    assert wait.seconds is not None
    assert wait.seconds <= WINDOW_S + 1
    assert _entered(state, Wanted("2", limits, 40), back + 31)


def test_all_requests_count_when_the_clock_was_set_back() -> None:
    state, limits = State(), Limits(requests=4, tokens=100)
    for number in range(3):
        _entered(state, Wanted(str(number), limits, 20), NOW + number)
    back = NOW - 5000
    state.tidy(back)
    assert list(state.used.values()) == [[3, 60]]
    assert _waits(state, Wanted("3", limits, 41), back).why == "tokens"
    _entered(state, Wanted("3", limits, 40), back)
    assert _waits(state, Wanted("4", limits, 1), back).why == "requests"


def test_nothing_is_left_of_a_minute_that_is_over() -> None:
    state = State()
    for second in range(200):
        entry = _entered(state, Wanted(str(second), Limits(requests=1000), 5), NOW + second)
        state.leave(entry, 5, NOW + second)
    assert len(state.used) <= WINDOW_S + 2
    state.tidy(NOW + 300)
    assert state.is_idle


def test_a_state_is_idle_when_there_is_no_use_nobody_running_and_no_pause() -> None:
    state = State()
    assert state.is_idle
    entry = _entered(state, Wanted("1", Limits(), 5, lease_s=900), NOW)
    state.tidy(NOW + 300)
    assert state.used == {}  # only running
    assert not state.is_idle
    state.leave(entry, 0, NOW + 300)
    assert not state.running
    state.tidy(NOW + 600)
    assert state.is_idle
    state.pause(30, NOW + 600)
    assert not state.is_idle
    state.tidy(NOW + 629)
    assert state.paused is not None
    state.tidy(NOW + 630)
    assert state.paused is None
    _entered(state, Wanted("2", Limits(), 5, lease_s=1), NOW + 700)
    state.tidy(NOW + 702)
    assert (state.running, state.paused) == ({}, None)  # only used
    assert not state.is_idle


@pytest.mark.parametrize("later_s", [0.0, 30.0, 59.0, 59.9])
def test_a_request_counts_for_a_whole_minute(later_s: float) -> None:
    state = State()
    _entered(state, Wanted("1", Limits(requests=1)), NOW)
    _waits(state, Wanted("2", Limits(requests=1)), NOW + later_s)


def test_a_place_is_free_when_its_lease_ends() -> None:
    state, limits = State(), Limits(concurrency=1)
    _entered(state, Wanted("1", limits, lease_s=8), NOW)
    _waits(state, Wanted("2", limits, lease_s=8), NOW + 7)
    _entered(state, Wanted("2", limits, lease_s=8), NOW + 8)


def test_a_pause_that_another_made_longer_than_counts_does_not_keep_a_new_one_out() -> None:
    state = State()
    state.pause(1e9, NOW)
    state.pause(10, NOW + 100, max_pause_s=60)
    assert _waits(state, Wanted("1", Limits(), max_pause_s=60), NOW + 101) == Wait(9, "pause")


@pytest.mark.parametrize(
    "text",
    [
        '{"used": [], "running": {}, "paused": [0, NaN]}',
        "",
        "7",
        "{}",
        "[]",
        '{"used": 7}',
        '{"used": [[1]], "running": {}, "paused": null}',
    ],
)
def test_what_is_no_state_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of json or of ours
        State.from_json(text)


def test_a_state_comes_back_from_its_text() -> None:
    state = State()
    _entered(state, Wanted("1", Limits(), 7, lease_s=5, owner="p/1"), NOW)
    state.pause(9, NOW)
    assert State.from_json(state.to_json()) == state
    assert "p/1" in json.dumps(json.loads(state.to_json()))
