"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_dashscope.config import DashScopeConfig, DashScopeImagesConfig, EmbedderConfig, RerankConfig
from jackfield_dashscope.plugin import embedders, llms, searchers, tokenizers
from jackfield_dashscope.server import KEY_RULE
from tests.support.promises import check_limit, defaults_of, promises_of

HOSTS = (
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
    "dashscope-us.aliyuncs.com",
    "*.dashscope.aliyuncs.com",
    "*.maas.aliyuncs.com",
)
PROMISES: dict[str, dict[str, Any]] = {
    "EmbedderSpec dashscope": {
        "secrets": ("DASHSCOPE_API_KEY",),
        "effects": frozenset({"network"}),
        "network": HOSTS,
    },
    "LLMSpec qwen_dashscope": {
        "secrets": ("DASHSCOPE_API_KEY",),
        "effects": frozenset({"network"}),
        "network": HOSTS,
        "names": ("qwen*", "qwq-*"),
    },
    "LLMSpec qwenvl_dashscope": {
        "secrets": ("DASHSCOPE_API_KEY",),
        "effects": frozenset({"network"}),
        "network": HOSTS,
        "names": ("qwen*-vl*", "qvq-*"),
    },
    "LLMSpec qwenaudio_dashscope": {
        "secrets": ("DASHSCOPE_API_KEY",),
        "effects": frozenset({"network"}),
        "network": HOSTS,
        "names": ("qwen*-audio*",),
    },
    "LLMSpec dashscope_images": {
        "secrets": ("DASHSCOPE_API_KEY",),
        "effects": frozenset({"network"}),
        "network": HOSTS,
        "names": ("wan*-t2i*", "qwen-image*"),
    },
    "SearcherSpec dashscope_rerank": {
        "secrets": ("DASHSCOPE_API_KEY",),
        "effects": frozenset({"network"}),
        "network": HOSTS,
        "requires": ("searcher.keyword_search",),
    },
    "TokenizerSpec qwen": {},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*embedders(), *llms(), *searchers(), *tokenizers()]
    assert promises_of(specs) == PROMISES


def test_the_descriptors_name_every_host_that_may_get_the_key() -> None:
    assert [f"*{host}" if host.startswith(".") else host for host in KEY_RULE.hosts] == list(HOSTS)


NEEDED: dict[type[Config], dict[str, object]] = {
    EmbedderConfig: {"model": "m"},
    DashScopeConfig: {"model": "m"},
    DashScopeImagesConfig: {"model": "m"},
    RerankConfig: {"model": "m"},
}


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            EmbedderConfig,
            {
                "base_http_api_url": None,
                "workspace": None,
                "region": None,
                "base_url": None,
                "api_key": None,
                "instruct": None,
                "request_timeout": 60.0,
                "max_retries": 2,
                "extra_body": {},
                "extra_headers": {},
                "dimension": None,
                "batch_size": 10,
                "concurrency": 4,
            },
        ),
        (
            DashScopeConfig,
            {
                "base_http_api_url": None,
                "workspace": None,
                "region": None,
                "endpoint": None,
                "enable_thinking": None,
                "thinking_budget": None,
                "enable_search": None,
                "search_options": None,
                "cache_control": None,
                "partial": True,
                "send_reasoning": True,
                "native_tools": None,
                "images": None,
                "audio": None,
                "video": None,
                "json_schema": None,
                "reasoning": None,
                "context_tokens": None,
                "tokenizer": None,
            },
        ),
        (
            DashScopeImagesConfig,
            {
                "base_http_api_url": None,
                "workspace": None,
                "region": None,
                "endpoint": None,
                "size": None,
                "negative_prompt": None,
                "count": 1,
                "poll_interval": 1.0,
                "task_timeout": 300.0,
            },
        ),
        (
            RerankConfig,
            {
                "base_http_api_url": None,
                "workspace": None,
                "region": None,
                "base_url": None,
                "api_key": None,
                "instruct": None,
                "request_timeout": 60.0,
                "max_retries": 2,
                "extra_body": {},
                "extra_headers": {},
                "searcher": "keyword_search",
                "searcher_settings": {},
                "candidates": 50,
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, NEEDED.get(config, {})) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (EmbedderConfig, "request_timeout", 0.01, 0),
        (EmbedderConfig, "max_retries", 0, -1),
        (EmbedderConfig, "max_retries", 100, 101),
        (EmbedderConfig, "dimension", 1, 0),
        (EmbedderConfig, "batch_size", 1, 0),
        (EmbedderConfig, "batch_size", 100, 101),
        (EmbedderConfig, "concurrency", 1, 0),
        (EmbedderConfig, "concurrency", 64, 65),
        (DashScopeConfig, "thinking_budget", 1, 0),
        (DashScopeConfig, "context_tokens", 1, 0),
        (DashScopeImagesConfig, "count", 1, 0),
        (DashScopeImagesConfig, "count", 10, 11),
        (DashScopeImagesConfig, "poll_interval", 0.01, 0),
        (DashScopeImagesConfig, "task_timeout", 0.01, 0),
        (RerankConfig, "request_timeout", 0.01, 0),
        (RerankConfig, "max_retries", 0, -1),
        (RerankConfig, "max_retries", 100, 101),
        (RerankConfig, "candidates", 1, 0),
        (RerankConfig, "candidates", 500, 501),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, NEEDED.get(config, {}))


@pytest.mark.parametrize(
    "server", [None, "", "dashscope", "http://127.0.0.1:8000/api/v1", "https://example.org/api/v1"]
)
def test_a_server_is_named_by_its_address_or_as_the_service_itself(server: str | None) -> None:
    assert DashScopeConfig(model="m", model_server=server).model_server == server
    with pytest.raises(ValueError, match="'dashscope', or start with http:// or https://"):
        DashScopeConfig(model="m", model_server="ftp://example.org")
