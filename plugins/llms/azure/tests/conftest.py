"""What these tests share: a server on 127.0.0.1 that is like Azure's, and models that ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackfield import sync
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_azure.backend import AzureChat
from jackfield_testkit.server import FakeOpenAI

MakeModel = Callable[..., AzureChat]
VARIABLES = (
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "AZURE_OPENAI_ENDPOINT",
    "OPENAI_API_KEY",
    "OPENAI_API_VERSION",
    "OPENAI_ORG_ID",
    "HTTP_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "all_proxy",
)


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A server of this test alone."""
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No keys, addresses or proxies of the developer."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def make_model(server: FakeOpenAI, clean_environment: pytest.MonkeyPatch) -> Iterator[MakeModel]:
    """Makes models that ask the server, and closes them."""
    models: list[AzureChat] = []

    def make(**config: Any) -> AzureChat:
        settings = {
            "model": "test-model",
            "azure_endpoint": server.origin,
            "api_key": "az-key",
            "generate_cfg": {"max_retries": 0},
            **config,
        }
        models.append(AzureChat(settings, host=PluginHost(Settings())))
        return models[-1]

    yield make
    for model in models:
        sync.run(model.aclose())
