"""The tests of a backend for language models."""

from __future__ import annotations

from jackfield_testkit.suites.llm_connections import ConnectionTests
from jackfield_testkit.suites.llm_faults import FaultTests
from jackfield_testkit.suites.llm_hygiene import HygieneTests
from jackfield_testkit.suites.llm_messages import MediaTests, MessageTests, OptionTests
from jackfield_testkit.suites.llm_stream import StreamTests
from jackfield_testkit.suites.llm_tools import ToolTests


class LLMBackendSuite(
    StreamTests, ConnectionTests, MessageTests, OptionTests, ToolTests, MediaTests, FaultTests, HygieneTests
):
    """What every backend must do that speaks Chat Completions over HTTP.

    A subclass names its backend, and gets all tests against a server on 127.0.0.1:

    ```python
    class TestAcme(LLMBackendSuite):
        component = "jackfield-acme/acme"
        config = {"native_tools": True}
        xfail = {"test_the_seed_is_sent": "acme's servers have no seed"}
    ```

    What is tested depends on the model's facts: a model that takes no images must refuse them before any request.
    Override `make_model` for a backend that is configured in another way.
    """
