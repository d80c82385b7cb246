"""Secrets are in no event, however a stream cuts them, and no event is lost or overtaken."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.events import FunctionCallDelta, ReasoningDelta, RunEvent, RunFailed, RunFinished, TextDelta
from jackfield.messages import Usage
from jackfield.secrets import Secret, Secrets
from jackfield_records.hiddenevents import HiddenEvents, hidden_events

KEY = "sk-live-Q7rT2mZx9LpW4vNc8KdB"
MADE = {
    "text": TextDelta,
    "reasoning": ReasoningDelta,
    "call 0": lambda text: FunctionCallDelta(0, "", "", text),
    "call 1": lambda text: FunctionCallDelta(1, "", "", text),
}
FIELD = {"TextDelta": "text", "ReasoningDelta": "text", "FunctionCallDelta": "arguments"}


def secrets() -> Secrets:
    return Secrets([Secret("ACME_KEY", KEY)])


@st.composite
def streams(draw: st.DrawFn) -> list[RunEvent]:
    """Return events of two runs whose texts, interleaved and cut anywhere, contain the key and its beginnings."""
    queues = []
    for run_id in ("a", "b"):
        for name in draw(st.lists(st.sampled_from(sorted(MADE)), unique=True, max_size=3)):
            text = "".join(draw(st.lists(st.sampled_from([KEY, KEY[:5], "sk-", "word ", "é"]), max_size=4)))
            cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
            pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
            queues.append([RunEvent(run_id, 1, "x", 0, MADE[name](piece)) for piece in pieces])
        queues.append([RunEvent(run_id, 2, "x", 0, RunFailed(f"no {KEY}", "E"))] * draw(st.integers(0, 2)))
    events = []
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        events.append(queue.pop(0))
    return events


@example([RunEvent("a", 1, "x", 0, TextDelta(f"{KEY} and sk-"))])
@given(streams())
def test_no_event_has_a_secret_and_none_is_lost(events: list[RunEvent]) -> None:
    hidden = HiddenEvents(secrets())
    told = [one for event in events for one in hidden.feed(event)] + hidden.rest()
    assert told == hidden_events(events, secrets())
    assert hidden.rest() == []
    assert [(one["run_id"], one["event"], one.get("index")) for one in told] == [
        (event.run_id, type(event.event).__name__, getattr(event.event, "index", None)) for event in events
    ]
    before, after = defaultdict[object, str](str), defaultdict[object, str](str)
    parts: defaultdict[object, int] = defaultdict(int)  # a text ends with any other event of its run
    for event, one in zip(events, told, strict=True):
        if isinstance(event.event, RunFailed):
            assert KEY not in one["error"]
            parts[event.run_id] += 1
            continue
        key = (event.run_id, parts[event.run_id], one["event"], one.get("index"))
        before[key] += getattr(event.event, FIELD[one["event"]])
        after[key] += one[FIELD[one["event"]]]
    assert after == {key: secrets().hide(text) for key, text in before.items()}
    assert KEY not in str(told)


@pytest.mark.parametrize("ending", ["of the run", "of another run", "nothing"])
def test_a_text_waits_only_while_it_may_be_a_secret(ending: str) -> None:
    hidden = HiddenEvents(secrets())
    plain, half = (RunEvent("a", 1, "x", 0, TextDelta(text)) for text in ("word", f"word {KEY[:9]}"))
    assert len(hidden.feed(plain)) == 1, "nothing waits without a reason"
    assert hidden.feed(half) == []
    end = RunFinished("finished", (), Usage())
    if ending == "of another run":
        assert hidden.feed(RunEvent("b", 1, "x", 0, end)) == [], "events keep their order"
        told = hidden.feed(RunEvent("a", 1, "x", 0, TextDelta(KEY[9:])))
        assert [one["event"] for one in told] == ["TextDelta", "RunFinished", "TextDelta"]
        assert "".join(one.get("text", "") for one in told) == "word [secret:ACME_KEY]"
        return
    told = hidden.feed(RunEvent("a", 1, "x", 0, end)) if ending == "of the run" else hidden.rest()
    assert told[0]["text"] == f"word {KEY[:9]}"
