"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_openai.config import OpenAIConfig
from jackfield_openai.embeddings import OpenAIEmbedderConfig
from jackfield_openai.images import OpenAIImagesConfig
from jackfield_openai.plugin import embedders, llms
from jackfield_openai.responses.config import ResponsesConfig
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "EmbedderSpec openai": {"secrets": ("OPENAI_API_KEY",), "effects": frozenset({"network"})},
    "LLMSpec openai": {
        "secrets": ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY"),
        "effects": frozenset({"network"}),
    },
    "LLMSpec oai": {
        "secrets": ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY"),
        "effects": frozenset({"network"}),
    },
    "LLMSpec openai_responses": {"secrets": ("OPENAI_API_KEY",), "effects": frozenset({"network"})},
    "LLMSpec openai_images": {"secrets": ("OPENAI_API_KEY",), "effects": frozenset({"network"})},
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*embedders(), *llms()]
    assert promises_of(specs) == PROMISES


NEEDED: dict[type[Config], dict[str, object]] = {
    OpenAIEmbedderConfig: {"model": "m"},
    OpenAIConfig: {"model": "m"},
    ResponsesConfig: {"model": "m"},
    OpenAIImagesConfig: {"model": "m"},
}


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            OpenAIEmbedderConfig,
            {
                "server": None,
                "model_server": None,
                "api_base": None,
                "base_url": None,
                "api_key": None,
                "organization": None,
                "project": None,
                "dimension": None,
                "document_prefix": "",
                "query_prefix": "",
                "batch_size": 128,
                "concurrency": 4,
                "encoding_format": "base64",
                "max_retries": 2,
                "request_timeout": 120.0,
                "extra_body": {},
                "extra_headers": {},
            },
        ),
        (
            OpenAIConfig,
            {
                "native_tools": True,
                "images": True,
                "audio": False,
                "video": False,
                "files": False,
                "json_schema": True,
                "reasoning": True,
                "context_tokens": None,
                "tokenizer": "",
                "modalities": (),
                "audio_output": None,
                "prompt_cache_key": None,
                "send_reasoning": True,
                "stream_usage": True,
                "max_tokens_key": None,
                "continuation": None,
                "server": None,
                "organization": None,
                "project": None,
            },
        ),
        (
            ResponsesConfig,
            {
                "organization": None,
                "project": None,
                "native_tools": True,
                "images": True,
                "files": False,
                "file_urls": True,
                "json_schema": True,
                "reasoning": True,
                "context_tokens": None,
                "tokenizer": "",
                "prompt_cache_key": None,
                "store": False,
                "include": ("reasoning.encrypted_content",),
                "send_reasoning": True,
                "reasoning_summary": None,
                "hosted_tools": (),
            },
        ),
        (OpenAIImagesConfig, {"organization": None, "project": None, "size": None, "quality": None, "count": 1}),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, NEEDED.get(config, {})) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (OpenAIEmbedderConfig, "dimension", 1, 0),
        (OpenAIEmbedderConfig, "batch_size", 1, 0),
        (OpenAIEmbedderConfig, "batch_size", 2048, 2049),
        (OpenAIEmbedderConfig, "concurrency", 1, 0),
        (OpenAIEmbedderConfig, "max_retries", 0, -1),
        (OpenAIEmbedderConfig, "max_retries", 100, 101),
        (OpenAIEmbedderConfig, "request_timeout", 0.01, 0),
        (OpenAIConfig, "context_tokens", 1, 0),
        (ResponsesConfig, "context_tokens", 1, 0),
        (OpenAIImagesConfig, "count", 1, 0),
        (OpenAIImagesConfig, "count", 10, 11),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, NEEDED.get(config, {}))
