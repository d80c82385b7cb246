"""Contract tests for language model backends."""

from __future__ import annotations

import pytest

from jackfield.models import BaseChatModel
from jackfield_testkit import replies
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.llm_connections import ConnectionTests
from jackfield_testkit.suites.llm_faults import FaultTests
from jackfield_testkit.suites.llm_hygiene import HygieneTests
from jackfield_testkit.suites.llm_laws import ModelLaws
from jackfield_testkit.suites.llm_listing import ListingTests
from jackfield_testkit.suites.llm_messages import MediaTests, MessageTests, OptionTests
from jackfield_testkit.suites.llm_stream import StreamTests
from jackfield_testkit.suites.llm_tools import ToolTests


class LLMBackendSuite(
    StreamTests,
    ConnectionTests,
    MessageTests,
    OptionTests,
    ToolTests,
    MediaTests,
    FaultTests,
    HygieneTests,
    ListingTests,
    ModelLaws,
):
    """Contract of backends that use a server over HTTP.

    A subclass names its backend and inherits all tests, which run against a server on 127.0.0.1:

    ```python
    class TestAcme(LLMBackendSuite):
        component = "jackfield-acme/acme"
        config = {"native_tools": True}
        unsupported_options = {"seed": "acme's protocol has no seed"}
    ```

    The tests are written in terms of Chat Completions. A backend for another protocol provides a `Dialect` to
    translate: `dialect = AcmeDialect()`. See `jackfield_testkit.dialects`.

    The tests depend on the model's facts. For example, a model that does not support images must reject them before
    sending a request. Override `make_model` for a backend that is configured differently.
    """

    @pytest.fixture
    def any_model(self, server: FakeOpenAI, model: BaseChatModel) -> BaseChatModel:
        """Return a model whose server always answers, in twenty pieces."""
        server.default = replies.text(["tick "] * 20).paced(0.001)
        return model
