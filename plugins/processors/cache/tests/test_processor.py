"""What is kept, what comes back, and who asks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jackfield.config import GenerateConfig, LLMConfig
from jackfield.errors import ConfigError, ModelOverloadedError, ModelRequestError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RetryScheduled,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, Message, Usage
from jackfield.models import Retry, fold
from jackfield.processors import in_order
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_cache import processor
from jackfield_cache.processor import HIT_EVENT, METADATA, SHARED_EVENT, Cache
from jackfield_testkit.streams import Inner, gathered

MakeCache = Callable[..., Cache]
Ask = Callable[..., list[ModelEvent]]
Question = Callable[..., ChatRequest]

WHOLE: list[ModelEvent] = [
    ReasoningDelta("because"),
    TextDelta("Hel"),
    TextDelta("lo"),
    PluginEvent("somebody.note", {"note": "hm"}),
    FunctionCallDelta(0, "c1", "f", "{}"),
    UsageReported(Usage(prompt_tokens=7, completion_tokens=5, cost=Decimal("0.25"), currency="EUR")),
    ModelFinished("tool_calls", model="m-1", response_id="r", created=7, data={"signature": "s"}),
]


class Gate:
    """A model that says one word, and the rest when it is let; it notes how often it was asked, and what is open."""

    def __init__(self, events: Sequence[ModelEvent | Exception] = WHOLE) -> None:
        self.asked = 0
        self.open = 0
        self.let = asyncio.Event()
        self._events = events

    async def __call__(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        self.asked += 1
        self.open += 1
        try:
            for number, event in enumerate(self._events):
                if number:
                    await self.let.wait()
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.open -= 1


def _hits(events: Sequence[ModelEvent]) -> list[PluginEvent]:
    return [event for event in events if isinstance(event, PluginEvent) and event.name == HIT_EVENT]


def _unmarked(events: Sequence[ModelEvent]) -> list[ModelEvent]:
    ours = (HIT_EVENT, SHARED_EVENT)
    return [event for event in events if not (isinstance(event, PluginEvent) and event.name in ours)]


def _without_usage(events: Sequence[ModelEvent]) -> list[ModelEvent]:
    return [event for event in _unmarked(events) if not isinstance(event, UsageReported)]


# --- what comes back ---


def test_the_same_question_is_answered_by_the_same_events_without_asking(
    make_cache: MakeCache, ask: Ask, question: Question
) -> None:
    inner = Inner(WHOLE)
    assert ask(make_cache(), question(), inner) == WHOLE
    again = ask(make_cache(), question(), inner)
    assert _without_usage(again) == _without_usage(WHOLE)
    assert len(_hits(again)) == 1
    assert inner.started == 1
    ask(make_cache(), question("else"), inner)
    assert inner.started == 2


def test_a_hit_costs_nothing_and_says_what_it_saves_and_how_old_it_is(
    make_cache: MakeCache, ask: Ask, question: Question, clock: Any
) -> None:
    ask(make_cache(), question(), Inner(WHOLE))
    clock.now += 90
    again = ask(make_cache(), question(), Inner([]))
    assert fold(again).usage == Usage(cost=Decimal(0), currency="EUR")
    (hit,) = _hits(again)
    assert hit.data["age_s"] == 90
    assert Usage(**hit.data["saved"]) == fold(WHOLE).usage


def test_a_hit_whose_price_was_not_known_leaves_a_sum_as_it_is(
    make_cache: MakeCache, ask: Ask, question: Question
) -> None:
    events: list[ModelEvent] = [TextDelta("a"), UsageReported(Usage(prompt_tokens=7)), ModelFinished("stop")]
    ask(make_cache(), question(), Inner(events))
    spent = Usage(prompt_tokens=3, cost=Decimal(1), currency="EUR")
    assert spent + fold(ask(make_cache(), question(), Inner([]))).usage == spent


def test_an_agent_that_asks_the_same_again_asks_its_model_nothing(make_cache: MakeCache, tmp_path: Path) -> None:
    from jackfield import FnCallAgent, tool

    @tool
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    config = LLMConfig(model="scripted", processors=({"name": "cache", "path": str(tmp_path / "a.sqlite")},))
    model = ScriptedModel([calls(("double", {"number": 21})), answer("It is 42.")], config=config)
    said = [{"role": "user", "content": "Double 21."}]
    runs = [FnCallAgent([double], model).run_nonstream(said) for _ in range(2)]
    assert [message["content"] for message in runs[0]] == ["", "42", "It is 42."]
    assert runs[0] == runs[1]
    assert len(model.requests) == 2


# --- what is not kept ---


@pytest.mark.parametrize(
    "events",
    [
        [TextDelta("a"), ModelRequestError("no")],
        [TextDelta("a"), UsageReported(Usage())],
        [TextDelta("a"), ModelFinished("content_filter")],
        [TextDelta("a"), ModelFinished("other", provider_reason="abort")],
        [TextDelta(""), ModelFinished("stop")],
        [ReasoningDelta("a"), ModelFinished("stop")],
        [TextDelta("a"), StreamReset("x"), ModelFinished("stop")],
        [],
    ],
    ids=["failed", "cut off", "filtered", "aborted", "empty", "only reasoning", "reset", "nothing"],
)
def test_what_is_no_whole_answer_is_not_kept(
    make_cache: MakeCache, ask: Ask, question: Question, events: list[ModelEvent | Exception]
) -> None:
    try:
        assert ask(make_cache(), question(), Inner(events)) == events
    except ModelRequestError:
        assert isinstance(events[-1], ModelRequestError)
    assert ask(make_cache(), question(), Inner(WHOLE)) == WHOLE


@pytest.mark.parametrize(
    "said",
    [
        [MediaDelta(ContentItem(image="data:image/png;base64,AAAA"))],
        [FunctionCallDelta(0, "c", "f", "{}")],
        [TextDelta(""), TextDelta("a"), TextDelta("")],
    ],
    ids=["media", "call", "text"],
)
def test_a_whole_answer_of_any_kind_is_kept(
    make_cache: MakeCache, ask: Ask, question: Question, said: list[ModelEvent]
) -> None:
    ask(make_cache(), question(), Inner([*said, ModelFinished("stop")]))
    assert _hits(ask(make_cache(), question(), Inner([])))


@pytest.mark.parametrize("read", [0, 1, len(WHOLE) - 1])
def test_an_answer_that_was_left_early_is_not_kept(
    make_cache: MakeCache, ask: Ask, question: Question, read: int
) -> None:
    cache, inner = make_cache(), Inner(WHOLE)

    async def leave() -> None:
        events = cache.wrap(inner)(question())
        for _ in range(read):
            await anext(events)
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    assert inner.open == 0
    assert ask(cache, question(), Inner(WHOLE)) == WHOLE


def test_who_leaves_at_the_end_has_kept_the_answer(make_cache: MakeCache, ask: Ask, question: Question) -> None:
    cache = make_cache()

    async def leave_at_the_end() -> None:
        events = cache.wrap(Inner(WHOLE))(question())
        while not isinstance(await anext(events), ModelFinished):
            pass
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave_at_the_end())
    assert _hits(ask(cache, question(), Inner([])))


def test_of_several_attempts_the_one_that_succeeded_is_kept(make_cache: MakeCache) -> None:
    script: list[list[ModelEvent | Exception]] = [
        [TextDelta("It is [EMA"), ModelOverloadedError("busy", retry_after_s=0)],
        [TextDelta("Whole."), ModelFinished("stop")],
    ]

    async def no_sleep(_: float) -> None:
        return

    config = {"model": "scripted", "generate_cfg": {"max_retries": 1}}
    model = ScriptedModel(script, config=config, processors=[make_cache(), Retry(sleep=no_sleep)])

    async def twice() -> list[list[ModelEvent]]:
        return [await gathered(model.astream([Message("user", "hello")])) for _ in range(2)]

    first, again = asyncio.run(twice())
    assert fold(first).get_content() == "Whole."
    assert StreamReset in map(type, first)
    assert _unmarked(again) == [TextDelta("Whole."), ModelFinished("stop")]


def test_an_answer_that_is_no_json_is_passed_on_and_told(
    make_cache: MakeCache, ask: Ask, question: Question, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[ModelEvent] = [TextDelta("a"), ModelFinished("stop", data={"x": b"bytes"})]
    assert ask(make_cache(), question(), Inner(events)) == events
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert ask(make_cache(), question(), Inner(WHOLE)) == WHOLE


def test_a_question_that_is_no_json_is_asked_and_told(
    make_cache: MakeCache, ask: Ask, question: Question, caplog: pytest.LogCaptureFixture
) -> None:
    request = question(config=GenerateConfig(extra_body={"x": object()}))
    for _ in range(2):
        assert ask(make_cache(), request, Inner(WHOLE)) == WHOLE
    assert "not JSON" in caplog.text
    assert "object at" not in caplog.text


def test_an_answer_in_the_file_that_cannot_be_read_is_asked_for_anew(
    make_cache: MakeCache, ask: Ask, question: Question, tmp_path: Path
) -> None:
    import sqlite3

    ask(make_cache(), question(), Inner(WHOLE))
    with sqlite3.connect(tmp_path / "answers.sqlite") as connection:
        connection.execute("UPDATE answers SET events = ?", (b'[["new kind"]]',))
    connection.close()
    assert ask(make_cache(), question(), Inner(WHOLE)) == WHOLE
    assert _hits(ask(make_cache(), question(), Inner([])))


def test_a_file_that_cannot_be_used_changes_no_answer(
    make_cache: MakeCache, ask: Ask, question: Question, tmp_path: Path
) -> None:
    (tmp_path / "diary").write_text("dear diary " * 99)
    cache = make_cache(path=tmp_path / "diary")
    for _ in range(2):
        assert ask(cache, question(), Inner(WHOLE)) == WHOLE


def test_what_was_said_is_in_no_repr_and_no_log(
    make_cache: MakeCache, ask: Ask, question: Question, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import sqlite3

    caplog.set_level(logging.DEBUG)
    cache = make_cache()
    ask(cache, question("bob@example.com"), Inner([TextDelta("eve@example.com"), ModelFinished("stop")]))
    with sqlite3.connect(tmp_path / "answers.sqlite") as connection:
        connection.execute("UPDATE answers SET events = ?", (b'[["media",{"eve@example.com":1}]]',))
    connection.close()
    ask(cache, question("bob@example.com"), Inner(WHOLE))
    assert "cannot read an answer from the cache" in caplog.text
    assert "@example.com" not in caplog.text + repr(cache)


@pytest.mark.parametrize(
    "events",
    [
        [TextDelta("key-0123"), TextDelta("456789-abcdef")],
        [ReasoningDelta("key-0123"), ReasoningDelta("456789-abcdef"), TextDelta("a")],
        [FunctionCallDelta(0, "c", "f", '{"a": "key-0123'), FunctionCallDelta(0, "", "", '456789-abcdef"}')],
        [
            FunctionCallDelta(0, "c", "f", "{}"),
            FunctionCallDelta(1, "d", "f", "key-0123"),
            FunctionCallDelta(0, "", "", "{}"),
            FunctionCallDelta(1, "", "", "456789-abcdef"),
        ],
        [TextDelta("a"), MediaDelta(ContentItem(image="http://h/key-0123456789-abcdef"))],
    ],
    ids=["text", "reasoning", "arguments", "interleaved arguments", "an address"],
)
def test_an_answer_with_a_secret_of_the_environment_is_passed_on_and_not_kept(
    make_cache: MakeCache,
    ask: Ask,
    question: Question,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    events: list[ModelEvent],
) -> None:
    whole = [*events, ModelFinished("stop")]
    monkeypatch.setenv("ACME_API_KEY", "key-0123456789-abcdef")
    assert ask(make_cache(), question(), Inner(whole)) == whole
    assert "it contains a secret" in caplog.text
    assert "0123456789" not in caplog.text
    inner = Inner(WHOLE)
    ask(make_cache(), question(), inner)
    assert inner.started == 1
    monkeypatch.delenv("ACME_API_KEY")
    kept = Inner(whole)
    for _ in range(2):
        ask(make_cache(), question("else"), kept)
    assert kept.started == 1


def test_notes_of_retries_are_not_kept_and_the_usage_that_was_reported_last_is_saved(
    make_cache: MakeCache, ask: Ask, question: Question
) -> None:
    events: list[ModelEvent] = [
        PreparationProgress("loading", 1, 2),
        RetryScheduled(1, 0.0, "busy"),
        UsageReported(Usage(prompt_tokens=1)),
        TextDelta("a"),
        UsageReported(Usage(prompt_tokens=2)),
        ModelFinished("stop"),
    ]
    assert ask(make_cache(), question(), Inner(events)) == events
    again = ask(make_cache(), question(), Inner([]))
    assert not [event for event in again if isinstance(event, PreparationProgress | RetryScheduled)]
    assert Usage(**_hits(again)[0].data["saved"]).prompt_tokens == 2
    ask(make_cache(), question("free"), Inner([TextDelta("a"), ModelFinished("stop")]))
    assert _hits(ask(make_cache(), question("free"), Inner([])))[0].data["saved"] == {}


def test_a_clock_that_was_set_back_makes_no_answer_younger_than_new(
    make_cache: MakeCache, ask: Ask, question: Question, clock: Any
) -> None:
    ask(make_cache(), question(), Inner(WHOLE))
    clock.now -= 500
    assert _hits(ask(make_cache(), question(), Inner([])))[0].data["age_s"] == 0
    clock.now += 501.23456
    assert _hits(ask(make_cache(), question(), Inner([])))[0].data["age_s"] == 1.235


@pytest.mark.parametrize("given", ["answers.sqlite", "~/answers.sqlite"])
def test_a_path_is_found_once_whatever_the_working_folder_is_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    cache = Cache(path=given)
    monkeypatch.chdir("/")
    assert repr(cache) == f"<Cache {tmp_path / 'answers.sqlite'}>"


def test_an_unset_folder_of_caches_is_in_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in (None, ""):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if value is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert repr(Cache()) == f"<Cache {tmp_path / '.cache' / 'jackfield' / 'answers.sqlite'}>"


def test_a_closed_cache_opens_its_file_again(
    make_cache: MakeCache, ask: Ask, question: Question, tmp_path: Path
) -> None:
    cache = make_cache()
    ask(cache, question(), Inner(WHOLE))
    file = tmp_path / "answers.sqlite-wal"
    assert file.exists()  # there as long as somebody has the answers open
    asyncio.run(cache.aclose())
    assert not file.exists()
    assert _hits(ask(cache, question(), Inner([])))


def test_files_of_a_question_are_read_in_a_worker_thread_and_a_text_needs_none(
    make_cache: MakeCache, ask: Ask, question: Question, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(b"picture")
    read_by: list[threading.Thread] = []
    key_of = processor.key_of

    def noting(request: ChatRequest, scope: str) -> bytes:
        read_by.append(threading.current_thread())
        return key_of(request, scope)

    picture = Message("user", [ContentItem(image=str(tmp_path / "a.png"))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processor, "key_of", noting)
        for messages in ((Message("user", "a"),), (Message("user", "a"), picture), (picture, Message("user", "a"))):
            ask(make_cache(), question(messages=messages), Inner(WHOLE))
    assert [thread is threading.current_thread() for thread in read_by] == [True, False, False]


def test_a_question_with_a_file_that_cannot_be_read_is_asked_and_told(
    make_cache: MakeCache,
    ask: Ask,
    question: Question,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "a.png").write_bytes(b"picture")
    request = question(messages=(Message("user", [ContentItem(image=str(tmp_path / "a.png"))]),))
    opened = Path.open

    def refuse(path: Path, *options: Any, **more: Any) -> Any:
        if path.name == "a.png":
            raise PermissionError(13, "Permission denied")
        return opened(path, *options, **more)

    monkeypatch.setattr(Path, "open", refuse)
    for _ in range(2):
        assert ask(make_cache(), request, Inner(WHOLE)) == WHOLE
    assert "the answer was not cached: [Errno 13] Permission denied" in caplog.text


# --- wishes ---


def test_bypass_asks_and_keeps_nothing_and_refresh_asks_and_keeps(
    make_cache: MakeCache, ask: Ask, question: Question
) -> None:
    newer: list[ModelEvent] = [TextDelta("newer"), ModelFinished("stop")]
    bypass, refresh = (question(metadata={"jackfield-cache": wish}) for wish in ("bypass", "refresh"))
    assert ask(make_cache(), bypass, Inner(WHOLE)) == WHOLE
    assert ask(make_cache(), question(), Inner(WHOLE)) == WHOLE
    assert ask(make_cache(), bypass, Inner(newer)) == newer
    assert _without_usage(ask(make_cache(), question(), Inner([]))) == _without_usage(WHOLE)
    assert ask(make_cache(), refresh, Inner(newer)) == newer
    assert _unmarked(ask(make_cache(), question(), Inner([]))) == newer
    with pytest.raises(ConfigError, match="'bypas'"):
        make_cache().around(question(metadata={"jackfield-cache": "bypas"}), Inner([]))
    with pytest.raises(ConfigError, match="''"):
        make_cache().around(question(metadata={"jackfield-cache": ""}), Inner([]))


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, False),
        ({"temperature": 0.7}, False),
        ({"temperature": 0}, True),
        ({"temperature": 0.7, "seed": 0}, True),
        ({"temperature": 0, "extra_body": {"temperature": 1}}, False),
        ({"extra_body": {"seed": 1}}, True),
    ],
)
def test_only_deterministic_requests_are_kept_if_that_is_wanted(
    make_cache: MakeCache, ask: Ask, question: Question, options: dict[str, Any], kept: bool
) -> None:
    cache, inner = make_cache(only_deterministic=True), Inner(WHOLE)
    for _ in range(2):
        ask(cache, question(config=GenerateConfig(**options)), inner)
    assert inner.started == (1 if kept else 2)


def test_a_time_and_a_scope_are_kept_to(make_cache: MakeCache, ask: Ask, question: Question, clock: Any) -> None:
    inner = Inner(WHOLE)
    ask(make_cache(scope="one", ttl_s=10), question(), inner)
    ask(make_cache(scope="two", ttl_s=10), question(), inner)
    assert inner.started == 2
    clock.now += 11
    ask(make_cache(scope="one", ttl_s=10), question(), inner)
    assert inner.started == 3
    picture = question(messages=(Message("user", [ContentItem(image="https://h/a.png")]),))
    for scope in ("one", "two"):
        ask(make_cache(scope=scope), picture, inner)
    assert inner.started == 5


def test_the_answers_that_were_not_used_for_longest_make_room(
    make_cache: MakeCache, ask: Ask, question: Question, clock: Any
) -> None:
    long_answer: list[ModelEvent] = [TextDelta("x" * 4000), ModelFinished("stop")]
    cache = make_cache(max_bytes=10_000)
    for number in range(4):
        clock.now += 1
        ask(cache, question(str(number)), Inner(long_answer))
    inner = Inner(WHOLE)
    hits = [bool(_hits(ask(cache, question(str(number)), inner))) for number in (3, 0)]
    assert (hits, inner.started) == ([True, False], 1)


@pytest.mark.parametrize(
    "settings", [{"path": ""}, {"ttl_s": 0}, {"ttl_s": -1}, {"max_bytes": 0}, {"only_deterministic": "perhaps"}]
)
def test_settings_that_do_not_fit_are_named(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        Cache(**settings)


def test_without_a_path_the_file_is_where_caches_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert repr(Cache()) == f"<Cache {tmp_path / 'jackfield' / 'answers.sqlite'}>"
    assert list(tmp_path.iterdir()) == []


def test_retries_stand_inside() -> None:
    assert [one.name for one in in_order([Retry(), Cache(path="x")])] == ["cache", "retry"]


# --- at the same time ---


def test_the_same_question_at_the_same_time_is_asked_once(make_cache: MakeCache, question: Question) -> None:
    cache = make_cache()

    async def many() -> list[list[ModelEvent]]:
        gate = Gate()
        tasks = [asyncio.create_task(gathered(cache.wrap(gate)(question()))) for _ in range(5)]
        while not gate.asked:
            await asyncio.sleep(0)
        gate.let.set()
        came = await asyncio.gather(*tasks)
        assert gate.asked == 1
        return came

    came = asyncio.run(many())
    assert [_without_usage(events) for events in came] == [_without_usage(WHOLE)] * 5
    paid = [event for events in came for event in events if isinstance(event, UsageReported) and event.usage.cost]
    assert len(paid) == 1, "the question was asked once, so it is paid once"


@pytest.mark.parametrize("leaver", [0, 1, 2])
def test_cancelling_one_does_not_cancel_the_others(make_cache: MakeCache, question: Question, leaver: int) -> None:
    cache = make_cache()

    async def one_leaves() -> None:
        gate = Gate()
        tasks = [asyncio.create_task(gathered(cache.wrap(gate)(question()))) for _ in range(3)]
        while not gate.asked:
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        tasks[leaver].cancel()
        await asyncio.wait([tasks[leaver]])
        gate.let.set()
        came = await asyncio.gather(*(task for task in tasks if task is not tasks[leaver]))
        assert tasks[leaver].cancelled()
        assert [_without_usage(events) for events in came] == [_without_usage(WHOLE)] * 2
        assert (gate.asked, gate.open) == (1, 0)

    asyncio.run(one_leaves())


def test_when_all_have_left_the_model_is_closed_and_the_next_asks_anew(
    make_cache: MakeCache, question: Question
) -> None:
    cache = make_cache()

    async def all_leave() -> None:
        gate = Gate()
        tasks = [asyncio.create_task(gathered(cache.wrap(gate)(question()))) for _ in range(3)]
        while not gate.asked:
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert (gate.asked, gate.open) == (1, 0)
        gate.let.set()
        assert await gathered(cache.wrap(gate)(question())) == WHOLE
        assert (gate.asked, gate.open) == (2, 0)

    asyncio.run(all_leave())


def test_an_error_reaches_all_who_wait_as_it_is_and_the_next_asks_anew(
    make_cache: MakeCache, question: Question
) -> None:
    cache = make_cache()
    error = ModelRequestError("refused")

    async def fail() -> None:
        gate = Gate([TextDelta("a"), error])
        gate.let.set()
        tasks = [asyncio.create_task(gathered(cache.wrap(gate)(question()))) for _ in range(3)]
        came = await asyncio.gather(*tasks, return_exceptions=True)
        assert came == [error] * 3
        assert (gate.asked, gate.open) == (1, 0)
        assert await gathered(cache.wrap(Inner(WHOLE))(question())) == WHOLE

    asyncio.run(fail())


def test_streams_of_the_same_question_can_be_read_in_turns_by_one_task(
    make_cache: MakeCache, question: Question
) -> None:
    cache, inner = make_cache(), Inner(WHOLE)

    async def in_turns() -> None:
        streams = [cache.wrap(inner)(question()) for _ in range(2)]
        came: list[list[ModelEvent]] = [[], []]
        for number in (0, 1) * (len(WHOLE) + 2):
            event = await anext(streams[number], None)
            came[number] += [event] if event else []
        assert [_without_usage(events) for events in came] == [_without_usage(WHOLE)] * 2

    asyncio.run(asyncio.wait_for(in_turns(), 20))
    assert inner.started == 1


def test_who_waits_and_signs_in_otherwise_asks_for_himself(make_cache: MakeCache, question: Question) -> None:
    cache = make_cache()

    async def both() -> None:
        gate = Gate()
        configs = [GenerateConfig(), GenerateConfig(extra_headers={"x": "y"}), GenerateConfig(deadline=9)]
        requests = [*(question(config=config) for config in configs), question(metadata={METADATA: "refresh"})]
        tasks = [asyncio.create_task(gathered(cache.wrap(gate)(request))) for request in requests]
        while gate.asked < 4:
            await asyncio.sleep(0)
        like_the_first = asyncio.create_task(gathered(cache.wrap(gate)(requests[0])))
        await asyncio.sleep(0)
        gate.let.set()
        assert await asyncio.gather(*tasks) == [WHOLE] * 4
        assert PluginEvent(SHARED_EVENT) in await like_the_first

    asyncio.run(asyncio.wait_for(both(), 20))


def test_event_loops_share_no_request_in_flight(make_cache: MakeCache, question: Question) -> None:
    cache, first, second = make_cache(), asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        begun = cache.wrap(Gate())(question())
        assert first.run_until_complete(anext(begun)) == WHOLE[0]
        inner = Inner(WHOLE)
        whole = asyncio.wait_for(gathered(cache.wrap(inner)(question())), 20)
        assert second.run_until_complete(whole) == WHOLE
        assert inner.started == 1
        first.run_until_complete(begun.aclose())  # type: ignore[attr-defined]
    finally:
        first.close()
        second.close()


def test_nothing_is_left_of_questions_that_are_answered(make_cache: MakeCache, question: Question, ask: Ask) -> None:
    cache = make_cache()
    for number in range(3):
        ask(cache, question(str(number)), Inner(WHOLE))
        ask(cache, question(str(number)), Inner(WHOLE))
    assert cache.waiting == 0
