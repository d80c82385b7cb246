"""The backend for the Responses API keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.dialects import Dialect
from jackfield_testkit.responses import Responses
from jackfield_testkit.suites import LLMBackendSuite


class TestResponses(LLMBackendSuite):
    component = "jackfield-openai/openai_responses"
    dialect: ClassVar[Dialect] = Responses()
