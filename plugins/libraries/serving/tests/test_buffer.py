"""The buffer of live events stays within its size, however many events come and however slow the readers are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.events import (
    AgentEvent,
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RunEvent,
    RunFailed,
    StreamReset,
    TextDelta,
    ToolProgress,
    TurnFinished,
)
from jackfield.messages import ContentItem, Usage
from jackfield_serving.buffer import EventBuffer
from jackfield_serving.numbering import HALF, STRIDE

EVENTS: dict[str, Callable[[int], ModelEvent | AgentEvent]] = {
    "one text": lambda _: TextDelta("piece "),
    "texts that alternate": lambda number: (TextDelta, ReasoningDelta)[number % 2]("piece "),
    "calls that alternate": lambda number: FunctionCallDelta(number % 7, arguments="piece "),
    "progress": lambda number: ToolProgress(0, f"call {number % 3}", f"{number} %"),
    "progress between texts": lambda number: (TextDelta("a"), ToolProgress(0, "c", "b"), ReasoningDelta("c"))[
        number % 3
    ],
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_answer_without_an_end_takes_a_bounded_number_of_events(name: str) -> None:
    """Its pieces are not joined each time that one is added."""
    shrinks: list[int] = []

    class Counting(EventBuffer):
        def _shrink(self) -> None:
            shrinks.append(self.last)
            super()._shrink()

    buffer = Counting(0, max_events=200, max_chars=10_000)
    for number in range(10_000):
        assert buffer.add(RunEvent("r", number, "a", 0, EVENTS[name](number)))
        if number % 50 == 0:
            assert len(buffer.after(0) or ()) <= 400
    texts = [one.event.event.text for one in buffer.after(0) or () if isinstance(one.event.event, TextDelta)]
    assert len(shrinks) <= 100
    wanted = [EVENTS[name](number) for number in range(10_000)]
    assert "".join(texts) == "".join(one.text for one in wanted if isinstance(one, TextDelta))


def test_an_answer_that_is_too_long_for_its_numbers_comes_once_it_is_complete() -> None:
    buffer = EventBuffer(0, max_events=200, max_chars=10_000)
    piece = "x" * 1_000_000
    taken = [buffer.add(RunEvent("r", number, "a", 0, TextDelta(piece))) for number in range(12)]
    assert taken == [True] * 8 + [False] * 4
    end = RunEvent("r", 12, "a", 0, TurnFinished(1, (), Usage()))
    buffer.add_step(end, 1)
    assert (buffer.after(STRIDE - 1), buffer.after(STRIDE)) == (None, [])
    assert buffer.add(RunEvent("r", 13, "a", 0, TextDelta("more")))


@pytest.mark.parametrize(("size", "is_taken"), [(HALF - 1, True), (HALF, False)])
def test_numbers_of_live_events_stay_in_the_lower_half(size: int, is_taken: bool) -> None:
    buffer = EventBuffer(0, max_events=200, max_chars=100)
    assert buffer.add(RunEvent("r", 0, "a", 0, TextDelta("x" * size))) is is_taken
    assert buffer.last == (size if is_taken else 0)


def test_only_the_answer_that_was_cut_waits_for_its_record() -> None:
    buffer = EventBuffer(0, max_events=200, max_chars=10_000)
    assert not buffer.add(RunEvent("r", 0, "a", 0, TextDelta("x" * HALF)))
    assert buffer.add(RunEvent("s", 0, "b", 1, TextDelta("of another run")))
    buffer.add_step(RunEvent("s", 1, "b", 1, TurnFinished(1, (), Usage())), 1)
    assert [type(one.event.event) for one in buffer.after(0) or ()] == [TextDelta, TurnFinished]
    assert not buffer.add(RunEvent("r", 0, "a", 0, TextDelta("more")))


@pytest.mark.parametrize("text", ["", "x" * 1_000], ids=["steps", "texts"])
def test_recorded_events_take_a_bounded_number_of_characters(text: str) -> None:
    """A step counts as 500, and a text as its length. The latest events stay."""
    buffer = EventBuffer(0, max_events=100_000, max_chars=10_000)
    most = 0
    for index in range(1, 200):
        assert not text or buffer.add(RunEvent("r", index, "a", 0, TextDelta(text)))
        buffer.add_step(RunEvent("r", index, "a", 0, TurnFinished(index, (), Usage())), index)
        most = max(most, len(buffer.after(buffer.floor) or ()))
    assert 6 <= most <= 21


def test_the_latest_quarter_of_the_events_stays_for_readers_that_are_nearly_there() -> None:
    buffer = EventBuffer(0, max_events=100, max_chars=1_000_000)
    for index in range(1, 102):
        buffer.add_step(RunEvent("r", index, "a", 0, TurnFinished(index, (), Usage())), index)
    assert buffer.floor == 76 * STRIDE
    assert len(buffer.after(buffer.floor) or ()) == 25
    assert buffer.after(buffer.floor - 1) is None


STEPS = (TurnFinished(1, (), Usage()), RunFailed("broken", "ValueError"), PluginEvent("zoo.report", {}))
MEDIA = MediaDelta(ContentItem(image="https://example.org/a.png"))
DELTAS = st.one_of(
    st.builds(TextDelta, st.text("ab", max_size=4)),
    st.builds(ReasoningDelta, st.text("xy", max_size=4)),
    st.builds(FunctionCallDelta, st.integers(0, 1), st.just(""), st.just(""), st.text("jk", max_size=4)),
    st.builds(
        FunctionCallDelta, st.integers(0, 1), *map(st.sampled_from, (("", "I"), ("", "N"))), st.text("jk", max_size=4)
    ),
    st.builds(ToolProgress, st.just(0), st.sampled_from("cd"), st.text("01", max_size=2)),
    st.builds(PreparationProgress, st.sampled_from(("read", "index")), st.integers(0, 3)),
    st.sampled_from((MEDIA, StreamReset("broken"), *STEPS)),
)
PLACED = st.builds(lambda run_id, event: RunEvent(run_id, 1, "a", 0, event), st.sampled_from("rs"), DELTAS)
BURSTS = st.lists(st.tuples(st.lists(PLACED, min_size=1, max_size=3), st.integers(1, 8)), max_size=12)
State: TypeAlias = dict[tuple[object, ...], str]


def fold(state: State, events: Iterable[RunEvent]) -> State:
    """Return what a client shows after some more events: texts that grow, and the latest note on each subject."""
    state = dict(state)
    for run_id, _, _, _, event in events:
        match event:
            case StreamReset() | TurnFinished() | RunFailed():
                state = {key: text for key, text in state.items() if key[0] != run_id or key[1] == "note"}
            case PluginEvent():
                state[run_id, "note"] = state.get((run_id, "note"), "") + "reported "
            case TextDelta(text) | ReasoningDelta(text):
                key: tuple[object, ...] = (run_id, type(event))
                state[key] = state.get(key, "") + text
            case MediaDelta():
                state[run_id, MediaDelta] = state.get((run_id, MediaDelta), "") + "seen "
            case FunctionCallDelta(index, call_id, name, arguments):
                key = (run_id, type(event), index)
                state[key] = state.get(key, "") + call_id + name + arguments
            case ToolProgress(_, call_id, text):
                state[run_id, "note", call_id] = text
            case PreparationProgress(step):
                state[run_id, "note", step] = repr(event)
    return {key: text for key, text in state.items() if text}


NOTES: list[ModelEvent | AgentEvent] = [
    ToolProgress(0, "c", "1"),
    ToolProgress(0, "d", "2"),
    PreparationProgress("read"),
    PreparationProgress("index"),
]
KEPT: list[ModelEvent | AgentEvent] = [TextDelta("before"), STEPS[0], STEPS[2], STEPS[2]]
NAMED = (FunctionCallDelta(0, name="N", arguments="jk"), FunctionCallDelta(0, arguments="kj"))
SLOW: list[AgentEvent] = [ToolProgress(0, str(number), "half") for number in range(31)]
MIXED = [RunEvent("r", 1, "a", 0, event) for event in (TextDelta("a"), ReasoningDelta("b"))]
BETWEEN = [RunEvent(run_id, 1, "a", 0, TextDelta(run_id)) for run_id in "rs"]


@example(
    [([RunEvent("r", 1, "a", 0, ReasoningDelta(text)) for text in ("a", "", "b", "c", "", "d", "e", "f")], 1)], {0}, 8
)
@example([([RunEvent(run_id, 1, "a", 0, note)], 1) for note in NOTES for run_id in "rs"] + [(BETWEEN, 8)], {0, 5}, 8)
@example([(BETWEEN, 8), ([RunEvent("r", 1, "a", 0, StreamReset("broken"))], 1), (BETWEEN, 8)], {0, 9}, 8)
@example([([RunEvent("r", 1, "a", 0, event) for event in (*SLOW, *KEPT)], 1), (MIXED, 3)], {0}, 40)
@example([([RunEvent("r", 1, "a", 0, MEDIA)], 1), ([RunEvent("s", 1, "a", 0, STEPS[0])], 8)], {8}, 8)
@example([([RunEvent("r", 1, "a", 0, call) for call in NAMED], 1), ([RunEvent("r", 1, "a", 0, NAMED[1])], 9)], {0}, 8)
@given(bursts=BURSTS, reads=st.sets(st.integers(0, 99), max_size=6), max_events=st.sampled_from((8, 40)))
def test_a_reader_who_comes_at_any_time_has_the_whole_text_and_nothing_twice(
    bursts: Sequence[tuple[Sequence[RunEvent], int]], reads: set[int], max_events: int
) -> None:
    """A reader that is behind the buffer has the record up to its floor, without answers that were unfinished then."""
    placed = [event for events, times in bursts for event in [*events] * times]
    buffer = EventBuffer(0, max_events=max_events, max_chars=30 if max_events == 8 else 100_000)
    whole: State = {}
    recorded: dict[int, State] = {0: whole}
    seen: dict[str, tuple[int, State]] = {"always": (0, whole), "now and then": (0, whole)}
    for number, event in enumerate(placed):
        whole = fold(whole, [event])
        if isinstance(event.event, TurnFinished | RunFailed | PluginEvent):
            buffer.add_step(event, len(recorded))
            recorded[len(recorded) * STRIDE] = {key: text for key, text in whole.items() if key[1] == "note"}
        else:
            assert buffer.add(event)
        late = number in reads or number == len(placed) - 1
        for name in ("always", *(["now and then", "late"] if late else [])):
            cursor, state = seen.get(name, (buffer.floor, recorded[buffer.floor]))
            if (batch := buffer.after(cursor)) is None:
                cursor, state = buffer.floor, recorded[buffer.floor]
                batch = buffer.after(cursor)
            assert batch is not None
            assert [one.number for one in batch] == sorted({one.number for one in batch})
            assert all(one.number > cursor for one in batch)
            after = (batch[-1].number if batch else cursor, fold(state, [one.event for one in batch]))
            assert after[1] == whole
            if name != "late":
                seen[name] = after
