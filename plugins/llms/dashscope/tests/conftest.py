"""What the tests of these backends share: a server on 127.0.0.1 that speaks DashScope, and models that ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackfield import sync
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_dashscope.backend import QwenAudioChat, QwenChat, QwenVLChat
from jackfield_testkit.dashscope import FakeDashScope

MakeModel = Callable[..., QwenChat]


@pytest.fixture
def server() -> Iterator[FakeDashScope]:
    """A server of this test alone."""
    with FakeDashScope() as server:
        yield server


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> pytest.MonkeyPatch:
    """No keys, addresses, files or proxies of the developer."""
    for name in ("API_KEY", "HTTP_URL", "BASE_URL", "HTTP_BASE_URL", "WORKSPACE", "REGION", "PROTOCOL"):
        monkeypatch.delenv(f"DASHSCOPE_{name}", raising=False)
    monkeypatch.setenv("DASHSCOPE_CONFIG", str(tmp_path_factory.mktemp("none") / "config.toml"))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.fixture
def make_model(server: FakeDashScope, clean_environment: pytest.MonkeyPatch) -> Iterator[MakeModel]:
    """Makes models that ask the server, and closes them. The backend is `qwen_dashscope` unless given."""
    models: list[QwenChat] = []
    classes = {made.backend: made for made in (QwenChat, QwenVLChat, QwenAudioChat)}

    def make(backend: str = "qwen_dashscope", **config: Any) -> QwenChat:
        settings = {
            "model": "test-model",
            "base_url": server.url,
            "api_key": "sk-test",
            "generate_cfg": {"max_retries": 0},
            **config,
        }
        models.append(classes[backend](settings, host=PluginHost(Settings())))
        return models[-1]

    yield make
    for model in models:
        sync.run(model.aclose())
