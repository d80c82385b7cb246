"""Settings and names that people bring along: the error says where they belong and what to type."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield import get_chat_model
from jackfield.config import Config, GenerateConfig, LLMConfig
from jackfield.errors import ConfigError
from jackfield.models import backend_of

NAMES = ("openai", "qwen_dashscope", "qwenvl_dashscope")


class Thinks(LLMConfig):
    enable_thinking: bool | None = None


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("enable_thinking", "extra_body={'chat_template_kwargs': {'enable_thinking': ...}}"),
        ("n", "model.batch("),
        ("logprobs", "extra_body={'logprobs': ...}"),
        ("incremental_output", "delta_stream=True"),
        ("cache_dir", "processors=[{'name': 'cache', 'path': ...}]"),
        ("stream", "chat(stream=...)"),
        ("tool_choice", "function_choice"),
        ("model", "next to generate_cfg"),
    ],
)
def test_a_key_of_generate_cfg_that_stands_elsewhere_says_where(key: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        LLMConfig.parse({"model": "m", "generate_cfg": {key: 1}})
    assert f"unknown setting 'generate_cfg.{key}'" in str(caught.value)
    assert told in str(caught.value)
    if key != "model":
        with pytest.raises(ConfigError) as caught:
            GenerateConfig().merged({key: 1})
        assert told in str(caught.value)


def test_a_key_that_this_backend_has_beside_generate_cfg_says_so() -> None:
    with pytest.raises(ConfigError, match=r"next to generate_cfg, as in \{'model': ..., 'enable_thinking': ...\}"):
        Thinks.parse({"model": "m", "generate_cfg": {"enable_thinking": True}})


@pytest.mark.parametrize("key", ["temperature", "max_tokens", "fncall_prompt_type"])
def test_a_key_beside_generate_cfg_that_belongs_into_it_says_so(key: str) -> None:
    with pytest.raises(ConfigError, match=f"put it in generate_cfg, .*'generate_cfg': .*{key}"):
        LLMConfig.parse({"model": "m", key: 1})


def test_an_option_of_another_library_says_so_beside_generate_cfg() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'logprobs': .*extra_body=\{'logprobs': \.\.\.\}"):
        LLMConfig.parse({"model": "m", "logprobs": True})


class Nests(Config):
    level: int = 3


class HasParts(LLMConfig):
    part: Nests = Nests()


def test_a_key_inside_another_table_is_not_sent_to_generate_cfg() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'part\.temperature'; known: level$"):
        HasParts.parse({"model": "m", "part": {"temperature": 1}})


@pytest.mark.parametrize("key", ["api_base", "base_url"])
@pytest.mark.parametrize("address", ["localhost:8000", "127.0.0.1:8000/v1", "api.acme.test"])
def test_an_address_without_http_is_refused_with_what_to_write(key: str, address: str) -> None:
    with pytest.raises(ConfigError, match="must start with http:// or https://"):
        LLMConfig.parse({"model": "m", "model_type": "openai", key: address})
    with pytest.raises(ConfigError, match="must start with http:// or https://"):
        get_chat_model({"model": "m", key: address})


@pytest.mark.parametrize(
    ("cfg", "told"),
    [
        ({"model": "m", "model_server": "127.0.0.1:8000/v1"}, "must start with http:// or https://"),
        ({"model": "m", "model_server": "localhost:8000"}, "must start with http:// or https://"),
        ("127.0.0.1:8000", "with 'model' and 'base_url'"),
        ("http://acme.test/v1", "with 'model' and 'base_url'"),
        ("https://acme.test/v1", "with 'model' and 'base_url'"),
        ("localhost:8000", "with 'model' and 'base_url'"),
        ("ollama:llama3", "-m openai:llama3 --base-url http://localhost:11434/v1"),
        ("ollama:llama3", "{'model_type': 'openai', 'model': 'llama3', 'model_server': 'ollama'}"),
        ({"model": "m", "model_server": "ollama"}, "set model_type='openai' as well"),
        ({"model": "m", "model_type": "vllm"}, "'model_server': 'vllm'"),
        ("qwenvl_oai:qwen-vl", "write openai:qwen-vl, or model_type='openai'"),
        ({"model": "m", "model_type": "qwenvlo_dashscope"}, "model_type='qwenvl_dashscope'"),
        ("dashscope:qwen-plus", "write qwen_dashscope:qwen-plus"),
    ],
)
def test_a_backend_by_another_name_says_what_to_type(cfg: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        backend_of(cfg, NAMES)
    assert told in str(caught.value)


@pytest.mark.parametrize("cfg", ["openai:gpt-4.1", "openai:qwen2.5:7b", "openai:llama.cpp", "acme:http://x"])
def test_other_names_stay_what_they_are(cfg: str) -> None:
    assert backend_of(cfg, NAMES) == cfg.partition(":")[0]


def test_a_backend_that_is_installed_is_meant_by_its_name() -> None:
    assert backend_of("ollama:llama3", (*NAMES, "ollama")) == "ollama"
