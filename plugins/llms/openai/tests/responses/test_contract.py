"""The backend for the Responses API keeps Jackfield's contracts."""

from __future__ import annotations

from jackfield_testkit.responses import FakeResponses
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites import LLMBackendSuite


class TestResponses(LLMBackendSuite):
    component = "jackfield-openai/openai_responses"

    def make_server(self) -> FakeOpenAI:
        return FakeResponses()
