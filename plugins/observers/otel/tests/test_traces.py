"""Runs as traces and metrics, as a real SDK exports them to a real receiver."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from contextvars import copy_context
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as contexts

from jackfield import FnCallAgent, tool
from jackfield.agents import Agent, CancelToken, Event, ParentRun, Run, run_below
from jackfield.errors import ModelConnectionError, ModelRequestError
from jackfield.events import (
    ModelFinished,
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
from jackfield.messages import FunctionCall, Message, Usage
from jackfield.plugins import default_host
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.work import part_of_run
from jackfield_otel.observer import OtelObserver
from jackfield_otel.pauses import Pauses, keys_of_calls
from jackfield_otel.run_trace import Inside
from jackfield_testkit.embeddings import DIMENSION, embeddings_of
from jackfield_testkit.server import FakeOpenAI

from .conftest import SDK, ReceivedSpan, Receiver

Received = tuple[Receiver, SDK]
ASK = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def sdk(received: Received) -> SDK:
    return received[1]


@pytest.fixture
def receiver(received: Received) -> Receiver:
    return received[0]


def _tools(sdk: SDK) -> list[Any]:
    """Return tools that make spans of their own: in a thread, on the loop, in steps, and one that fails."""

    @tool
    def plain(word: str) -> str:
        """Work in a thread."""
        with sdk.tracer.start_as_current_span("own plain"):
            return word

    @tool
    async def awaited(word: str) -> str:
        """Work on the loop."""
        with sdk.tracer.start_as_current_span("own awaited"):
            await asyncio.sleep(0.001)
            return word

    @tool
    def in_steps(word: str) -> Iterator[str]:
        """Work in steps."""
        with sdk.tracer.start_as_current_span("own in_steps"):
            yield "half"
        yield word

    @tool
    def burn(word: str) -> str:
        """Fail."""
        raise RuntimeError(word)

    return [plain, awaited, in_steps, burn]


def _agent(sdk: SDK, *script: Any, observer: OtelObserver | None = None, **options: Any) -> FnCallAgent:
    options = {"name": "helper", **options}
    return FnCallAgent(_tools(sdk), ScriptedModel(list(script)), observers=[observer or sdk.observer()], **options)


def _one(receiver: Receiver, name: str) -> ReceivedSpan:
    spans = [span for span in receiver.spans() if span.name == name]
    assert len(spans) == 1, receiver.tree()
    return spans[0]


# --- the tree ---


def test_a_run_is_a_tree_with_the_spans_of_its_tools_below_their_calls(sdk: SDK, receiver: Receiver) -> None:
    wanted = [(name, {"word": "a"}) for name in ("plain", "awaited", "in_steps")]
    result = _agent(sdk, calls(*wanted), answer("Done.")).ask("Hi")
    assert receiver.tree() == [
        "invoke_agent helper",
        "  chat scripted",
        "  execute_tool plain",
        "    own plain",
        "  execute_tool awaited",
        "    own awaited",
        "  execute_tool in_steps",
        "    own in_steps",
        "  chat scripted",
    ]
    root = _one(receiver, "invoke_agent helper")
    assert len({span.trace for span in receiver.spans()}) == 1
    assert (root.parent, root.kind, root.error) == ("", "internal", False)
    assert root.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.request.model": "scripted",
        "gen_ai.provider.name": "scripted",
        "gen_ai.usage.input_tokens": 2,
        "gen_ai.usage.output_tokens": 2,
        "jackfield.run.id": result.run_id,
        "jackfield.run.depth": 0,
        "jackfield.run.stop_reason": "finished",
    }


def test_requests_have_their_options_and_answers_their_facts(sdk: SDK, receiver: Receiver) -> None:
    usage = Usage(prompt_tokens=7, completion_tokens=5, cached_tokens=3, reasoning_tokens=2)
    step = [TextDelta("Hello"), UsageReported(usage), ModelFinished("stop", "scripted-2026", "resp_1")]
    _agent(sdk, step).ask("Hi", config={"temperature": 0.5, "max_tokens": 9, "stop": ["END"]})
    chat = _one(receiver, "chat scripted")
    assert chat.kind == "client"
    first_s = chat.attributes.pop("gen_ai.response.time_to_first_chunk")
    assert 0 < first_s < (chat.end - chat.start) / 1e9
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.agent.name": "helper",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.response.model": "scripted-2026",
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 2,
    }


OPTIONS: dict[str, tuple[Any, str, Any]] = {
    "temperature": (0.25, "temperature", 0.25), "top_p": (0.5, "top_p", 0.5), "top_k": (7, "top_k", 7),
    "max_tokens": (9, "max_tokens", 9), "seed": (3, "seed", 3), "reasoning_effort": ("low", "reasoning.level", "low"),
    "presence_penalty": (0.75, "presence_penalty", 0.75), "frequency_penalty": (1.25, "frequency_penalty", 1.25),
    "stop": (["END"], "stop_sequences", ["END"]),
}  # fmt: skip


def test_each_option_and_each_kind_of_usage_has_its_own_attribute(sdk: SDK, receiver: Receiver) -> None:
    usage = Usage(
        prompt_tokens=70, completion_tokens=5, cached_tokens=11, cache_write_tokens=13, reasoning_tokens=2,
        cost=Decimal("0.25"), currency="EUR",
    )  # fmt: skip
    step = [TextDelta("{}"), UsageReported(usage), ModelFinished("stop", "scripted-2026")]
    _agent(sdk, step).ask(
        "Hi",
        config={
            **{name: value for name, (value, _, _) in OPTIONS.items()},
            "response_format": {"type": "json_object"},
        },
    )
    attributes = _one(receiver, "chat scripted").attributes
    for _, name, value in OPTIONS.values():
        assert attributes[f"gen_ai.request.{name}"] == value
    assert attributes["gen_ai.output.type"] == "json"
    for span in (attributes, _one(receiver, "invoke_agent helper").attributes):
        assert {name: span[name] for name in span if "usage" in name} == {
            "gen_ai.usage.input_tokens": 70,
            "gen_ai.usage.output_tokens": 5,
            "gen_ai.usage.cache_read.input_tokens": 11,
            "gen_ai.usage.cache_write.input_tokens": 13,
            "gen_ai.usage.reasoning.output_tokens": 2,
            "jackfield.usage.cost": 0.25,
            "jackfield.usage.currency": "EUR",
        }
    ((labels, count, _),) = receiver.metrics()["gen_ai.client.operation.duration"]
    assert count == 1
    assert labels["gen_ai.response.model"] == "scripted-2026"
    assert (labels["gen_ai.request.model"], labels["gen_ai.provider.name"]) == ("scripted", "scripted")


@pytest.mark.parametrize("way", ["ask", "stream", "aask", "astream"])
def test_the_span_of_the_caller_is_the_parent_whatever_the_way(way: str, sdk: SDK, receiver: Receiver) -> None:
    agent = _agent(sdk, answer("Done."))

    async def on_the_loop() -> None:
        if way == "aask":
            await agent.aask("Hi")
        else:
            async with closing(agent.astream(ASK)) as events:
                async for _ in events:
                    assert trace.get_current_span() is caller

    with sdk.tracer.start_as_current_span("caller") as caller:
        if way == "ask":
            agent.ask("Hi")
        elif way == "stream":
            for _ in agent.stream("Hi"):
                assert trace.get_current_span() is caller
        else:
            asyncio.run(on_the_loop())
    assert receiver.tree() == ["caller", "  invoke_agent helper", "    chat scripted"]


def test_an_agent_that_is_a_tool_is_below_its_call(sdk: SDK, receiver: Receiver) -> None:
    clerk = _agent(sdk, calls(("plain", {"word": "a"})), answer("Done."), name="clerk", description="Works.")
    model = ScriptedModel([calls(("clerk", {"request": "Work."})), answer("Good.")])
    FnCallAgent([clerk.as_tool()], model, name="boss", observers=[sdk.observer()]).ask("Hi")
    assert receiver.tree() == [
        "invoke_agent boss",
        "  chat scripted",
        "  execute_tool clerk",
        "    invoke_agent clerk",
        "      chat scripted",
        "      execute_tool plain",
        "        own plain",
        "      chat scripted",
        "  chat scripted",
    ]
    assert _one(receiver, "invoke_agent clerk").attributes["jackfield.run.depth"] == 1
    assert len({span.trace for span in receiver.spans()}) == 1


class Asks(Agent):
    """Asks another agent itself, without a tool."""

    def __init__(self, other: Agent, **options: Any) -> None:
        super().__init__(**options)
        self.other = other

    async def events(self, run: Run) -> AsyncIterator[Event]:
        async with closing(run_below(self.other, ASK, ParentRun(run, run.start.spent))) as events:
            async for event in events:
                yield event
        yield RunFinished("finished", (Message("assistant", "Asked."),), Usage())


def test_an_agent_that_is_asked_without_a_tool_is_below_the_agent(sdk: SDK, receiver: Receiver) -> None:
    Asks(_agent(sdk, answer("Done.")), name="outer", observers=[sdk.observer()]).ask("Hi")
    assert receiver.tree() == ["invoke_agent outer", "  invoke_agent helper", "    chat scripted"]


def test_each_agent_that_takes_over_is_below_the_run_until_the_next_one_does(sdk: SDK, receiver: Receiver) -> None:
    chief = _agent(sdk, answer("Done."), name="chief", description="Decides.")
    script = [calls(("plain", {"word": "a"})), calls(("transfer_to_chief", {}))]
    clerk = FnCallAgent(_tools(sdk), ScriptedModel(script), name="clerk", description="Works.", handoffs=[chief])
    _agent(sdk, calls(("transfer_to_clerk", {})), name="boss", handoffs=[clerk]).ask("Hi")
    assert receiver.tree() == [
        "invoke_agent boss",
        "  chat scripted",
        "  execute_tool transfer_to_clerk",
        "  invoke_agent clerk",
        "    chat scripted",
        "    execute_tool plain",
        "      own plain",
        "    chat scripted",
        "    execute_tool transfer_to_chief",
        "  invoke_agent chief",
        "    chat scripted",
    ]
    assert _one(receiver, "invoke_agent clerk").end <= _one(receiver, "invoke_agent chief").start
    last = [span for span in receiver.spans() if span.name == "chat scripted"][-1]
    assert last.attributes["gen_ai.agent.name"] == "chief"


def test_a_search_is_a_span_with_its_counts(sdk: SDK, receiver: Receiver) -> None:
    @tool
    async def search(query: str) -> str:
        """Search."""
        with part_of_run("retrieval", "kept", query=query) as work:
            with sdk.tracer.start_as_current_span("own"):
                work.facts.update(passages=3, documents=2)
            return "found"

    model = ScriptedModel([calls(("search", {"query": "a"})), answer("Done.")])
    FnCallAgent([search], model, name="helper", observers=[sdk.observer()]).ask("Hi")
    assert receiver.tree()[2:5] == ["  execute_tool search", "    retrieval kept", "      own"]
    assert _one(receiver, "retrieval kept").attributes == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "kept",
        "jackfield.retrieval.passages": 3,
        "jackfield.retrieval.documents": 2,
    }


def test_a_request_to_an_embedder_is_a_client_span_below_its_search(
    sdk: SDK, receiver: Receiver, tmp_path: Path
) -> None:
    """Searchers work in threads, and the embedder on an event loop of its own."""
    file = tmp_path / "heron.md"
    file.write_text("# Herons\n\nThe heron is a long-legged freshwater bird.\n" * 3)
    with FakeOpenAI() as server:
        server.respond(embeddings_of)
        embedder = {"base_url": server.url, "api_key": "sk-test"}
        searcher = {"name": "vector_search", "embedding_model": "openai:m", "embedder_settings": embedder}
        retrieval = {"name": "retrieval", "rag_searchers": [searcher], "top_k": 1}
        call = calls(("retrieval", {"query": "heron", "files": [str(file)]}))
        model = ScriptedModel([call, answer("A bird.")])
        agent = FnCallAgent([retrieval], model, name="helper", files=[str(file)], observers=[sdk.observer()])
        agent.ask("What is a heron?")
        headers = [request.headers.get("traceparent", "") for request in server.requests]
    spans = receiver.spans()
    search = _one(receiver, "retrieval retrieval")
    documents, question = [span for span in spans if span.name == "embeddings m"]
    assert {span.parent for span in (documents, question)} == {search.id}
    assert [header.split("-")[1:3] for header in headers] == [[one.trace, one.id] for one in (documents, question)]
    assert {span.kind for span in (documents, question)} == {"client"}
    assert question.attributes == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.embeddings.dimension.count": DIMENSION,
        "gen_ai.usage.input_tokens": 2,
        "jackfield.embeddings.texts": 1,
    }
    labels = {"gen_ai.operation.name": "embeddings", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m"}
    metrics = receiver.metrics()
    assert [count for got, count, _ in metrics["gen_ai.client.operation.duration"] if got == labels] == [2]
    tokens = {**labels, "gen_ai.token.type": "input"}
    used = [one.attributes["gen_ai.usage.input_tokens"] for one in (documents, question)]
    assert [total for got, _, total in metrics["gen_ai.client.token.usage"] if got == tokens] == [sum(used)]


def test_an_embedder_that_fails_has_its_error_on_the_span_and_in_the_metrics(sdk: SDK, receiver: Receiver) -> None:
    @tool
    async def search(query: str) -> str:
        """Search."""
        with part_of_run("embedding", "azure", model="v4", texts=2):
            raise ModelConnectionError("no route to private.example", backend="azure")

    model = ScriptedModel([calls(("search", {"query": "a"})), answer("Done.")])
    FnCallAgent([search], model, name="helper", observers=[sdk.observer()]).ask("Hi")
    span = _one(receiver, "embeddings v4")
    assert (span.error, span.text) == (True, "")
    labels = {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.request.model": "v4",
        "error.type": "ModelConnectionError",
    }
    assert span.attributes == {**labels, "jackfield.embeddings.texts": 2}
    metrics = receiver.metrics()
    assert [got for got, _, _ in metrics["gen_ai.client.operation.duration"] if "error.type" in got] == [labels]
    assert [got for got, _, _ in metrics["gen_ai.client.token.usage"] if "error.type" in got] == []


def test_work_of_a_kind_that_is_not_known_has_no_span(sdk: SDK, receiver: Receiver) -> None:
    @tool
    async def paint(subject: str) -> str:
        """Paint."""
        with part_of_run("painting", "brush"), sdk.tracer.start_as_current_span("own"):  # type: ignore[arg-type]
            return subject

    model = ScriptedModel([calls(("paint", {"subject": "a"})), answer("Done.")])
    FnCallAgent([paint], model, name="helper", observers=[sdk.observer()]).ask("Hi")
    assert receiver.tree()[2:4] == ["  execute_tool paint", "    own"]


# --- what goes wrong ---


def test_a_call_that_fails_or_is_refused_has_its_error_and_no_text(sdk: SDK, receiver: Receiver) -> None:
    refuses = {"ask": "read_only", "by": lambda call, context: call.name == "burn"}
    wanted = calls(("burn", {"word": "hush"}), ("plain", {"word": "hush"}), ("made_up_hush", {}))
    _agent(sdk, wanted, answer("No."), approve=refuses).ask("Hi")
    failed = {
        span.name: (span.error, span.attributes["error.type"], span.text) for span in receiver.spans() if span.error
    }
    assert failed == {
        "execute_tool burn": (True, "RuntimeError", ""),
        "execute_tool plain": (True, "NotAllowed", ""),
        "execute_tool unknown": (True, "ToolServiceError", ""),
    }
    assert not _one(receiver, "invoke_agent helper").error
    assert b"hush" not in b"".join(receiver.bodies["/v1/traces"])


def test_a_run_that_fails_fails_with_its_request(sdk: SDK, receiver: Receiver) -> None:
    with suppress(ModelRequestError):
        _agent(sdk, [TextDelta("Hal"), ModelRequestError("no hush")]).ask("Hi")
    for name in ("chat scripted", "invoke_agent helper"):
        span = _one(receiver, name)
        assert (span.error, span.attributes["error.type"], span.text) == (True, "ModelRequestError", "")
    assert _one(receiver, "invoke_agent helper").attributes["jackfield.run.stop_reason"] == "failed"


def test_retries_are_events_of_one_request(sdk: SDK, receiver: Receiver) -> None:
    model = ScriptedModel(
        [[TextDelta("Hal"), ModelConnectionError("hush")], answer("Done.")],
        config={"model": "scripted", "generate_cfg": {"max_retries": 1, "max_retry_delay": 0.001}},
    )
    FnCallAgent(llm=model, name="helper", observers=[sdk.observer()]).ask("Hi")
    chat = _one(receiver, "chat scripted")
    assert [name for name, _ in chat.events] == ["jackfield.retry", "jackfield.stream_reset"]
    assert chat.events[0][1]["attempt"] == 1
    assert not chat.error


@pytest.mark.parametrize("ending", ["cancelled", "left"])
def test_a_run_that_is_stopped_inside_of_a_call_ends_all_spans(ending: str, sdk: SDK, receiver: Receiver) -> None:
    token, begun = CancelToken(), asyncio.Event()

    @tool
    async def hang() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    agent = FnCallAgent([hang], ScriptedModel([calls(("hang", {}))]), name="helper", observers=[sdk.observer()])

    async def read() -> None:
        async for _ in agent.astream(ASK, cancel=token):
            pass

    async def stop() -> None:
        task = asyncio.create_task(read())
        await begun.wait()
        if ending == "cancelled":
            token.cancel()
        else:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(stop())
    assert receiver.tree() == ["invoke_agent helper", "  chat scripted", "  execute_tool hang"]
    root, call = _one(receiver, "invoke_agent helper"), _one(receiver, "execute_tool hang")
    assert root.attributes["jackfield.run.stop_reason"] == ("cancelled" if ending == "cancelled" else "abandoned")
    assert not root.error
    assert call.attributes["error.type"] == ("Stopped" if ending == "cancelled" else "abandoned")


@pytest.mark.parametrize("chunk_times", [False, True])
def test_the_first_piece_is_that_of_the_answer_that_counts(
    sdk: SDK, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, *, chunk_times: bool
) -> None:
    times = iter(range(1000))
    clock = SimpleNamespace(perf_counter=lambda: float(next(times)), time_ns=time.time_ns)
    monkeypatch.setattr("jackfield_otel.run_trace.time", clock)
    observer = OtelObserver(tracer_provider=sdk.tracers, meter_provider=sdk.meters, chunk_times=chunk_times)
    events = (
        RunStarted(()),
        TurnStarted(1),
        TextDelta("Oa"),
        StreamReset("broken"),
        TextDelta("An "),
        TextDelta("oak."),
    )
    for event in (*events, TurnFinished(1, (), Usage()), RunFinished("finished", (), Usage())):
        observer.observe(RunEvent("reset", 1, "helper", 0, event))
    (_, count, seconds), *_ = receiver.metrics()["gen_ai.client.operation.time_to_first_chunk"]
    assert (count, seconds) == (1, 2.0)  # asked at 1, withdrawn at 2, the first piece at 3


@pytest.mark.parametrize("receives", ["spans", "metrics"])
def test_one_provider_is_enough(receives: str, sdk: SDK, receiver: Receiver) -> None:
    provider = {"tracer_provider": sdk.tracers} if receives == "spans" else {"meter_provider": sdk.meters}
    observer = OtelObserver(**provider)  # type: ignore[arg-type]
    _agent(sdk, answer("Hello."), observer=observer).ask("Hi")
    assert (len(receiver.spans()), len(receiver.metrics())) == ((2, 0) if receives == "spans" else (0, 4))


@pytest.mark.parametrize(("stops", "error"), [("cancelled", "cancelled"), ("left", "abandoned"), ("failed", "E")])
def test_a_request_that_a_run_ends_in_has_the_reason_as_its_error(
    stops: str, error: str, sdk: SDK, receiver: Receiver
) -> None:
    ends = {
        "cancelled": RunFinished("cancelled", (), Usage()),
        "left": RunFailed("", "GeneratorExit"),
        "failed": RunFailed("", "E"),
    }
    observer = sdk.observer()
    for event in (RunStarted(()), TurnStarted(1), TextDelta("Hal"), ends[stops]):
        observer.observe(RunEvent(f"ends in an answer {stops}", 1, "helper", 0, event))
    span = _one(receiver, "chat")
    assert (span.error, span.attributes["error.type"]) == (True, error)
    ((labels, count, _),) = receiver.metrics()["gen_ai.client.operation.duration"]
    assert (labels["error.type"], count) == (error, 1)


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("acme@models.example.org", ("models.example.org", None)),
        ("acme@[::1]:8443", ("::1", 8443)),
        ("acme@models.example.org:99999", ("models.example.org", None)),
        ("acme", (None, None)),
    ],
)
def test_the_server_of_a_request_is_its_host_and_its_port(
    server: str, address: tuple[str | None, int | None], sdk: SDK, receiver: Receiver
) -> None:
    observer = sdk.observer()
    request = ChatRequest(messages=(Message("user", "Hi"),), model="m", server=server)
    for event in (RunStarted(()), TurnStarted(1)):
        observer.observe(RunEvent(server, 1, "helper", 0, event))
    observer.observe_request(server, request)
    observer.observe(RunEvent(server, 1, "helper", 0, RunFinished("finished", (), Usage())))
    attributes = _one(receiver, "chat m").attributes
    assert (attributes.get("server.address"), attributes.get("server.port")) == address


def test_baggage_is_neither_sent_nor_recorded(sdk: SDK) -> None:
    """It may be private."""
    observer = sdk.observer()
    token = contexts.attach(baggage.set_baggage("user", "ada"))
    try:
        with sdk.tracer.start_as_current_span("caller"):
            assert set(observer.headers()) == {"traceparent"}
            silent = OtelObserver(propagate=False, tracer_provider=sdk.tracers)
            assert silent.headers() == {}, "its setting says so"
            observer.observe(RunEvent("with baggage", 1, "helper", 0, RunStarted(())))
            assert set(observer.trace_of("with baggage")) == {"traceparent"}
    finally:
        contexts.detach(token)


def test_a_generator_that_the_garbage_collector_closes_leaves_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    """It is closed in another context, from which nothing can be detached."""
    for kind in (GeneratorExit, None):
        inside = Inside(contexts.set_value("key", "value"))
        copy_context().run(inside.__enter__)
        inside.__exit__(kind, None, None)
        assert bool(caplog.records) == (kind is None)
    assert contexts.get_value("key") is None


def test_an_id_that_cannot_be_sent_costs_no_other_span(sdk: SDK, receiver: Receiver) -> None:
    observer = sdk.observer()
    finish = ModelFinished("stop", model="m\ud800", response_id="r\ud800")
    message = Message("function", "x", name="f", extra={"function_id": "c\ud800"})
    result = ToolFinished(0, "c\ud800", message, 0.1)
    end = RunFinished("finished", (), Usage())
    for event in (RunStarted(()), TurnStarted(1), finish, TurnFinished(1, (), Usage()), result, end):
        observer.observe(RunEvent("half a pair", 1, "helper", 0, event))
    root, chat, call = receiver.spans()
    assert (root.name, call.attributes["gen_ai.tool.call.id"]) == ("invoke_agent helper", "c\\ud800")
    assert (chat.attributes["gen_ai.response.model"], chat.attributes["gen_ai.response.id"]) == ("m\\ud800", "r\\ud800")


@pytest.mark.parametrize("model", ["other", "scripted"])
def test_a_request_has_the_model_and_the_provider_that_it_is_sent_to(model: str, sdk: SDK, receiver: Receiver) -> None:
    """After a hand-off, they are not those of the agent that began the run."""
    observer, run_id = sdk.observer(), f"handed over to {model}"
    observer.prepare(FnCallAgent(llm=ScriptedModel([]), name="helper"))
    for event in (RunStarted(()), TurnStarted(1)):
        observer.observe(RunEvent(run_id, 1, "helper", 0, event))
    request = ChatRequest(messages=(Message("user", "Hi"),), model=model, server="azure@models.example.org:8443")
    observer.observe_request(run_id, request)
    for event in (TurnFinished(1, (), Usage()), RunFinished("finished", (), Usage())):
        observer.observe(RunEvent(run_id, 1, "helper", 0, event))
    chat = _one(receiver, f"chat {model}")
    expected = {
        "gen_ai.request.model": model,
        "gen_ai.provider.name": "azure.ai.openai",
        "server.address": "models.example.org",
        "server.port": 8443,
    }
    ((labels, _, _),) = receiver.metrics()["gen_ai.client.operation.duration"]
    for attributes in (chat.attributes, labels):
        assert {name: attributes[name] for name in expected} == expected


def test_options_and_costs_of_zero_are_shown(sdk: SDK, receiver: Receiver) -> None:
    names = ("temperature", "seed", "presence_penalty", "frequency_penalty")
    step = [TextDelta("Done."), UsageReported(Usage(prompt_tokens=1, cost=Decimal(0))), ModelFinished("stop")]
    _agent(sdk, step).ask("Hi", config=dict.fromkeys(names, 0))
    attributes = _one(receiver, "chat scripted").attributes
    assert {name: attributes[f"gen_ai.request.{name}"] for name in names} == dict.fromkeys(names, 0)
    assert (attributes["jackfield.usage.cost"], attributes["jackfield.usage.currency"]) == (0, "")


def test_the_time_between_pieces_is_that_since_the_piece_before(
    sdk: SDK, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(1000))
    clock = SimpleNamespace(perf_counter=lambda: float(next(times)), time_ns=time.time_ns)
    monkeypatch.setattr("jackfield_otel.run_trace.time", clock)
    observer = OtelObserver(tracer_provider=sdk.tracers, meter_provider=sdk.meters, chunk_times=True)
    pieces = [TextDelta("withdrawn"), TextDelta("withdrawn"), StreamReset("broken"), *[TextDelta("a")] * 4]
    for event in (RunStarted(()), TurnStarted(1), *pieces, TurnFinished(1, (), Usage())):
        observer.observe(RunEvent("pieces", 1, "helper", 0, event))
    ((_, count, seconds),) = receiver.metrics()["gen_ai.client.operation.time_per_output_chunk"]
    assert (count, seconds) == (3, 3.0)


# --- pauses ---


@pytest.mark.parametrize("recorded", [True, False])
def test_a_resumed_run_links_to_the_span_that_paused(
    recorded: bool, sdk: SDK, receiver: Receiver, tmp_path: Path
) -> None:
    store = default_host().load("store", "sqlite")(path=str(tmp_path / "runs.db")) if recorded else None

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    def agent(*script: Any) -> FnCallAgent:
        return FnCallAgent([pay], ScriptedModel(list(script)), name="helper", store=store, observers=[sdk.observer()])

    paused = agent(calls(("pay", {"amount": 3}))).ask("Pay.")
    assert paused.stop_reason == "approval_needed"
    approvals = dict.fromkeys(paused.waiting, True)
    if recorded:
        agent(answer("Paid.")).resume(paused.run_id, approvals=approvals)
    else:
        agent(answer("Paid.")).ask([], history=paused, resume=approvals)
    before, after = [span for span in receiver.spans() if span.name == "invoke_agent helper"]
    assert before.attributes["jackfield.run.stop_reason"] == "approval_needed"
    assert after.links == [before.id]
    assert after.trace != before.trace
    assert (after.attributes["jackfield.run.id"] == before.attributes["jackfield.run.id"]) == recorded


def test_the_oldest_paused_runs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_otel.pauses.MAX_REMEMBERED", 2)
    pauses = Pauses()
    for number, run_id in enumerate(("one", "two", "one", "three"), start=1):
        pauses.remember([run_id], trace.SpanContext(trace_id=number, span_id=number, is_remote=False))
    linked = {name: [link.context.trace_id for link in pauses.links_to(name, [])] for name in ("one", "two", "three")}
    assert linked == {"one": [3], "two": [], "three": [4]}


WAITING = Message("assistant", "", function_call=FunctionCall("pay", '{"amount": 3}'), extra={"function_id": "c1"})
CONTINUED: dict[str, tuple[str, tuple[Message, ...], bool]] = {
    "by its id": ("paused", (), True),
    "by its call": ("new", (Message("user", "Pay."), WAITING), True),
    "by one of its calls": ("new", (WAITING.replace(extra={"function_id": "c0"}), WAITING), True),
    "with an answered call": (
        "new", (WAITING, Message("function", "paid", name="pay", extra={"function_id": "c1"})), False,
    ),
    "with another id of the call": ("new", (WAITING.replace(extra={"function_id": "c2"}),), False),
    "with other arguments": ("new", (WAITING.replace(function_call=FunctionCall("pay", '{"amount": 4}')),), False),
    "with another tool": ("new", (WAITING.replace(function_call=FunctionCall("buy", '{"amount": 3}')),), False),
    "with a question": ("new", (WAITING, Message("user", "And now?")), False),
    "without messages": ("new", (), False),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CONTINUED))
def test_a_run_links_to_the_paused_one_by_its_id_or_by_a_call_that_waited(name: str) -> None:
    run_id, messages, is_linked = CONTINUED[name]
    pauses = Pauses()
    assert pauses.links_to(run_id, messages) == []
    span = trace.SpanContext(trace_id=7, span_id=7, is_remote=False)
    pauses.remember(["paused", *keys_of_calls([("c1", FunctionCall("pay", '{"amount": 3}'))])], span)
    assert [link.context for link in pauses.links_to(run_id, messages)] == ([span] if is_linked else [])


def test_a_run_and_its_requests_have_the_conversation_that_they_belong_to(sdk: SDK, receiver: Receiver) -> None:
    for session in ("ada", ""):
        _agent(sdk, calls(("plain", {"word": "oak"})), answer("A tree.")).ask("Hi", session=session)
    spans = [span for span in receiver.spans() if span.name.startswith(("invoke_agent", "chat"))]
    conversations = [span.attributes.get("gen_ai.conversation.id") for span in spans]
    assert conversations == ["ada"] * 3 + [None] * 3


def test_a_run_that_has_finished_is_not_remembered(sdk: SDK, receiver: Receiver) -> None:
    """A run of its id that begins later continues nothing."""
    observer = sdk.observer()
    for reason in ("finished", "turn_limit", "finished"):
        for event in (RunStarted(()), RunFinished(reason, (), Usage())):
            observer.observe(RunEvent("not remembered", 1, "helper", 0, event))
    first, second, third = receiver.spans()
    assert (first.links, second.links, third.links) == ([], [], [second.id])


def test_a_turn_that_a_kind_of_agent_does_not_end_ends_with_the_next(sdk: SDK, receiver: Receiver) -> None:
    observer = sdk.observer()
    end = RunFinished("finished", (), Usage())
    for event in (RunStarted(()), TurnStarted(1), TurnStarted(2), end):
        observer.observe(RunEvent("two turns", 1, "helper", 0, event))
    assert [span.name.split()[0] for span in receiver.spans()] == ["invoke_agent", "chat", "chat"]


def test_a_run_that_continues_nothing_has_no_link(sdk: SDK, receiver: Receiver) -> None:
    for _ in range(2):
        with suppress(ModelRequestError):
            _agent(sdk, [ModelRequestError("no")]).ask("Hi")
    assert [span.links for span in receiver.spans()] == [[]] * 4


# --- many runs ---


def test_interleaved_runs_have_a_trace_each_and_leave_nothing(sdk: SDK, receiver: Receiver) -> None:
    observer = sdk.observer()

    async def one(number: int) -> str:
        script = [calls(*[("awaited", {"word": str(number)})] * 3), answer("Done.")]
        return (await _agent(sdk, *script, observer=observer).aask(f"Question {number}")).run_id

    async def all_runs() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(20)))

    run_ids = asyncio.run(all_runs())
    spans = receiver.spans()
    by_id = {span.id: span for span in spans}
    roots = [span for span in spans if not span.parent]
    assert {span.attributes["jackfield.run.id"] for span in roots} == set(run_ids)
    assert len(spans) == len(by_id) == 20 * (1 + 2 + 3 + 3)
    for span in spans:
        if span.parent:
            parent = by_id[span.parent]
            assert parent.trace == span.trace
            assert parent.start <= span.start <= span.end <= parent.end
            assert span.name != "own awaited" or parent.name == "execute_tool awaited"
    assert not observer._runs
    assert trace.get_current_span() is trace.INVALID_SPAN


# --- metrics ---


def test_runs_are_measured(sdk: SDK, receiver: Receiver) -> None:
    _agent(sdk, calls(("plain", {"word": "a"}), ("burn", {"word": "a"})), answer("Done.")).ask("Hi")
    with suppress(ModelRequestError):
        _agent(sdk, [ModelRequestError("no")]).ask("Hi")
    metrics = receiver.metrics()
    assert set(metrics) == {
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
    }
    tokens = {its["gen_ai.token.type"]: (count, total) for its, count, total in metrics["gen_ai.client.token.usage"]}
    assert tokens == {"input": (2, 2), "output": (2, 2)}
    requests = {its.get("error.type", ""): count for its, count, _ in metrics["gen_ai.client.operation.duration"]}
    assert requests == {"": 2, "ModelRequestError": 1}
    tools = {
        its["gen_ai.tool.name"]: its.get("error.type", "") for its, _, _ in metrics["gen_ai.execute_tool.duration"]
    }
    assert tools == {"plain": "", "burn": "RuntimeError"}
    runs = {
        its["jackfield.run.stop_reason"]: (its.get("error.type"), count)
        for its, count, _ in metrics["gen_ai.invoke_agent.duration"]
    }
    assert runs == {"finished": (None, 1), "failed": ("ModelRequestError", 1)}


TIMES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
PIECES = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


def test_each_metric_has_the_unit_and_the_boundaries_of_the_conventions(sdk: SDK, receiver: Receiver) -> None:
    observer = OtelObserver(tracer_provider=sdk.tracers, meter_provider=sdk.meters, chunk_times=True)
    _agent(sdk, calls(("plain", {"word": "a"})), answer("a" * 21), observer=observer).ask("Hi")
    assert receiver.scales() == {
        "gen_ai.client.token.usage": ("{token}", tuple(4**power for power in range(14))),
        "gen_ai.client.operation.duration": ("s", TIMES),
        "gen_ai.client.operation.time_to_first_chunk": ("s", PIECES),
        "gen_ai.client.operation.time_per_output_chunk": ("s", PIECES),
        "gen_ai.execute_tool.duration": ("s", TIMES),
        "gen_ai.invoke_agent.duration": ("s", TIMES),
    }


def test_the_time_between_pieces_is_measured_if_wanted(sdk: SDK, receiver: Receiver) -> None:
    def ask(**settings: Any) -> None:
        observer = OtelObserver(tracer_provider=sdk.tracers, meter_provider=sdk.meters, **settings)
        FnCallAgent(llm=ScriptedModel([answer("a" * 7 * 5)]), name="a", observers=[observer]).ask("Hi")

    name = "gen_ai.client.operation.time_per_output_chunk"
    ask()
    assert name not in receiver.metrics()
    ask(chunk_times=True)
    ((_, count, _),) = receiver.metrics()[name]
    assert count == 4
