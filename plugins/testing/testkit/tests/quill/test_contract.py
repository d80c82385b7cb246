"""A backend made of tables keeps the contract of every backend, in a protocol that is its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from quill_backend import QuillChat
from quill_dialect import QuillDialect

from jackfield.models import BaseChatModel
from jackfield_testkit.dialects import Dialect
from jackfield_testkit.suites import LLMBackendSuite
from jackfield_testkit.suites.llm_asking import API_KEY, MODEL

NO_DIAL = "Quill has no such dial"


class TestQuill(LLMBackendSuite):
    secrets = ("QUILL_TOKEN",)
    dialect: ClassVar[Dialect] = QuillDialect()
    unsupported_options: ClassVar[Mapping[str, str]] = {
        "seed": NO_DIAL,
        "presence_penalty": NO_DIAL,
        "frequency_penalty": NO_DIAL,
        "response_format": NO_DIAL,
    }

    def make_model(self, server_url: str, **overrides: Any) -> BaseChatModel:
        return QuillChat({"model": MODEL, "base_url": server_url, "api_key": API_KEY, **overrides})
