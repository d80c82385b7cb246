"""What the tests of this backend share: a server on 127.0.0.1 that speaks Messages, and models that ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackfield import sync
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_anthropic.backend import AnthropicChat
from jackfield_testkit.anthropic import AnthropicMessages
from jackfield_testkit.server import FakeOpenAI

MakeModel = Callable[..., AnthropicChat]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A server of this test alone."""
    with FakeOpenAI(dialect=AnthropicMessages()) as server:
        yield server


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No keys, addresses or proxies of the developer."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.fixture
def make_model(server: FakeOpenAI, clean_environment: pytest.MonkeyPatch) -> Iterator[MakeModel]:
    """Makes models that ask the server, and closes them."""
    models: list[AnthropicChat] = []

    def make(**config: Any) -> AnthropicChat:
        once = {"max_retries": 0}  # what a test wants to see is not tried again
        settings = {"model": "test-model", "base_url": server.url, "api_key": "sk-ant-test", **config}
        settings["generate_cfg"] = {**once, **config.get("generate_cfg", {})}
        models.append(AnthropicChat(settings, host=PluginHost(Settings())))
        return models[-1]

    yield make
    for model in models:
        sync.run(model.aclose())
