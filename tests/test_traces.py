"""The trace of a run travels on: with requests to models, to servers of MCP, and into searches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_assistant import Assistant
from jackfield_otel.observer import OtelObserver
from jackfield_testkit.server import FakeOpenAI, text, tool_call

MCP_SERVER = """
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("probe")

@server.tool()
def show(ctx: Context) -> str:
    "Show the trace that came with the call."
    meta = ctx.request_context.meta or {}
    return str(dict(meta).get("traceparent", "none"))

server.run(transport="stdio")
"""


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def observer(exporter: InMemorySpanExporter) -> OtelObserver:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return OtelObserver(tracer_provider=provider)


def _spans(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def _traceparent(span: ReadableSpan) -> str:
    context = span.get_span_context()
    assert context is not None
    trace_id, span_id = trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)
    return f"00-{trace_id}-{span_id}-{context.trace_flags:02x}"


def test_each_request_to_a_model_carries_its_own_span(exporter: InMemorySpanExporter, observer: OtelObserver) -> None:
    def look(word: str) -> str:
        """Look a word up."""
        return word

    with FakeOpenAI() as server:
        server.reply(tool_call("look", {"word": "oak"}), text("A tree."))
        llm = {"model_type": "openai", "model": "gpt-x", "base_url": server.url, "api_key": "EMPTY"}
        FnCallAgent([look], llm, name="helper", observers=[observer]).ask("Hi")
        sent = [request.headers.get("traceparent") for request in server.requests]
    chats = [span for span in exporter.get_finished_spans() if span.name.startswith("chat")]
    assert sent == [_traceparent(span) for span in chats]
    assert len(sent) == 2
    assert [span.name for span in chats] == ["chat gpt-x"] * 2
    assert (chats[0].attributes or {})["server.address"] == "127.0.0.1"
    assert (chats[0].attributes or {})["gen_ai.provider.name"] == "openai"


def test_without_the_observer_no_request_carries_a_trace() -> None:
    with FakeOpenAI() as server:
        server.reply(text("Hello."))
        llm = {"model_type": "openai", "model": "gpt-x", "base_url": server.url, "api_key": "EMPTY"}
        FnCallAgent(llm=llm).ask("Hi")
        assert "traceparent" not in server.requests[0].headers


def test_a_server_of_mcp_gets_the_trace_of_the_call(
    tmp_path: Path, exporter: InMemorySpanExporter, observer: OtelObserver
) -> None:
    script = tmp_path / "probe.py"
    script.write_text(MCP_SERVER)
    tools = {"mcpServers": {"probe": {"command": sys.executable, "args": [str(script)]}}}
    model = ScriptedModel([calls(("probe-show", {})), answer("Done.")])
    result = FnCallAgent([tools], model, name="helper", observers=[observer]).ask("Hi")
    [call] = _spans(exporter, "execute_tool probe-show")
    shown = next(message.get_text_content() for message in result.messages if message.role == "function")
    context = call.get_span_context()
    assert context is not None
    assert trace.format_trace_id(context.trace_id) in shown


def test_a_search_of_an_assistant_is_below_its_run(
    tmp_path: Path, exporter: InMemorySpanExporter, observer: OtelObserver
) -> None:
    page = tmp_path / "trees.md"
    page.write_text("# Trees\n\nThe zelkova is a tree.\n")
    model = ScriptedModel([answer("A tree.")])
    Assistant(llm=model, name="helper", files=[str(page)], observers=[observer]).ask("What is a zelkova?")
    [search], [root] = _spans(exporter, "retrieval retrieval"), _spans(exporter, "invoke_agent helper")
    assert search.parent is not None
    assert root.get_span_context() is not None
    assert search.parent.span_id == root.get_span_context().span_id  # type: ignore[union-attr]
    assert (search.attributes or {})["jackfield.retrieval.documents"] == 1
