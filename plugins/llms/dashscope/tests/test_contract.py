"""This distribution, and all that it offers, keep Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import pytest

from jackfield.retrieval import Purpose
from jackfield_testkit.dashscope import DashScope, DashScopeRequest, FakeDashScope
from jackfield_testkit.dialects import Dialect
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from jackfield_testkit.suites import EmbedderSuite, LLMBackendSuite, PluginSuite, SearcherSuite, TokenizerSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-dashscope"


class TestTextEndpoint(LLMBackendSuite):
    component = "jackfield-dashscope/qwen_dashscope"
    dialect: ClassVar[Dialect] = DashScope()


class TestMultimodalEndpoint(LLMBackendSuite):
    component = "jackfield-dashscope/qwenvl_dashscope"
    dialect: ClassVar[Dialect] = DashScope()
    config: ClassVar[dict[str, object]] = {"audio": True}


class TestTokenizer(TokenizerSuite):
    component = "jackfield-dashscope/qwen"
    normal_form: ClassVar[Literal["", "NFC", "NFKC"]] = "NFC"


class TestEmbedder(EmbedderSuite):
    component = "jackfield-dashscope/dashscope"
    other_space: ClassVar[dict[str, object]] = {"dimension": 4}

    def make_server(self) -> FakeOpenAI:
        return FakeDashScope()

    def purpose_in(self, request: RecordedRequest) -> Purpose | None:
        assert isinstance(request, DashScopeRequest)
        purpose: Purpose = request.native["parameters"]["text_type"]
        return purpose


class TestRerank(SearcherSuite):
    component = "jackfield-dashscope/dashscope_rerank"

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with FakeDashScope() as server:
            self.config = {"model": "test-rerank", "base_url": server.url, "api_key": "sk-test"}  # type: ignore[misc]
            yield
