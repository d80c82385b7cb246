"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_tiktoken.config import TiktokenConfig
from jackfield_tiktoken.plugin import tokenizers
from tests.support.promises import defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "TokenizerSpec o200k_base": {
        "effects": frozenset({"network", "files"}),
        "network": ("openaipublic.blob.core.windows.net",),
        "check": "jackfield_tiktoken.tokenizer:check_o200k_base",
    },
    "TokenizerSpec cl100k_base": {
        "effects": frozenset({"network", "files"}),
        "network": ("openaipublic.blob.core.windows.net",),
        "check": "jackfield_tiktoken.tokenizer:check_cl100k_base",
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*tokenizers()]
    assert promises_of(specs) == PROMISES


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (TiktokenConfig, {"path": None, "sha256": "", "download": False}),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, {}) == defaults
