"""Laws of the spans of any run: one root, each span ends once, nothing stays, and no text without consent."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from jackfield import FnCallAgent, tool
from jackfield.agents import CancelToken
from jackfield.errors import ModelConnectionError, ModelRequestError
from jackfield.events import ModelEvent, TextDelta
from jackfield.messages import ContentItem, Message
from jackfield.request import ModelFacts
from jackfield.streams import closing
from jackfield.testing import ScriptedModel, Step, answer, calls
from jackfield.work import part_of_run
from jackfield_otel.config import CONTENT_VARIABLE, ContentMode, OtelConfig
from jackfield_otel.observer import OtelObserver
from tests.support.promises import defaults_of

MARK = "whale-7302-lantern"
KEY = "sk-live-Q7rT2mZx9LpW4vNc8KdB"


class Ledger(SpanProcessor):
    """Counts how often each span starts and ends, and keeps the ended ones."""

    def __init__(self) -> None:
        self.started: Counter[int] = Counter()
        self.ended: Counter[int] = Counter()
        self.spans: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: contexts.Context | None = None) -> None:
        self.started[span.get_span_context().span_id] += 1

    def on_end(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        assert context is not None
        self.ended[context.span_id] += 1
        self.spans.append(span)


class Recording:
    """An observer on a real SDK, and all that it records."""

    def __init__(self, content: ContentMode | None = None) -> None:
        self.ledger, self.logs, self.reader = Ledger(), InMemoryLogRecordExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(self.ledger)
        loggers = LoggerProvider(shutdown_on_exit=False)
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.observer = OtelObserver(content, tracer_provider=tracers, meter_provider=meters, logger_provider=loggers)

    def written(self) -> dict[str, str]:
        """Return all that would be exported, as text."""
        metrics = self.reader.get_metrics_data()
        return {
            "spans": "".join(span.to_json() for span in self.ledger.spans),
            "metrics": "" if metrics is None else metrics.to_json(),
            "events": "".join(json.dumps(json.loads(one.to_json())) for one in self.logs.get_finished_logs()),
        }


@tool
async def awaited(word: str) -> str:
    """Work on the loop."""
    with part_of_run("retrieval", "kept", query=word):
        await asyncio.sleep(0)
    return word


@tool
def plain(word: str) -> str:
    """Work in a thread."""
    return word


@tool
def burn(word: str) -> str:
    """Fail."""
    raise RuntimeError(word)


CALLS = st.lists(st.sampled_from(["awaited", "plain", "burn", "clerk", f"made_up_{MARK}"]), min_size=1, max_size=3)
TURNS = st.lists(CALLS, max_size=2)
ENDINGS = st.sampled_from(["answer", "error", "retry", "empty"])


def _last(ending: str) -> list[Step]:
    if ending == "error":
        return [[TextDelta(MARK), ModelRequestError(MARK)]]
    if ending == "retry":
        return [[TextDelta(MARK), ModelConnectionError(MARK)], answer(f"Done: {MARK}.")]
    return [answer(f"Done: {MARK}." if ending == "answer" else "")]


def _calls(names: list[str], text: str = MARK) -> list[ModelEvent]:
    return calls(*((name, {"request" if name == "clerk" else "word": text}) for name in names), text=text)


def _agent(recording: Recording, turns: list[list[str]], ending: str) -> FnCallAgent:
    config = {"model": "scripted", "generate_cfg": {"max_retries": 1, "max_retry_delay": 0.0001}}
    below = ScriptedModel(lambda _: answer(f"I did: {MARK}."))
    clerk = FnCallAgent(
        llm=below, system_message=MARK, name="clerk", description="Works.", observers=[recording.observer]
    )
    model = ScriptedModel([*map(_calls, turns), *_last(ending)], config=config)
    tools = [awaited, plain, burn, clerk.as_tool()]
    return FnCallAgent(tools, model, MARK, name="boss", observers=[recording.observer])


async def _run(agent: FnCallAgent, cancel_at: int, leave_at: int) -> None:
    token = CancelToken()
    with suppress(ModelRequestError, ModelConnectionError):
        async with closing(agent.astream([{"role": "user", "content": MARK}], cancel=token)) as events:
            async for event in events:
                if event.number == cancel_at:
                    token.cancel()
                if event.number == leave_at:
                    return


def _check(ledger: Ledger, *, roots: int) -> None:
    assert ledger.started == ledger.ended
    assert set(ledger.ended.values()) <= {1}
    by_id = {span.get_span_context().span_id: span for span in ledger.spans}  # type: ignore[union-attr]
    assert sum(span.parent is None for span in ledger.spans) == roots
    for span in ledger.spans:
        if span.parent is not None:
            parent = by_id[span.parent.span_id]
            assert parent.get_span_context().trace_id == span.get_span_context().trace_id  # type: ignore[union-attr]
            assert parent.start_time <= span.start_time <= span.end_time <= parent.end_time  # type: ignore[operator]
            if span.name == "retrieval kept":
                assert parent.name == "execute_tool awaited"
            if span.name == "invoke_agent clerk":
                assert parent.name == "execute_tool clerk"
            if span.name.startswith("chat") or span.name.startswith("execute_tool"):
                assert parent.name.startswith("invoke_agent")


@given(TURNS, ENDINGS, st.integers(0, 25), st.integers(0, 25))
def test_each_span_ends_once_below_one_root_however_the_run_ends_and_no_text_is_written(
    turns: list[list[str]], ending: str, cancel_at: int, leave_at: int
) -> None:
    recording = Recording("NO_CONTENT")
    asyncio.run(_run(_agent(recording, turns, ending), cancel_at, leave_at))
    _check(recording.ledger, roots=1)
    assert not recording.observer._runs
    assert trace.get_current_span() is trace.INVALID_SPAN
    for place, text in recording.written().items():
        assert MARK not in text, place


@given(st.lists(st.tuples(TURNS, ENDINGS, st.integers(0, 25)), min_size=2, max_size=5))
@settings(max_examples=settings().max_examples // 4 or 1)
def test_interleaved_runs_of_one_observer_stay_apart(runs: list[tuple[list[list[str]], str, int]]) -> None:
    recording = Recording("NO_CONTENT")

    async def all_runs() -> None:
        await asyncio.gather(*(_run(_agent(recording, turns, end), 0, leave_at) for turns, end, leave_at in runs))

    asyncio.run(all_runs())
    _check(recording.ledger, roots=len(runs))
    assert not recording.observer._runs


# --- content ---

EVERYWHERE = [
    ("NO_CONTENT", False, False),
    ("SPAN_ONLY", True, False),
    ("EVENT_ONLY", False, True),
    ("SPAN_AND_EVENT", True, True),
]
TEXTS = ("gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.definitions")


def _scenario(recording: Recording) -> None:
    asyncio.run(_run(_agent(recording, [["awaited", "burn"]], "answer"), 0, 0))


@contextmanager
def _variable(value: str | None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if value is None:
            patch.delenv(CONTENT_VARIABLE, raising=False)
        else:
            patch.setenv(CONTENT_VARIABLE, value)
        yield


@pytest.mark.parametrize(("mode", "on_spans", "on_events"), EVERYWHERE)
@pytest.mark.parametrize("by_variable", [True, False])
def test_texts_go_where_the_mode_says(mode: ContentMode, on_spans: bool, on_events: bool, by_variable: bool) -> None:
    with _variable(mode.lower() if by_variable else "SPAN_AND_EVENT"):
        recording = Recording(None if by_variable else mode)
    _scenario(recording)
    written = recording.written()
    assert (MARK in written["spans"], MARK in written["events"]) == (on_spans, on_events)
    assert MARK not in written["metrics"]


@pytest.mark.parametrize("value", [None, "", "true", "1", "yes", "SPANS"])
def test_no_text_is_written_unless_one_of_the_four_values_asks_for_it(value: str | None) -> None:
    with _variable(value):
        recording = Recording()
    _scenario(recording)
    assert MARK not in "".join(recording.written().values())


def test_texts_have_the_form_of_the_conventions() -> None:
    recording = Recording("SPAN_AND_EVENT")
    script = [calls(("awaited", {"word": "oak"}), text="I look."), answer("A tree.", reasoning="Hm.")]
    model = ScriptedModel(script, facts=ModelFacts(images=True))
    question = Message("user", [ContentItem(text="What is it?"), ContentItem(image="data:image/png;base64,AAAA")])
    FnCallAgent([awaited], model, "Be brief.", name="boss", observers=[recording.observer]).ask([question])
    chats = [span for span in recording.ledger.spans if span.name == "chat scripted"]
    read = [{name: json.loads(str((span.attributes or {})[name])) for name in TEXTS} for span in chats]
    asked = {
        "role": "user",
        "parts": [
            {"type": "text", "content": "What is it?"},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": ""},
        ],
    }
    call = {"type": "tool_call", "id": "call_1", "name": "awaited", "arguments": '{"word": "oak"}'}
    said = {"role": "assistant", "parts": [{"type": "text", "content": "I look."}, call]}
    assert read[0]["gen_ai.system_instructions"] == [{"type": "text", "content": "Be brief."}]
    assert read[0]["gen_ai.input.messages"] == [asked]
    assert read[0]["gen_ai.output.messages"] == [{**said, "finish_reason": "tool_calls"}]
    assert read[0]["gen_ai.tool.definitions"][0]["name"] == "awaited"
    result = {"type": "tool_call_response", "id": "call_1", "response": "oak"}
    *before, last = read[1]["gen_ai.input.messages"]
    assert last == {"role": "tool", "parts": [result]}
    assert {message["role"] for message in before[1:]} == {"assistant"}
    assert [part for message in before for part in message["parts"]] == [*asked["parts"], *said["parts"]]
    thought = [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "A tree."}]
    assert read[1]["gen_ai.output.messages"] == [{"role": "assistant", "parts": thought, "finish_reason": "stop"}]
    events = [one.log_record for one in recording.logs.get_finished_logs()]
    assert [event.event_name for event in events] == ["gen_ai.client.inference.operation.details"] * 2
    assert [event.span_id for event in events] == [span.get_span_context().span_id for span in chats]  # type: ignore[union-attr]
    tool_span = next(span for span in recording.ledger.spans if span.name == "execute_tool awaited")
    assert (tool_span.attributes or {})["gen_ai.tool.call.result"] == "oak"


def test_no_secret_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", KEY)
    own, address = "pw-9Zk3Qm7Lx2Vt5Rb8", "https://bob:hunter2-Kq8z@db.example.org/x?token=Zm9vYmFyYmF6cXV4MTIz"
    said = f"{MARK} {KEY} {own} {address}"
    recording = Recording("SPAN_AND_EVENT")
    steps = [_calls(["awaited", "burn"], said), answer(said)]
    model = ScriptedModel(lambda _: steps.pop(0))  # a script is a setting, whose texts would count as secrets
    model.config = model.config.model_copy(update={"api_key": own})
    FnCallAgent([awaited, burn], model, MARK, name="boss", observers=[recording.observer]).ask(said)
    for place in ("spans", "events"):
        written = recording.written()[place]
        assert written.count(MARK) >= 4
        for secret in (KEY, own, "hunter2-Kq8z", "Zm9vYmFyYmF6cXV4MTIz"):
            assert secret not in written, place


# --- nothing to write to ---


def test_without_a_provider_nothing_is_kept_and_nothing_is_surrounded() -> None:
    observer = OtelObserver()
    agent = FnCallAgent([awaited], ScriptedModel([answer("Done.")]), name="boss", observers=[observer])

    async def read() -> None:
        async with closing(agent.astream([{"role": "user", "content": "Hi"}])) as events:
            async for _ in events:
                assert not observer._runs

    asyncio.run(read())


def test_a_caller_that_decided_against_sampling_is_obeyed_and_its_decision_travels_on() -> None:
    recording = Recording("SPAN_AND_EVENT")
    not_sampled = trace.SpanContext(0xA, 0xB, is_remote=True, trace_flags=trace.TraceFlags(0))
    inside: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        inside.append(f"{trace.get_current_span().get_span_context().trace_id:x}")
        inside.append(dict(recording.observer.headers())["traceparent"])
        return ""

    agent = FnCallAgent([look], ScriptedModel([calls(("look", {})), answer("Done.")]), observers=[recording.observer])

    async def run() -> None:
        context = trace.set_span_in_context(trace.NonRecordingSpan(not_sampled))
        token = contexts.attach(context)
        await agent.aask("Hi")
        contexts.detach(token)

    asyncio.run(run())
    assert recording.ledger.spans == []
    assert inside[0] == "a"
    assert inside[1].startswith(f"00-{0xA:032x}-")
    assert inside[1].endswith("-00")


def test_the_settings_have_these_defaults() -> None:
    defaults = {"content": None, "propagate": True, "chunk_times": False}
    assert defaults_of(OtelConfig, defaults, {}) == defaults
