"""What these tests share: a server on 127.0.0.1, and models of a provider that does not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from jackfield import sync
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_chat_completions import ChatCompletionsModel, ServerProfile
from jackfield_testkit.server import FakeOpenAI

MakeModel = Callable[..., ChatCompletionsModel]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A server of this test alone."""
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No keys or proxies of the developer."""
    for name in ("ACME_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.fixture
def make_model(server: FakeOpenAI, clean_environment: pytest.MonkeyPatch) -> Iterator[MakeModel]:
    """Makes models of a backend with a profile, which by default is the server's address alone; and closes them."""
    models: list[ChatCompletionsModel] = []

    def make(server_profile: ServerProfile | None = None, **config: Any) -> ChatCompletionsModel:
        class AcmeChat(ChatCompletionsModel):
            backend: ClassVar[str] = "acme"
            profile: ClassVar[ServerProfile] = server_profile or ServerProfile(server.url)

        config.setdefault("generate_cfg", {"max_retries": 0})  # what is scripted fails once
        models.append(AcmeChat({"model": "test-model", **config}, host=PluginHost(Settings())))
        return models[-1]

    yield make
    for model in models:
        sync.run(model.aclose())
