"""Without a backend, a configuration means one by Qwen-Agent's order: its keys, its address, its model's name."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.models import backend_of

URL = "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("cfg", "backend"),
    [
        ({"model": "qwen-max", "model_type": "openai", "azure_endpoint": "https://h"}, "openai"),
        ({"model": "qwen-max", "base_url": URL, "azure_endpoint": "https://h"}, "azure"),
        ({"model": "qwen-max", "model_server": URL}, "openai"),
        ({"model": "qwen-max", "model_server": "dashscope"}, "qwen_dashscope"),
        ({"model": "Qwen2.5-VL-72B-Instruct"}, "qwenvl_dashscope"),
        ({"model": "qwen-vl-max"}, "qwenvl_dashscope"),
        ({"model": "qwen2-audio-instruct"}, "qwenaudio_dashscope"),
        ("qwen-plus", "qwen_dashscope"),
        ("qwq-32b", "qwen_dashscope"),
        ("acme.llm:m", "acme.llm"),
        ("acme.llm:http", "acme.llm"),
    ],
    ids=str,
)
def test_what_a_configuration_means(cfg: Any, backend: str) -> None:
    assert backend_of(cfg, ["openai"]) == backend


@pytest.mark.parametrize("cfg", ["gpt-4o", {"model": "deepseek-v3"}, {"model": "my-vl"}, {"azure_endpoint": ""}, URL])
def test_what_means_nothing_is_asked_about(cfg: Any) -> None:
    with pytest.raises(ConfigError, match=r"no backend|does not specify the model"):
        backend_of(cfg, ["openai"])


@pytest.mark.parametrize(
    ("cfg", "hint"),
    [
        ({"model": "qwen3:8b"}, "model_type='qwen3'"),
        ({"model": "m", "model_server": "llama.cpp"}, "model_type='openai'"),
        ({"model": "m", "model_server": "llama.cpp:8080"}, "must start with http"),
        ({"model": "m", "model_server": "localhost:8080"}, "must start with http"),
        ({"model": "m", "model_server": "LOCALHOST:8080"}, "must start with http"),
    ],
    ids=str,
)
def test_a_tag_or_a_server_is_not_taken_for_a_backend(cfg: Any, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        backend_of(cfg, ["openai"])
