"""Test the facts about models."""

from __future__ import annotations

import os
from typing import Any

import pytest

from jackfield.plugins import PluginHost
from jackfield.request import ModelFacts
from jackfield.settings import Settings
from jackfield_backends.known_models import find_model, shipped_models
from jackfield_dashscope.backend import QwenChat, QwenVLChat


def facts_of(model: str, kind: type[QwenChat] = QwenChat, **config: Any) -> ModelFacts:
    return kind({"model": model, **config}, host=PluginHost(Settings())).facts


@pytest.mark.parametrize(
    ("model", "images", "audio", "endpoint"),
    [
        ("qwen3-vl-plus-2025-12-19", True, False, "multimodal"),
        ("Qwen2.5-VL-72B-instruct", True, False, "multimodal"),
        ("qvq-max", True, False, "multimodal"),
        ("qwen3-omni-flash", True, True, "multimodal"),
        ("qwen-audio-turbo-latest", False, True, "multimodal"),
        ("qwen3.6-plus", True, False, "multimodal"),
        ("qwen3-max", False, False, "text"),
        ("deepseek-v3.2", False, False, "text"),
    ],
)
def test_a_model_is_known_by_its_name(model: str, images: bool, audio: bool, endpoint: str) -> None:
    facts = facts_of(model)
    assert (facts.images, facts.audio) == (images, audio)
    assert find_model("dashscope", model).details.get("endpoint", "text") == endpoint


def test_an_unknown_model_has_the_facts_that_its_backend_assumes() -> None:
    assert facts_of("brand-new", QwenVLChat) == ModelFacts(images=True, video=True, reasoning=True)
    assert facts_of("brand-new") == ModelFacts(reasoning=True)


def test_no_entry_is_hidden_by_another() -> None:
    for entry in shipped_models("dashscope"):
        for pattern in entry.names:
            assert find_model("dashscope", pattern.replace("*", "0")) is entry, f"{pattern} is never reached"


def test_the_configuration_wins() -> None:
    facts = facts_of("m", QwenVLChat, images=False, audio=True, native_tools=False, context_tokens=5)
    assert (facts.images, facts.audio, facts.native_tools, facts.context_tokens) == (False, True, False, 5)
    assert facts.video


@pytest.mark.parametrize(
    ("model", "tokenizer"),
    [
        ("qwen-plus", "qwen"),
        ("qwen-max-latest", "qwen"),
        ("qwen2.5-7b-instruct", "qwen"),
        ("qwen3-32b", "qwen"),
        ("qwen3-coder-plus", "qwen"),
        ("qwen3-vl-plus", "qwen"),
        ("qwq-32b", "qwen"),
        ("qwen3.5-plus", ""),
        ("qwen3.5-omni-flash", ""),
        ("qwen3.7-max", ""),
        ("deepseek-v3.2", ""),
    ],
)
def test_the_tokenizer_is_named_where_it_counts_for_the_model(model: str, tokenizer: str) -> None:
    assert facts_of(model).tokenizer == tokenizer


def test_the_configuration_can_name_a_tokenizer_or_none() -> None:
    assert facts_of("qwen-plus", tokenizer="").tokenizer == ""
    assert facts_of("qwen-plus", tokenizer="mine").tokenizer == "mine"


@pytest.mark.parametrize(
    ("config", "has_price"),
    [
        ({}, True),
        ({"base_url": "https://dashscope.aliyuncs.com/api/v1"}, True),
        ({"base_url": "https://dashscope-intl.aliyuncs.com/api/v1"}, False),
        ({"region": "intl"}, False),
    ],
)
def test_prices_are_those_of_beijing_alone(
    config: dict[str, Any], has_price: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("DASHSCOPE_")]:
        monkeypatch.delenv(name)
    assert bool(facts_of("qwen3.8-max", **config).prices) == has_price
