"""Who is let in when, and what is told."""

from __future__ import annotations

import asyncio
import itertools
import math
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from time import monotonic
from time import time as wall_clock
from typing import Any

import pytest

from jackfield import PluginHost, sync
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError, LimitReachedError, ModelOverloadedError, RateLimitedError
from jackfield.events import ModelEvent, ModelFinished, PluginEvent, StreamReset, TextDelta, UsageReported
from jackfield.messages import ContentItem, Message, Usage
from jackfield.models import ONLY_BEFORE_OUTPUT, Retry, get_chat_model
from jackfield.processors import in_order
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer
from jackfield_local_state.ledger import MemoryLedger
from jackfield_rate_limits.config import RateLimitsConfig
from jackfield_rate_limits.gate import Gate
from jackfield_rate_limits.processor import WAITING_EVENT, RateLimits, _Call, _is_worth_telling, _note
from jackfield_rate_limits.shared import Gates, gates
from jackfield_rate_limits.state import Entry, Limits, State, Wait, Wanted
from jackfield_testkit.replies import error as error_reply
from jackfield_testkit.replies import text
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.streams import gathered

Question = Callable[..., ChatRequest]
DONE: list[ModelEvent] = [TextDelta("a"), ModelFinished("stop")]


class Server:
    """Notes when it is asked, and how many it answers at once; an answer takes some seconds."""

    def __init__(self, time: Any, *, seconds: float = 0, events: Sequence[ModelEvent | Exception] = DONE) -> None:
        self._time = time
        self._seconds = seconds
        self._events = events
        self.asked_at: list[float] = []
        self.asked: list[str] = []
        self.open = self.most = 0

    async def __call__(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        self.asked_at.append(self._time.now)
        self.asked.append(request.messages[0].get_text_content())
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            if self._seconds:
                await self._time.sleep(self._seconds)
            for event in self._events:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.open -= 1


def _limits(time: Any, **settings: Any) -> RateLimits:
    return RateLimits(**{"clock": time, "sleep": time.sleep, **settings})


def _all(limits: RateLimits, server: Server, requests: Sequence[ChatRequest]) -> Any:
    async def run() -> list[list[ModelEvent] | BaseException]:
        calls = [gathered(limits.wrap(server)(request)) for request in requests]
        return await asyncio.gather(*calls, return_exceptions=True)

    return run()


# --- requests, tokens, places ---


@pytest.mark.parametrize("shared", [False, True])
def test_requests_go_in_their_order_and_within_the_minute(
    time: Any, question: Question, path: Path, shared: bool
) -> None:
    limits = _limits(time, requests_per_minute=3, **({"path": path} if shared else {}))
    server = Server(time)
    time.run(_all(limits, server, [question(str(number)) for number in range(8)]))
    assert server.asked == [str(number) for number in range(8)]
    for at in server.asked_at:
        assert sum(at <= other < at + 60 for other in server.asked_at) <= 3
    assert server.asked_at[-1] - server.asked_at[0] <= 2 * 61.5


def test_what_was_used_in_truth_takes_the_place_of_what_was_foreseen(time: Any, question: Question) -> None:
    limits = _limits(time, tokens_per_minute=1000)
    usage = UsageReported(Usage(prompt_tokens=50, completion_tokens=50))
    server = Server(time, events=[TextDelta("a"), usage, ModelFinished("stop")])
    request = question(config=GenerateConfig(max_tokens=900))

    async def one_after_the_other() -> None:
        for _ in range(5):
            await gathered(limits.wrap(server)(request))

    time.run(one_after_the_other())
    # 100 tokens each: one that is foreseen with 900 and a few fits beside none of them.
    gaps = [round(after - before) for before, after in zip(server.asked_at, server.asked_at[1:], strict=False)]
    assert all(gap >= 60 for gap in gaps)
    time.now += 100
    quick = question(config=GenerateConfig(max_tokens=100))
    started = len(server.asked_at)

    async def quick_ones() -> None:
        for _ in range(9):
            await gathered(limits.wrap(server)(quick))

    time.run(quick_ones())
    assert len(set(server.asked_at[started:])) == 1


def test_without_max_tokens_the_last_answers_are_what_is_foreseen(time: Any, question: Question) -> None:
    limits = _limits(time, tokens_per_minute=10_000)
    usage = UsageReported(Usage(prompt_tokens=5, completion_tokens=20))
    server = Server(time, events=[usage, ModelFinished("stop")])

    async def ask(count: int) -> None:
        for _ in range(count):
            await gathered(limits.wrap(server)(question()))

    time.run(ask(30))
    assert 20 <= gates().gate("s:m", path=None, clock=time).answer_tokens < 25


def test_a_broken_off_answer_teaches_nothing_about_the_length_of_answers(time: Any, question: Question) -> None:
    limits = _limits(time, tokens_per_minute=10_000)
    broken = Server(time, events=[UsageReported(Usage(completion_tokens=1)), ModelOverloadedError("busy")])
    gate = gates().gate("s:m", path=None, clock=time)
    foreseen = gate.answer_tokens
    with pytest.raises(ModelOverloadedError):
        time.run(gathered(limits.wrap(broken)(question())))
    assert gate.answer_tokens == foreseen


def test_no_more_are_answered_at_once_than_is_allowed(time: Any, question: Question, path: Path) -> None:
    for settings in ({}, {"path": path}):
        limits, server = _limits(time, max_concurrency=3, **settings), Server(time, seconds=5)
        time.run(_all(limits, server, [question(str(number)) for number in range(10)]))
        assert server.most == 3
        assert server.asked == [str(number) for number in range(10)]


@pytest.mark.parametrize("shared", [False, True])
def test_a_new_request_does_not_overtake_the_line(time: Any, question: Question, path: Path, shared: bool) -> None:
    settings: dict[str, Any] = {"path": path} if shared else {}
    patient = _limits(time, requests_per_minute=1, **settings)
    hasty = _limits(time, max_wait_s=0, **settings)  # there is room for it: it has no limit of its own
    server = Server(time)

    async def run() -> None:
        await gathered(patient.wrap(server)(question("first")))
        second = patient.wrap(server)(question("second"))
        assert isinstance(await anext(second), PluginEvent)  # it has to wait
        in_line = asyncio.create_task(gathered(second))
        await asyncio.sleep(0)
        with pytest.raises(RateLimitedError, match="other requests came first"):
            await gathered(hasty.wrap(server)(question("third")))
        assert server.asked == ["first"]
        await in_line

    time.run(run())
    assert server.asked == ["first", "second"]


def test_an_answer_that_takes_longer_than_its_lease_keeps_its_place(time: Any, question: Question, path: Path) -> None:
    limits, server = _limits(time, path=path, max_concurrency=1, max_wait_s=0, lease_s=30), Server(time)

    async def stream(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        for _ in range(10):
            await time.sleep(20)
            yield TextDelta("a")
            with pytest.raises(RateLimitedError, match="max_concurrency"):
                await gathered(limits.wrap(server)(question()))
        yield ModelFinished("stop")

    time.run(gathered(limits.wrap(stream)(question())))
    assert server.asked == []
    assert time.run(gathered(limits.wrap(server)(question()))) == DONE


def test_a_renewed_lease_is_as_long_as_the_first(time: Any, question: Question, path: Path) -> None:
    limits, server = _limits(time, path=path, max_concurrency=1, max_wait_s=0, lease_s=30), Server(time)

    async def stream(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        await time.sleep(20)
        yield TextDelta("a")
        await time.sleep(25)
        with pytest.raises(RateLimitedError, match="max_concurrency"):
            await gathered(limits.wrap(server)(question()))
        yield ModelFinished("stop")

    time.run(gathered(limits.wrap(stream)(question())))


def test_a_long_answer_renews_its_lease_only_now_and_then(
    time: Any, question: Question, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, renewed_at = _limits(time, path=path, max_concurrency=1, lease_s=30), []
    monkeypatch.setattr(State, "renew", lambda *_: renewed_at.append(time.now))

    async def stream(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        for _ in range(60):
            await time.sleep(1)
            yield TextDelta("a")
        yield ModelFinished("stop")

    time.run(gathered(limits.wrap(stream)(question())))
    steps = [after - before for before, after in itertools.pairwise(renewed_at)]
    assert 1 < len(renewed_at) <= 60 / (30 / 3)  # each is a transaction in the file
    assert max(steps) <= 11, "one that comes late still comes before the lease ends"


def test_a_look_ends_when_the_one_before_it_decides_to_wait() -> None:
    limits = Limits(concurrency=1)

    class SlowLedger(MemoryLedger[State]):
        async def achange(self, *args: Any, **kwargs: Any) -> Any:
            await free.wait()
            return await super().achange(*args, **kwargs)

    async def run() -> None:
        gate = Gate(SlowLedger(State), "s", clock=lambda: 100.0, poll_s=10.0)
        free.set()
        held = await gate.look(Wanted("held", limits))
        assert isinstance(held, Entry)
        free.clear()
        looking = asyncio.create_task(gate.look(Wanted("looking", limits)))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(gate.enter(Wanted("waiting", limits), max_wait_s=None, sleep=_never))
        await asyncio.sleep(0)
        late = asyncio.create_task(gate.look(Wanted("late", limits)))
        await asyncio.sleep(0)
        free.set()
        assert await looking == Wait(None, "concurrency")
        assert await late == Wait(None, "turn")
        await gate.leave(held, 0)
        assert (await waiting).id == "waiting"

    free = asyncio.Event()
    asyncio.run(asyncio.wait_for(run(), 20))


async def _never(_: float) -> None:
    await asyncio.Event().wait()


def test_a_line_in_which_somebody_waits_outlives_any_number_of_other_scopes() -> None:
    all_gates = Gates()

    async def run() -> None:
        gate = all_gates.gate("busy", path=None, clock=time)
        limits = Limits(concurrency=1)
        held = await gate.look(Wanted("held", limits))
        assert isinstance(held, Entry)
        waiting = asyncio.create_task(gate.enter(Wanted("waiting", limits), max_wait_s=None, sleep=asyncio.sleep))
        await asyncio.sleep(0)
        for number in range(1000):
            all_gates.gate(str(number), path=None, clock=time)
        assert all_gates.gate("busy", path=None, clock=time) is gate
        await all_gates.gate("busy", path=None, clock=time).leave(held, 0)
        assert (await waiting).id == "waiting"

    def time() -> float:
        return 100.0

    asyncio.run(asyncio.wait_for(run(), 60))


def test_all_processors_of_a_process_share_the_limits_of_a_server_and_a_model(time: Any, question: Question) -> None:
    first, second = (_limits(time, requests_per_minute=2, max_wait_s=0) for _ in range(2))
    server = Server(time)

    async def run() -> None:
        await gathered(first.wrap(server)(question()))
        await gathered(second.wrap(server)(question()))
        with pytest.raises(RateLimitedError):
            await gathered(second.wrap(server)(question()))
        await gathered(second.wrap(server)(question(model="other")))
        await gathered(second.wrap(server)(question(server="other")))

    time.run(run())


def test_a_scope_makes_models_share(time: Any, question: Question) -> None:
    limits = _limits(time, requests_per_minute=1, max_wait_s=0, scope="the account")

    async def run() -> None:
        await gathered(limits.wrap(Server(time))(question()))
        with pytest.raises(RateLimitedError, match="the account"):
            await gathered(limits.wrap(Server(time))(question(model="other")))

    time.run(run())


# --- what cannot be ---


def test_what_never_fits_is_said_at_once(time: Any, question: Question) -> None:
    limits, server = _limits(time, tokens_per_minute=100), Server(time)
    for request in (question("word " * 500), question(config=GenerateConfig(max_tokens=100))):
        with pytest.raises(LimitReachedError, match="tokens_per_minute=100") as caught:
            time.run(gathered(limits.wrap(server)(request)))
        assert caught.value.limit == "tokens_per_minute"
    assert server.asked_at == []
    assert time.run(gathered(limits.wrap(server)(question()))) == DONE  # a guess is no reason to refuse


def test_a_wait_that_is_too_long_is_refused_at_once_and_says_what_to_change(time: Any, question: Question) -> None:
    limits = _limits(time, requests_per_minute=1, max_wait_s=30)
    server = Server(time)
    time.run(gathered(limits.wrap(server)(question())))
    before = time.now
    with pytest.raises(RateLimitedError, match=r"max_wait_s=30.*requests_per_minute is used up") as caught:
        time.run(gathered(limits.wrap(server)(question())))
    assert time.now == before
    assert caught.value.retry_after_s is not None
    assert 59 < caught.value.retry_after_s <= 61
    time.now += 40
    assert time.run(gathered(limits.wrap(server)(question())))[-1] == DONE[-1]


def test_who_stands_in_line_gives_up_when_the_time_is_over(time: Any, question: Question) -> None:
    limits, server = _limits(time, max_concurrency=1, max_wait_s=10), Server(time, seconds=100)
    came = time.run(_all(limits, server, [question(), question(), question()]))
    assert [isinstance(one, RateLimitedError) for one in came] == [False, True, True]
    assert gates().gate("s:m", path=None, clock=time).waiting == 0


@pytest.mark.parametrize(
    "wrong",
    [{"requests_per_minute": 0}, {"tokens_per_minute": -1}, {"max_concurrency": 0}, {"lease_s": 0}, {"path": ""}],
)
def test_settings_that_do_not_fit_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RateLimits(**wrong)
    with pytest.raises(ConfigError, match="requests_per_minute"):
        RateLimitsConfig.parse({"requests_per_minuet": 3})


# --- the server says no ---


def test_a_429_makes_everybody_wait_as_long_as_the_server_asks(time: Any, question: Question) -> None:
    limits = _limits(time)
    refusing = Server(time, events=[RateLimitedError("no", retry_after_s=40)])
    with pytest.raises(RateLimitedError, match="no"):
        time.run(gathered(limits.wrap(refusing)(question())))
    began, server = time.now, Server(time)
    time.run(_all(limits, server, [question(), question()]))
    assert server.asked_at == [began + 40] * 2


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("asked", [1e9, float("inf"), float("nan")])
def test_a_server_cannot_choose_how_long_everybody_waits(
    time: Any, question: Question, path: Path, asked: float, shared: bool
) -> None:
    settings: dict[str, Any] = {"path": path} if shared else {}
    began = time.now
    for most, limits in [(120, _limits(time, **settings)), (30, _limits(time, max_pause_s=30, **settings))]:
        refusing = Server(time, events=[RateLimitedError("no", retry_after_s=asked)])
        with pytest.raises(RateLimitedError, match="no"):
            time.run(gathered(limits.wrap(refusing)(question())))
        server = Server(time)
        time.run(_all(limits, server, [question(), question()]))
        began += most
        assert server.asked_at == [began] * 2


def test_nobody_waits_longer_for_another_processs_pause_than_it_would_for_its_own(
    time: Any, question: Question, path: Path
) -> None:
    patient = _limits(time, path=path, max_pause_s=1e6)
    began = time.now
    with pytest.raises(RateLimitedError):
        time.run(gathered(patient.wrap(Server(time, events=[RateLimitedError("no", retry_after_s=1e6)]))(question())))
    server = Server(time)
    time.run(gathered(_limits(time, path=path, max_pause_s=20).wrap(server)(question())))
    assert server.asked_at == [began + 20]


def test_a_429_that_names_no_time_makes_a_pause_of_its_own(time: Any, question: Question) -> None:
    limits = _limits(time, pause_s=7)
    with pytest.raises(RateLimitedError):
        time.run(gathered(limits.wrap(Server(time, events=[RateLimitedError("no")]))(question())))
    began, server = time.now, Server(time)
    time.run(gathered(limits.wrap(server)(question())))
    assert server.asked_at == [began + 7]


def test_what_a_server_refused_costs_no_tokens_and_what_failed_costs_its_question(
    time: Any, question: Question
) -> None:
    limits = _limits(time, tokens_per_minute=1000, pause_s=0, max_wait_s=0)
    large = question(config=GenerateConfig(max_tokens=900))
    for error in (*[RateLimitedError("no")] * 20, ModelOverloadedError("busy")):
        with pytest.raises(type(error)):
            time.run(gathered(limits.wrap(Server(time, events=[error]))(large)))
    assert time.run(gathered(limits.wrap(Server(time))(large))) == DONE
    with pytest.raises(RateLimitedError, match="the limit tokens_per_minute is used up"):  # it reported nothing
        time.run(gathered(limits.wrap(Server(time))(large)))


def test_each_attempt_of_a_retry_counts(time: Any) -> None:
    assert [one.name for one in in_order([RateLimits(), Retry()])] == ["retry", "rate_limits"]
    limits = _limits(time, requests_per_minute=2, max_wait_s=0, scope="retried")
    error = ModelOverloadedError("busy")
    model = ScriptedModel(
        [[error], answer("a"), answer("b")],
        config={"model": "m", "generate_cfg": {"max_retries": 1}},
        processors=[Retry(sleep=time.sleep), limits],
    )
    said = [{"role": "user", "content": "hello"}]
    assert time.run(model.acomplete(said)).get_content() == "a"
    with pytest.raises(RateLimitedError):
        time.run(model.acomplete(said, config={"max_retries": 0}))


def test_it_is_found_by_name_and_waits_as_a_real_server_asks() -> None:
    with FakeOpenAI() as server:
        server.reply(error_reply(429, "slow down", headers={"Retry-After": "0"}), text("Hello.").cut(2))
        limits = {"name": "rate_limits", "requests_per_minute": 2, "max_wait_s": 1}
        config = {"model_type": "openai", "model": "m", "base_url": server.url, "api_key": "sk-example"}
        config |= {"processors": [limits], "generate_cfg": {"max_retries": 1}}
        model = get_chat_model(config, host=PluginHost())
        assert model.quick_chat("Hi") == "Hello."
        assert len(server.requests) == 2
        with pytest.raises(RateLimitedError, match=r"openai@127\.0\.0\.1:\d+:m: request not started"):
            sync.run(model.acomplete([{"role": "user", "content": "Hi"}], config={"max_retries": 0}))
        assert len(server.requests) == 2
        sync.run(model.aclose())


# --- what is told ---


def test_who_waits_is_told_why_and_for_how_long(time: Any, question: Question) -> None:
    limits, server = _limits(time, requests_per_minute=1), Server(time)
    first, second = time.run(_all(limits, server, [question(), question()]))
    assert first == DONE
    (note, *rest) = second
    assert rest == DONE
    assert isinstance(note, PluginEvent)
    assert (note.name, note.data["why"]) == (WAITING_EVENT, "requests")
    assert 59 < note.data["seconds"] <= 61
    (note, *_) = time.run(gathered(limits.wrap(server)(question(lang="zh"))))
    assert "正在等待" in note.data["note"]


def test_a_consumer_that_can_be_told_of_no_reset_is_told_of_no_wait(time: Any) -> None:
    # A retry would take the note for a part of an answer that it cannot take back.
    limits = _limits(time, requests_per_minute=1, scope="quiet")
    script = [answer("a"), [ModelOverloadedError("busy")], answer("b")]
    config = {"model": "m", "generate_cfg": {"max_retries": 1}}
    model = ScriptedModel(script, config=config, processors=[Retry(sleep=time.sleep), limits])
    said = [{"role": "user", "content": "hello"}]
    time.run(model.acomplete(said))
    events = time.run(gathered(model.astream(said, metadata={ONLY_BEFORE_OUTPUT: True})))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["b"]
    assert not any(isinstance(event, PluginEvent | StreamReset) for event in events)


# --- cancelled, in threads, in loops ---


def test_who_is_cancelled_leaves_the_line_and_the_next_moves_up(time: Any, question: Question) -> None:
    limits, server = _limits(time, max_concurrency=1), Server(time, seconds=10)

    async def run() -> None:
        tasks = [asyncio.create_task(gathered(limits.wrap(server)(question(str(number))))) for number in range(4)]
        for _ in range(20):
            await asyncio.sleep(0)
        tasks[1].cancel()  # who is first in line
        tasks[0].cancel()  # who has the place
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [task.cancelled() for task in tasks] == [True, True, False, False]

    time.run(run())
    assert server.asked == ["0", "2", "3"]
    assert server.most == 1
    assert gates().gate("s:m", path=None, clock=time).waiting == 0


def test_leaving_early_gives_the_place_back(time: Any, question: Question) -> None:
    limits, server = _limits(time, max_concurrency=1, max_wait_s=0), Server(time)

    async def run() -> None:
        events = limits.wrap(server)(question())
        await anext(events)
        with pytest.raises(RateLimitedError):
            await gathered(limits.wrap(server)(question()))
        await events.aclose()  # type: ignore[attr-defined]
        assert await gathered(limits.wrap(server)(question())) == DONE

    time.run(run())


@pytest.mark.parametrize("shared", [False, True])
def test_threads_with_loops_of_their_own_share_the_places(question: Question, path: Path, shared: bool) -> None:
    limits = RateLimits(max_concurrency=2, scope=f"threads {shared}", **({"path": path} if shared else {}))
    lock, counts, answered = threading.Lock(), [0, 0], []

    async def serve(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        with lock:
            counts[0] += 1
            counts[1] = max(counts)
        await asyncio.sleep(0.001)
        yield TextDelta("a")
        with lock:
            counts[0] -= 1
        yield ModelFinished("stop")

    def work() -> None:
        async def several() -> None:
            await asyncio.gather(*(gathered(limits.wrap(serve)(question())) for _ in range(3)))

        asyncio.run(several())
        answered.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(answered) == 4
    assert counts == [0, counts[1]]
    assert counts[1] <= 2


def test_a_loop_that_ended_while_somebody_stood_in_line_holds_nobody_up() -> None:
    gate = Gate(MemoryLedger(State), "s", clock=lambda: 100.0)
    first, stuck, next_one = (Wanted(name, Limits(concurrency=1)) for name in ("first", "stuck", "next"))
    held = asyncio.run(gate.look(first))
    assert isinstance(held, Entry)
    loop = asyncio.new_event_loop()
    task = loop.create_task(gate.enter(stuck, max_wait_s=None, sleep=asyncio.sleep))
    loop.run_until_complete(asyncio.sleep(0.001))
    loop.close()
    assert gate.waiting == 1
    asyncio.run(gate.leave(held, 0))
    entry = asyncio.run(asyncio.wait_for(gate.enter(next_one, max_wait_s=None, sleep=asyncio.sleep), 20))
    assert entry.id == "next"
    assert not task.done()


def test_a_writer_in_another_process_holds_up_its_request_and_not_the_event_loop(
    path: Path, question: Question
) -> None:
    async def run() -> list[ModelEvent]:
        limits = RateLimits(path=path, max_concurrency=1)
        other = sqlite3.connect(path, isolation_level=None)

        async def serve(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            other.execute("BEGIN IMMEDIATE")  # when the place is given back, somebody else is writing
            for event in DONE:
                yield event

        other.execute("BEGIN IMMEDIATE")  # when it is asked for, too
        asking = asyncio.create_task(gathered(limits.wrap(serve)(question())))
        for _ in range(2):
            while not other.in_transaction:
                await asyncio.sleep(0.001)
            for _ in range(20):
                await asyncio.sleep(0.001)
                assert not asking.done()
            other.execute("ROLLBACK")  # by this loop: one that waited inside of SQLite would wait in vain
        other.close()
        return await asking

    asyncio.run(gathered(RateLimits(path=path).wrap(_serve)(question())))  # makes the file
    assert asyncio.run(run()) == DONE


def test_a_place_that_came_too_late_for_a_cancelled_request_is_free_again(path: Path, question: Question) -> None:
    async def run() -> None:
        limits = RateLimits(path=path, max_concurrency=1, requests_per_minute=1, max_wait_s=0)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        asking = asyncio.create_task(gathered(limits.wrap(_serve)(question())))
        await asyncio.sleep(0.05)  # it waits in SQLite now
        asking.cancel()
        await asyncio.wait([asking])
        other.execute("ROLLBACK")
        other.close()
        ends = monotonic() + 20
        while monotonic() < ends:
            try:
                await gathered(limits.wrap(_serve)(question()))
            except RateLimitedError:  # what was given too late is taken back in a moment
                await asyncio.sleep(0.001)
            else:
                return
        pytest.fail("the place is lost")

    asyncio.run(gathered(RateLimits(path=path, scope="other").wrap(_serve)(question())))  # makes the file
    asyncio.run(run())


async def _serve(_: ChatRequest) -> AsyncIterator[ModelEvent]:
    for event in DONE:
        yield event


# --- the estimate ---


# --- what is said and written down, exactly ---


@pytest.mark.parametrize(
    ("why", "en", "zh"),
    [
        ("requests", "the limit requests_per_minute is used up", "本分钟的请求数已用完"),
        ("tokens", "the limit tokens_per_minute is used up", "本分钟的 token 数已用完"),
        ("concurrency", "max_concurrency requests are already running", "同时进行的请求数已达上限"),
        ("pause", "the server asked for a pause", "服务器要求暂停"),
        ("turn", "other requests came first", "前面还有其他请求"),
    ],
)
def test_a_wait_is_explained_in_both_languages(question: Question, why: str, en: str, zh: str) -> None:
    for seconds, more_en, more_zh in ((None, "", ""), (2.6, ", about 3 s", "，约 3 秒")):
        told = _note(Wait(seconds, why), question())
        assert told.data == {"why": why, "seconds": seconds, "note": f"m waits: {en}{more_en}"}
        assert _note(Wait(seconds, why), question(lang="zh")).data["note"] == f"m 正在等待：{zh}{more_zh}"


@pytest.mark.parametrize(("seconds", "told"), [(None, True), (0.99, False), (1.0, True), (60.0, True)])
def test_a_wait_of_less_than_a_second_is_not_worth_telling(
    question: Question, seconds: float | None, told: bool
) -> None:
    assert _is_worth_telling(Wait(seconds, "turn"), question()) is told
    assert not _is_worth_telling(Wait(seconds, "turn"), question(metadata={ONLY_BEFORE_OUTPUT: True}))


@pytest.mark.parametrize(
    ("retry_after_s", "pause_s"), [(None, 2.0), (0.0, 0.0), (7.0, 7.0), (120.0, 120.0), (121.0, 120.0)]
)
def test_a_refusal_makes_a_pause_of_this_length(
    time: Any, question: Question, retry_after_s: float | None, pause_s: float
) -> None:
    limits = _limits(time, max_concurrency=5, max_wait_s=0, scope=f"pause {retry_after_s}")

    async def refuse(_: ChatRequest) -> AsyncIterator[ModelEvent]:
        raise RateLimitedError("no", retry_after_s=retry_after_s)
        yield  # it is a generator

    with pytest.raises(RateLimitedError, match="no"):
        time.run(gathered(limits.wrap(refuse)(question())))
    if pause_s == 0:
        assert time.run(gathered(limits.wrap(Server(time))(question()))) == DONE
        return
    with pytest.raises(RateLimitedError, match="the server asked for a pause") as caught:
        time.run(gathered(limits.wrap(Server(time))(question())))
    assert caught.value.retry_after_s == pytest.approx(pause_s)


def test_a_scope_is_the_server_and_the_model_unless_it_has_a_name(time: Any, question: Question) -> None:
    assert _limits(time)._scope(question()) == "s:m"
    assert _limits(time, scope="team")._scope(question()) == "team"


def test_each_file_has_limits_of_its_own(time: Any, question: Question, path: Path, tmp_path: Path) -> None:
    another = tmp_path / "another.sqlite"
    server = Server(time)
    for settings in ({}, {"path": path}, {"path": another}):
        limits = _limits(time, requests_per_minute=1, max_wait_s=0, **settings)
        assert time.run(gathered(limits.wrap(server)(question()))) == DONE
        with pytest.raises(RateLimitedError):
            time.run(gathered(limits.wrap(server)(question())))
    gates().close(another)


def test_a_file_stays_the_same_wherever_the_process_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    limits = [RateLimits(path=path) for path in ("~/limits.sqlite", "limits.sqlite")]
    monkeypatch.chdir("/")
    assert [one._path for one in limits] == [tmp_path / "limits.sqlite"] * 2


def test_the_clock_is_one_that_the_processes_share_only_if_they_share_a_file(path: Path) -> None:
    assert RateLimits(path=path)._clock is wall_clock
    assert RateLimits()._clock is monotonic


@pytest.mark.parametrize("media_tokens", [None, 7])
def test_media_count_as_the_settings_say(time: Any, question: Question, media_tokens: int | None) -> None:
    settings = {} if media_tokens is None else {"media_tokens": media_tokens}
    limits = _limits(time, tokens_per_minute=10_000, **settings)
    gate = Gate(MemoryLedger(State), "s", clock=time)
    text = ContentItem(text="hello")
    image = ContentItem(image="https://h/a.png")
    plain, with_images = (
        limits._wanted(question(messages=(Message("user", items),)), gate)[0]
        for items in ([text], [text, image, image])
    )
    assert with_images - plain == 2 * (1000 if media_tokens is None else media_tokens)


def test_a_place_is_kept_for_its_lease_only_where_processes_share_it(
    time: Any, question: Question, tmp_path: Path
) -> None:
    for settings, lease_s, owned in (({}, math.inf, False), ({"path": tmp_path / "l.sqlite", "lease_s": 7}, 7, True)):
        limits = RateLimits(max_concurrency=1, **settings)
        _, wanted = limits._wanted(question(), Gate(MemoryLedger(State), "s", clock=time))
        assert (wanted.lease_s, bool(wanted.owner), wanted.max_pause_s) == (lease_s, owned, 120)


@pytest.mark.parametrize(
    ("options", "tokens_per_minute", "answer"),
    [({}, 10_000, 500), ({"max_tokens": 70}, 10_000, 70), ({}, 300, None), ({"max_tokens": 1}, 300, 1)],
)
def test_an_answer_of_unknown_length_is_first_taken_for_500_tokens_or_what_there_is(
    time: Any, question: Question, options: dict[str, int], tokens_per_minute: int, answer: int | None
) -> None:
    limits = _limits(time, tokens_per_minute=tokens_per_minute)
    gate = Gate(MemoryLedger(State), "s", clock=time)
    asked, wanted = limits._wanted(question(config=GenerateConfig(**options)), gate)
    assert asked > 0
    assert wanted.tokens == (tokens_per_minute if answer is None else asked + answer)
    gate.learn(1000)
    assert gate.answer_tokens == 600


@pytest.mark.parametrize(
    ("usage", "began", "refused", "tokens"),
    [
        (Usage(prompt_tokens=3, completion_tokens=4), True, False, 7),
        (Usage(), True, False, 100),
        (None, True, False, 100),
        (None, False, False, 40),
        (None, False, True, 0),
        (Usage(prompt_tokens=3, total_tokens=9), True, True, 9),
    ],
)
def test_what_a_request_used_is_what_is_known_of_it(
    usage: Usage | None, began: bool, refused: bool, tokens: int
) -> None:
    call = _Call(None, Entry("e", 0, 100), 40, 0.0)  # type: ignore[arg-type] - no gate is needed to count
    if began:
        call.see(TextDelta("a"))
    if usage is not None:
        call.see(UsageReported(usage))
    call.refused = refused
    assert call._tokens() == tokens
