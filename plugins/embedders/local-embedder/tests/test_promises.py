"""Test what is promised before a component is used: its descriptor, and its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_local_embedder.config import LocalRerankConfig, TransformersEmbedderConfig
from jackfield_local_embedder.plugin import embedders, searchers
from tests.support.promises import check_limit, defaults_of, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "EmbedderSpec transformers": {
        "secrets": ("HF_TOKEN",),
        "effects": frozenset({"network", "files"}),
        "network": ("huggingface.co",),
    },
    "SearcherSpec local_rerank": {
        "secrets": ("HF_TOKEN",),
        "effects": frozenset({"network", "files"}),
        "network": ("huggingface.co",),
        "requires": ("searcher.keyword_search",),
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    specs: list[Any] = [*embedders(), *searchers()]
    assert promises_of(specs) == PROMISES


NEEDED: dict[type[Config], dict[str, object]] = {
    TransformersEmbedderConfig: {"model": "m"},
    LocalRerankConfig: {"model": "m"},
}


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            TransformersEmbedderConfig,
            {
                "revision": None,
                "download": False,
                "api_key": None,
                "onnx_file": None,
                "dimension": None,
                "document_prefix": None,
                "query_prefix": None,
                "max_tokens": None,
                "tokens_at_once": 4096,
                "engine": "auto",
                "precision": "full",
                "device": "auto",
                "trust_remote_code": False,
            },
        ),
        (
            LocalRerankConfig,
            {
                "revision": None,
                "download": False,
                "api_key": None,
                "onnx_file": None,
                "searcher": "keyword_search",
                "searcher_settings": {},
                "candidates": 30,
                "max_tokens": 512,
                "tokens_at_once": 4096,
            },
        ),
    ],
)
def test_the_settings_have_these_defaults(config: type[Config], defaults: dict[str, object]) -> None:
    assert defaults_of(config, defaults, NEEDED.get(config, {})) == defaults


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (TransformersEmbedderConfig, "onnx_file", "x", ""),
        (TransformersEmbedderConfig, "dimension", 1, 0),
        (TransformersEmbedderConfig, "max_tokens", 3, 2),
        (TransformersEmbedderConfig, "tokens_at_once", 1, 0),
        (TransformersEmbedderConfig, "device", "x", ""),
        (LocalRerankConfig, "onnx_file", "x", ""),
        (LocalRerankConfig, "candidates", 1, 0),
        (LocalRerankConfig, "candidates", 500, 501),
        (LocalRerankConfig, "max_tokens", 8, 7),
        (LocalRerankConfig, "tokens_at_once", 1, 0),
    ],
)
def test_the_settings_have_these_limits(config: type[Config], setting: str, last: object, beyond: object) -> None:
    check_limit(config, setting, last, beyond, NEEDED.get(config, {}))
