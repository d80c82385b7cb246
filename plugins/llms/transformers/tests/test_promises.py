"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_transformers.config import TransformersConfig
from jackfield_transformers.plugin import llms
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "LLMSpec transformers": {
        "secrets": ("HF_TOKEN",),
        "effects": frozenset({"network", "files"}),
        "network": ("huggingface.co",),
        "requires": ("call_format.nous",),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*llms()]
    assert promises_of(specs) == PROMISES


NEEDED: dict[type[Config], dict[str, object]] = {TransformersConfig: {"model": "m"}}


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            TransformersConfig,
            {
                "device": "auto",
                "dtype": "auto",
                "revision": None,
                "local_files_only": False,
                "trust_remote_code": False,
                "model_kwargs": {},
                "chat_template": None,
                "chat_template_kwargs": {},
                "native_tools": False,
                "tool_call_format": "nous",
                "images": False,
                "reasoning": None,
                "context_tokens": None,
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, NEEDED.get(config, {})) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (TransformersConfig, "device", "x", ""),
        (TransformersConfig, "context_tokens", 1, 0),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, NEEDED.get(config, {}))
