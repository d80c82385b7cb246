"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_azure.config import AzureConfig
from jackfield_azure.plugin import llms
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "LLMSpec azure": {
        "secrets": ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
        "effects": frozenset({"network"}),
        "keys": ("azure_endpoint",),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*llms()]
    assert promises_of(specs) == PROMISES


NEEDED: dict[type[Config], dict[str, object]] = {AzureConfig: {"model": "m"}}


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            AzureConfig,
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
                "azure_endpoint": None,
                "azure_deployment": None,
                "api_version": None,
                "azure_ad_token": None,
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, NEEDED.get(config, {})) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (AzureConfig, "context_tokens", 1, 0),
        (AzureConfig, "azure_deployment", "x", ""),
        (AzureConfig, "api_version", "x", ""),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, NEEDED.get(config, {}))
