"""What the tests of this backend share: a server on 127.0.0.1, and models that ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackfield import sync
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_openai.backend import OpenAIChat
from jackfield_testkit.server import FakeOpenAI

MakeModel = Callable[..., OpenAIChat]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A server of this test alone."""
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No keys, addresses or proxies of the developer."""
    for name in ("OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.fixture
def make_model(server: FakeOpenAI, clean_environment: pytest.MonkeyPatch) -> Iterator[MakeModel]:
    """Makes models that ask the server, and closes them."""
    models: list[OpenAIChat] = []

    def make(**config: Any) -> OpenAIChat:
        settings = {"model": "test-model", "base_url": server.url, "generate_cfg": {"max_retries": 0}, **config}
        models.append(OpenAIChat(settings, host=PluginHost(Settings())))
        return models[-1]

    yield make
    for model in models:
        sync.run(model.aclose())
