"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_anthropic.config import AnthropicConfig
from jackfield_anthropic.plugin import llms
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "LLMSpec anthropic": {
        "secrets": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        "effects": frozenset({"network"}),
        "network": ("api.anthropic.com",),
        "names": ("claude-*",),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*llms()]
    assert promises_of(specs) == PROMISES


NEEDED: dict[type[Config], dict[str, object]] = {AnthropicConfig: {"model": "m"}}


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            AnthropicConfig,
            {
                "auth_token": None,
                "default_max_tokens": None,
                "thinking": None,
                "thinking_budget": None,
                "cache_control": None,
                "cache_ttl": "5m",
                "hosted_tools": (),
                "citations": False,
                "send_reasoning": True,
                "version": "2023-06-01",
                "beta": (),
                "native_tools": True,
                "forced_calls": True,
                "images": True,
                "files": True,
                "file_urls": True,
                "json_schema": False,
                "reasoning": True,
                "context_tokens": None,
                "max_output_tokens": None,
                "tokenizer": "",
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, NEEDED.get(config, {})) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (AnthropicConfig, "default_max_tokens", 1, 0),
        (AnthropicConfig, "thinking_budget", 1024, 1023),
        (AnthropicConfig, "context_tokens", 1, 0),
        (AnthropicConfig, "max_output_tokens", 1, 0),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, NEEDED.get(config, {}))
