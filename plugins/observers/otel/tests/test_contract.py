"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from jackfield.runs import Observer
from jackfield_otel.observer import OtelObserver
from jackfield_testkit.suites import ObserverSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-otel"


class TestWithoutProvider(ObserverSuite):
    component = "jackfield-otel/otel"


class TestWithSDK(ObserverSuite):
    component = "jackfield-otel/otel"

    def make_observer(self) -> Observer:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
        return OtelObserver(tracer_provider=provider)


class TestWithContent(TestWithSDK):
    writes_conversations: ClassVar[str] = "texts go to spans because the setting asks for it"

    def make_observer(self) -> Observer:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
        return OtelObserver("SPAN_AND_EVENT", tracer_provider=provider)
