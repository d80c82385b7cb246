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
    ],
    ids=str,
)
def test_what_a_configuration_means(cfg: Any, backend: str) -> None:
    assert backend_of(cfg, ["openai"]) == backend


@pytest.mark.parametrize("cfg", ["gpt-4o", {"model": "deepseek-v3"}, {"model": "my-vl"}, {"azure_endpoint": ""}, URL])
def test_what_means_nothing_is_asked_about(cfg: Any) -> None:
    with pytest.raises(ConfigError, match=r"no backend|does not specify the model"):
        backend_of(cfg, ["openai"])
